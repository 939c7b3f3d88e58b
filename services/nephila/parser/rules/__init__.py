"""Rules: what a person says about the pages of a site, and the items that come of it. See docs/rules.md."""
