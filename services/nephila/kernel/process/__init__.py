"""The process of a program and its machine: memory, disk, signals, limits of time, its children."""
