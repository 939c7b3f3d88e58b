"""Keyword schemes: documents, the plan of searches, the rules of platforms, progress."""
