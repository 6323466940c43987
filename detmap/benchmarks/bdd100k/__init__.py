"""BDD100K: Scalabel's JSON."""
