"""The page pass in Python: what one walk over the tree of a page takes from it."""
