"""Results of an evaluation: metrics, tables, signature."""
