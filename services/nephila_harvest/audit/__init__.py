"""Audit: people label a stratified sample of pages or items; the report estimates precision."""
