"""Slow, obvious twins of the evaluator: each is one rule, written to be read next to its source.

Nothing here shares code with the package, so that an agreement of the two means something.
"""
