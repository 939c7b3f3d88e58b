"""Keyword schemes on content pages: which groups a text matches, and the record that it becomes."""
