"""The control API of a running program or a system. See README.md."""
