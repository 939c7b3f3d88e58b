"""The console: screens in a browser, a client of the control API. See README.md."""
