"""Formulas of textbooks: quantiles, intervals of a fraction, adjusted p-values."""
