"""The confusion matrix by its counts: equal to the dense matrix, and small for many classes."""

import numpy as np
import pytest

import detmap
from detmap.analysis.diagnosis import confusion as module
from detmap.analysis.diagnosis.confusion import Confusion
from detmap.analysis.diagnosis.diagnosis_tables import confused_table
from detmap.analysis.html_report import confusion_figures
from detmap.core.base import memory
from detmap.errors import DataError


def drawn(seed: int, n_classes: int, n_cases: int = 60) -> Confusion:
    rng = np.random.default_rng(seed)
    some = rng.choice(n_classes + 1, 5)
    true, predicted = (rng.choice(some, n_cases).astype(np.int32) for _ in range(2))
    names = tuple(f"c{k}" for k in range(n_classes))
    return Confusion(names, "detmap", 0.5, 0.5, (true, predicted, np.zeros(n_cases, np.int32)))


def dense(found: Confusion) -> np.ndarray:
    """The matrix, one case at a time."""
    size = len(found.classes) + 1
    matrix = np.zeros((size, size), dtype=np.int64)
    for i, j, _ in zip(*found.cases, strict=True):
        matrix[i, j] += 1
    return matrix


@pytest.mark.parametrize("seed", range(8))
def test_counts_equal_the_matrix(seed: int) -> None:
    n = 1 + 6 * seed
    found = drawn(seed, n)
    matrix = dense(found)
    assert np.array_equal(found.matrix, matrix)
    row, column, count = found.counts()
    assert (count > 0).all()
    assert np.array_equal(matrix[row, column], count)
    assert count.sum() == matrix.sum()
    some = sorted({0, n // 2, n})
    assert np.array_equal(found.among(some), matrix[np.ix_(some, some)])
    inner = matrix[:n, :n].copy()
    np.fill_diagonal(inner, 0)
    order = np.argsort(-inner, axis=None, kind="stable")[:4]
    pairs = [(int(p) // n, int(p) % n, int(inner.ravel()[p])) for p in order]
    assert found.confused(4) == [(f"c{i}", f"c{j}", m) for i, j, m in pairs if m]
    wrong = inner.sum(axis=0) + inner.sum(axis=1)
    most = np.sort(np.argsort(-wrong, kind="stable")[: confusion_figures.MATRIX])
    shown = list(range(n + 1)) if n <= confusion_figures.MATRIX else [*most.tolist(), n]
    assert confusion_figures._most_confused([found]) == shown


@pytest.mark.parametrize("seed", range(3))
def test_many_classes_have_counts_as_values(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = drawn(seed, 12)
    whole = found.to_dict()
    assert whole["matrix"] == dense(found).tolist()
    monkeypatch.setattr(module, "MOST_DENSE", 11)
    short = found.to_dict()
    assert short.pop("matrix") is None
    wanted = [[i, j, int(n)] for (i, j), n in np.ndenumerate(dense(found)) if n]
    assert short.pop("counts") == wanted
    assert {**short, "matrix": None} == {**whole, "matrix": None}
    tables = [confused_table({"confusion": one}, percent=False) for one in (whole, found.to_dict())]
    assert tables[0].rows == tables[1].rows


def test_a_matrix_of_too_many_classes_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    found = drawn(0, 45_000)
    assert len(found.confused()) <= 10
    assert found.among([0, 45_000]).shape == (2, 2)
    monkeypatch.setattr(memory, "available", lambda: 1 << 30)
    with pytest.raises(DataError, match=r"confusion: a matrix of 45000 classes needs about 15\.1"):
        _ = found.matrix


def test_a_diagnosis_of_many_classes_needs_no_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 1 << 28)
    names = {k: str(k) for k in range(20_000)}
    box = [0, 0, 10, 10]
    truth = detmap.truth_from_arrays([0, 1], [5, 19_999], [box, box], categories=names)
    detections = detmap.detections_from_arrays(truth, [0, 1], [6, 19_999], [box, box], [0.9, 0.8])
    found = detmap.diagnose(truth, detections)
    assert module.confusion(found).confused() == [("5", "6", 1)]
