"""Rows in one PostgreSQL database, or shared out over several."""
