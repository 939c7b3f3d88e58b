"""Other people's protocols over the control API: the Model Context Protocol and Firecrawl's API. See README.md."""
