"""Keys of COCO records that say the same as others, or take the place of the score."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from detmap.core.adapters.coco import record_errors
from detmap.core.adapters.joining import unknown_policy
from detmap.core.adapters.joining.join import SCORES
from detmap.core.adapters.joining.unknown_policy import Policy
from detmap.core.base.arguments import is_number
from detmap.core.base.open_files import shown
from detmap.core.tables import Note, Truth
from detmap.errors import DataError


def is_scored(row: Mapping[str, Any]) -> bool:
    """Checks that no other key takes the place of the score."""
    return row.get("score") is not None or all(row.get(key) is None for key in SCORES)


def require_agreement(
    path: Path, truth: Truth, policy: Policy, group: str, rows: list[dict[str, Any]], start: int = 0
) -> None:
    """Raises `DataError` for the first record whose scores, or id and name of the class, contradict
    each other.

    Parameters
    ----------
    rows : the records from number `start` on
    """
    for i, row in enumerate(rows, start):
        score = row.get("score")
        for key in SCORES[1:] if is_number(score) else ():
            if is_number(row.get(key)) and row[key] != score:
                raise _two_values(path, group, i, row, ("score", key))
    try:
        ids, labels = policy.class_ids(truth, str(path))
        by_name = unknown_policy.positions_by_unique_name(truth, str(path))
    except DataError:
        return  # the ground truth has no ids, or no unique names, to compare
    places = range(len(ids)) if labels is None else labels.tolist()
    by_id = dict(zip(ids.tolist(), places, strict=True))
    for i, row in enumerate(rows, start):
        name, number = row.get("category_name"), id_of(row.get("category_id"))
        if not isinstance(name, str) or not isinstance(number, int):
            continue
        if name in by_name and by_id.get(number) != by_name[name]:
            raise _two_values(path, group, i, row, ("category_id", "category_name"))


def _two_values(
    path: Path, group: str, i: int, row: Mapping[str, Any], keys: tuple[str, str]
) -> DataError:
    """Returns the error for a record with two keys that contradict each other."""
    one, other = (f"{key} is {record_errors.short(row[key])}" for key in keys)
    fix = f"correct the record, or remove {keys[0]} or {keys[1]} from all records"
    return DataError(record_errors.place(path, group, i), f"{one}, but {other}", fix)


def set_scores(path: Path, group: str, rows: list[dict[str, Any]]) -> tuple[Note, ...]:
    """Sets the score of each record from the one other key that all records have in its place.

    Raises `DataError` if that key is not the same in all records, or two such keys differ.
    """
    used = [key for key in SCORES[1:] if any(is_number(row.get(key)) for row in rows)]
    without = [i for i, row in enumerate(rows) if row.get("score") is None]
    if not used and without:
        _require_numbers(path, group, rows, without)
    if not used or not without:
        return ()
    lacking = {
        key: next((i for i in without if not is_number(rows[i].get(key))), None) for key in used
    }
    whole = [key for key in used if lacking[key] is None]
    first, given = without[0], ", ".join(used)
    where, fix = record_errors.place(path, group, first), "write score into all records"
    if len(without) < len(rows):
        raise DataError(where, f"no score ({given}), and other records have one", fix)
    if not whole:
        i = lacking[used[0]]
        where = record_errors.place(path, group, first if i is None else i)
        raise DataError(where, f"no score and no {used[0]}, which other records have", fix)
    for i, row in enumerate(rows):
        for key in used:
            if is_number(row.get(key)) and row[key] != row[whole[0]]:
                raise _two_values(path, group, i, row, (whole[0], key))
        row["score"] = row[whole[0]]
    text = f"detections have no key score: {whole[0]} is read as the score"
    return (Note("score-key", text, len(rows), shown(path)),)


def _require_numbers(
    path: Path, group: str, rows: list[dict[str, Any]], without: list[int]
) -> None:
    """Raises `DataError` for a key in the place of the score that holds no number."""
    for i in without:
        for key in SCORES[1:]:
            if (value := rows[i].get(key)) is not None:
                what = f"no score, and {key} is {record_errors.short(value)}, not a number"
                fix = 'write the score of each detection as a number: "score": 0.9'
                raise DataError(record_errors.place(path, group, i), what, fix)


def id_of(value: Any) -> Any:
    """Returns an id as a key, None if invalid. Integral floats are integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None
