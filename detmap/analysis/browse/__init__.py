"""The report folder: a page that shows every image, opened from disk without a server."""
