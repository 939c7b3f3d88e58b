"""Rule health: parsers count what each rule extracts, and a judge raises an alarm when a site has changed."""
