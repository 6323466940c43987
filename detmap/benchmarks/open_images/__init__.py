"""Open Images: its files, class hierarchy, and the mean as given."""
