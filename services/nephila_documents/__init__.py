"""Text and structure of PDF and office files, read in the sandbox.

The parser hands a file to a child process, which imports one of these modules by the name that its task has. The
libraries that read such files have had memory faults, so no other process imports them.
"""
