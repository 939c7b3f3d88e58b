"""Office files: metadata in place; text in a child process, by lxml and calamine."""
