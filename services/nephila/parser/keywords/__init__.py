"""Keyword schemes on content pages: the records that they become."""
