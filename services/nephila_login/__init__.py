"""Logins of jobs: a session per site, opened before its first page and renewed when it is lost."""
