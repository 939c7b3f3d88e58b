"""The browser lane: pages rendered by Chromium, behind the contract of a fetcher."""
