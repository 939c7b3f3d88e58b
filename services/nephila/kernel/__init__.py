"""Shared by all services: topics, messages, the bus contract, identity of URLs, time, configuration, errors."""
