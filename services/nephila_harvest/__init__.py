"""Work of an organisation on the result of its crawls. See README.md."""
