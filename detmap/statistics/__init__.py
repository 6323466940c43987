"""What numbers are worth: their uncertainty, their differences, what ties do to them."""
