"""The bus: one contract (`contract`) and three implementations: `local`, `workers` and `kafka`."""
