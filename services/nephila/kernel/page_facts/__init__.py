"""Facts that a page states about itself: title, authors, dates, section, image. `nephila extract` resolves them from
the page, exports and the Python API from its stored row; both by the rules here. Pure."""
