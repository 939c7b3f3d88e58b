"""The tools with which rules are written: check, format, test, try, compare, apply, watch. They print nothing."""
