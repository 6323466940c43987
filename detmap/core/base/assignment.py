"""Assignment of the largest sum between the rows and columns of a matrix.

Source: D. F. Crouse, "On implementing 2D rectangular assignment algorithms", IEEE Transactions on
Aerospace and Electronic Systems 52 (2016), section II: shortest augmenting paths.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Spend = Callable[[int], None]
"""Takes numbers of steps, of about 5 ns each, and may raise an error: n rows can need a round for
each pair of them.
"""
ROUND = 2_000
"""Steps of a round, besides one per column."""


def largest_sum(values: Floats, spend: Spend = lambda n: None) -> tuple[Places, Places]:
    """Returns rows and columns of the assigned values above 0 of a matrix (n, m), values from 0 on.

    The sum is exact up to rounding. Of several assignments with an equal sum it takes the one that
    SciPy's linear_sum_assignment takes: the order of rows, columns and ties is the same.
    """
    positive = values > 0
    if (positive.sum(axis=0) <= 1).all() and (positive.sum(axis=1) <= 1).all():
        rows, columns = np.nonzero(positive)  # nothing competes
        return rows, columns
    rows, columns = assign_all(values, spend)
    chosen = positive[rows, columns]
    return rows[chosen], columns[chosen]


def assign_all(values: Floats, spend: Spend = lambda n: None) -> tuple[Places, Places]:
    """Returns rows and columns of the min(n, m) assigned values of a matrix (n, m); as
    `largest_sum`, with values of any sign.
    """
    turned = values.shape[0] > values.shape[1]
    rows, columns = _solve(values.T if turned else values, spend)
    return (columns, rows) if turned else (rows, columns)


def _solve(values: Floats, spend: Spend) -> tuple[Places, Places]:
    """Each row and its column with the largest sum of values (n, m), n <= m."""
    n, m = values.shape
    of_rows, of_columns = np.zeros(n), np.zeros(m)  # dual variables
    row_of = np.full(m, -1)
    column_of = np.full(n, -1)
    for start in range(n):
        path, nearest = np.full(m, -1), np.full(m, np.inf)
        open_columns = np.arange(m)[::-1].copy()
        n_open, row, lowest, rows, columns = m, start, 0.0, [], []
        while True:
            spend(ROUND + m)
            rows.append(row)
            left = open_columns[:n_open]
            reach = lowest - values[row, left] - of_rows[row] - of_columns[left]
            better = reach < nearest[left]
            nearest[left[better]], path[left[better]] = reach[better], row
            lowest = float(nearest[left].min())
            best = np.flatnonzero(nearest[left] == lowest)
            free = best[row_of[left[best]] < 0]
            at = int(free[-1] if len(free) else best[0])  # a free column ends the path
            column = int(left[at])
            columns.append(column)
            n_open -= 1
            open_columns[at] = open_columns[n_open]
            if row_of[column] < 0:
                break
            row = int(row_of[column])
        of_rows[start] += lowest
        others = np.array(rows[1:], dtype=np.int64)
        of_rows[others] += lowest - nearest[column_of[others]]
        of_columns[columns] -= lowest - nearest[columns]
        row = -1
        while row != start:
            row = int(path[column])
            row_of[column] = row
            column, column_of[row] = int(column_of[row]), column
    return np.arange(n), column_of
