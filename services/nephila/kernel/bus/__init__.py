"""The bus: one contract (`base`), one implementation per place: `local` (one program), `kafka` (over a broker)."""
