"""Middleware of the user: Python files of a configured folder."""
