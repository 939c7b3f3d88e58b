"""Other people's protocols over the control API. See README.md."""
