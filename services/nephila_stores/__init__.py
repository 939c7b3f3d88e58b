"""Search, archives, and outputs that need a server. See README.md."""
