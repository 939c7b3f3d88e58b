"""One HTML file about a crawl: facts.py reads the tables, document.py writes the page."""
