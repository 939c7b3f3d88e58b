"""Rendered pages: Chromium behind the contract of a fetcher. See README.md."""
