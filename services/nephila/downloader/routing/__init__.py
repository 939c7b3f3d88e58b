"""The route of a URL: its server, and the proxy where one is used."""
