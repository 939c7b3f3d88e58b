"""Rule rot: what rules give is counted page by page, and said aloud when a site has changed under one of them."""
