"""Measurements and shows: every published figure has a command here and a raw result in results/."""
