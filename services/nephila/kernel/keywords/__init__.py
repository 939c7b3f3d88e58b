"""Keyword schemes and the text of a page: which groups match, and the item that follows. The parser evaluates each new
page, storage evaluates the stored pages again after a change of the schemes."""
