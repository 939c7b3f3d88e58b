"""What-if: a recorded history of recrawls replayed against other frequencies and budgets."""
