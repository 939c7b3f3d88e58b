"""The bench web: a seeded generator of hostile and of plain sites, the server that logs every request, and the judge
that reads the log.
"""
