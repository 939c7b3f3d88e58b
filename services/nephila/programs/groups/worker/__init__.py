"""The process of a group. What is beside this package runs in the main process."""
