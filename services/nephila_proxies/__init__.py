"""Requests through proxies: which one a request uses, what its answer says about it, and which proxies are alive."""
