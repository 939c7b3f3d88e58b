"""The rule studio without its screens: a rule that grows from elements which a person points at.

`draft` is its whole state; `child` does the work on pages of strangers, in a process that can be killed.
"""
