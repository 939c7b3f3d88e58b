"""Documents that are not HTML: what is in a PDF, JSON, XML, CSV or office file."""
