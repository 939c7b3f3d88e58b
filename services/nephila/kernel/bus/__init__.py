"""The bus: one contract (`contract`) and two implementations, `local` and `kafka`, and `pipe` that joins two of the first."""
