"""Webhooks: each change of a page is delivered to configured URLs, signed, in order, with retries."""
