"""The rule engine: a rule describes the fields of the pages of a site; applied to a page it gives items.
docs/rules.md."""
