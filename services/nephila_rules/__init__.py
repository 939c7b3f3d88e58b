"""Items from pages: rules in a crawl, and the tools with which rules are written. See README.md."""
