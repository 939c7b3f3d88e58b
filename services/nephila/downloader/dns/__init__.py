"""Names into addresses without the C library's resolver."""
