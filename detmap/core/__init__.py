"""The evaluation: files, tables, matching, curves, results, statistics, text."""
