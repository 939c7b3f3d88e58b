"""Other people's protocols over the control API: the Model Context Protocol, and Firecrawl's HTTP API. See README.md."""
