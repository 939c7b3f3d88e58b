"""`render: auto`: which pages need a browser, learnt from pages that both lanes have fetched."""
