"""The bus: one contract (`contract`), implementations `local` and `kafka`, and `pipe`, which joins two of the first."""
