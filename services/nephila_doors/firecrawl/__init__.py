"""Firecrawl's HTTP API, version 2, as far as a crawler without a language model can honour it."""
