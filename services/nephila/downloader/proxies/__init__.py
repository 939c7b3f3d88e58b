"""Proxies: where they come from, which of them work, and which one a request uses."""
