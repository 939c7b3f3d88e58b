"""The bus: one contract (`base`), one implementation per place (`local`: objects within one program)."""
