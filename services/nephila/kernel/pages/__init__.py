"""What several services need of a page: its type, its links and requisites, parts of its items. Pure."""
