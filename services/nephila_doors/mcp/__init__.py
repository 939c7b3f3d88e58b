"""The Model Context Protocol: tools, resources and prompts over the control API."""
