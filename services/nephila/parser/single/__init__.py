"""Extraction from a single document without a crawl: `nephila extract` and the Python API."""
