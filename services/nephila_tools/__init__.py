"""Programs that read a result or a system from outside. See README.md."""
