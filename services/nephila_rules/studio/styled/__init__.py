"""The page of the studio as it looks: its elements, styles and pictures, rewritten from lists of what is allowed.

Addresses of style sheets, pictures and fonts are not written: each becomes a `NamedFile`, and the caller writes an
address of its own.
"""
