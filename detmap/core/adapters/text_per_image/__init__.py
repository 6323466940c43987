"""Lines of formats with one text file per image, and their layouts of columns."""
