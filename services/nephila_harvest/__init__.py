"""Harvesting: work of an organisation on the result of its crawls."""
