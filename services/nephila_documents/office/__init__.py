"""Text and structure of office files."""
