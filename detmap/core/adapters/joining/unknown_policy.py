"""Policy for images and classes of detections that are not in the ground truth, and for class ids
if the ground truth has only names.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import json_faults
from detmap.core.base.open_files import shown
from detmap.core.tables import Categories, Truth
from detmap.core.tables.extension import with_axes
from detmap.core.tables.join_keys import KEYS, Earlier, Evidence, Key
from detmap.core.tables.notes import Note, listed_names
from detmap.errors import DataError, counted, few

Unknown = Literal["error", "drop", "classes", "add"]
UNKNOWN = ("error", "drop")
"""What users choose from; the others are those of ``scope.unknown`` in a protocol."""
ClassNames = str | os.PathLike[str] | Sequence[str] | Mapping[int, str] | Categories

FLAG = '--unknown drop (in Python unknown="drop") drops and counts them'
ADD = (
    '--set scope.unknown=classes (in Python settings={"scope.unknown": "classes"}) adds the '
    "classes without objects, if the ground truth lists only classes with objects"
)
OTHER_MODEL = (
    "if a model of other classes made them, such as COCO's 80, ids that both have are not the same "
    "classes: join by name, --class-names FILE (in Python class_names=) with the names of the "
    "model; if the ids are those of the ground truth, which lacks some"
)
"""What each choice means for ids of which the ground truth lacks most."""
MOST_COMPARED = 2000  # names that one is compared with; of more, the neighbours in order

VOC_CLASSES = (
    "aeroplane,bicycle,bird,boat,bottle,bus,car,cat,chair,cow,diningtable,dog,horse,motorbike,"
    "person,pottedplant,sheep,sofa,train,tvmonitor"
)
"""Source: VOCinit.m of the VOC devkit; the only classes in VOC's form whose numbers are agreed."""


class Policy(NamedTuple):
    """What to do with unknown images and classes, and what class ids and columns mean.

    Parameters
    ----------
    unknown : "error" rejects detections on unknown images or of unknown classes; "drop" drops them
        and counts them in the notes and the digest; "classes" adds the classes without objects, and
        "add" images too
    class_names : meaning of the detections' class ids; None if they are those of the ground truth
    source : of `class_names`, for messages
    new_names : what the protocol's ``classes`` makes of class names; names that become one name are
        one class
    image_key, class_key : what columns name images and classes by that leave it open; None:
        their values decide (`detmap.core.tables.join_keys`)
    earlier : of the pieces of a file that were read before; None: it is read as a whole
    """

    unknown: Unknown = "error"
    class_names: Mapping[int, str] | None = None
    source: str = "class_names"
    new_names: Mapping[str, str] | None = None
    image_key: Key | None = None
    class_key: Key | None = None
    earlier: Earlier | None = None

    def evidence(self, column: str) -> Evidence | None:
        """Returns what earlier pieces say about a column, to which the next one is added."""
        earlier = self.earlier
        return None if earlier is None else earlier.evidence.setdefault(column, Evidence())

    @property
    def file_key(self) -> Key:
        """What names of files, and texts whose format says so, name images by."""
        return self.image_key or "name"

    def class_ids(
        self, truth: Truth, where: str
    ) -> tuple[NDArray[np.int64], NDArray[np.int32] | None]:
        """Returns the allowed class ids, ascending, and the position of each in the ground truth
        (None: in order).

        Raises `DataError` if their meaning is not defined.
        """
        if self.class_names is not None:
            by_name = positions_by_unique_name(truth, self.source)
            known = {i: by_name[name] for i, name in self.class_names.items() if name in by_name}
            _refuse_shared(known, self)
            ids = sorted(known)
            return np.array(ids, dtype=np.int64), np.array([known[i] for i in ids], dtype=np.int32)
        alone = truth.named or truth.family == "voc"
        if alone and ",".join(truth.categories.names) != VOC_CLASSES:
            raise DataError(
                where,
                f"classes are whole numbers here, and those of {truth.source} have names alone: "
                f"{few(truth.categories.names)}",
                "define them: --class-names FILE (in Python class_names=) with one name a "
                'line, line 1 for class 0, or JSON such as {"1": "cat"}; class_names= takes the '
                "`categories` of another ground truth, too",
            )
        return truth.categories.ids, None

    def known_by_new_name(
        self, truth: Truth, label: NDArray[np.int32], names: Sequence[Any] | NDArray[Any]
    ) -> NDArray[np.int32]:
        """Returns class positions, where unknown classes (-1) become the class of the ground truth
        that gets the same new name.

        Parameters
        ----------
        label : (n,) positions in the ground truth
        names : of the n rows' classes, or their ids; may be empty if all are known
        """
        if not (self.new_names and len(names)):
            return label
        lost = np.flatnonzero(label < 0).tolist()
        new, known, found = self.new_names, self.class_names or {}, label.copy()
        place = self._positions_by_new_name(truth)
        for i in lost:
            name = known.get(names[i], names[i])
            found[i] = place.get(new.get(name, name), -1)
        return found

    def names_of_classes(self, truth: Truth) -> dict[str, int]:
        """Returns the position of the class for each name that detections may give it: its own,
        and each that becomes the same new name.
        """
        place = self._positions_by_new_name(truth)
        aliases = {name: place[new] for name, new in (self.new_names or {}).items() if new in place}
        return aliases | {name: k for k, name in enumerate(truth.categories.names)}

    def _positions_by_new_name(self, truth: Truth) -> dict[Any, int]:
        new: Mapping[str, str] = self.new_names or {}
        place: dict[Any, int] = {}
        for k, name in enumerate(truth.categories.names):
            place.setdefault(new.get(name, name), k)
        return place

    def refuse_class_names(self, where: str) -> None:
        """Raises `DataError` if class names were given for named classes."""
        if self.class_names is not None:
            raise DataError(where, "names its classes", "remove --class-names")

    def positions_by_name(self, truth: Truth, where: str) -> dict[str, int]:
        """Returns class positions by name.

        Raises `DataError` if class names were given, or names are not unique.
        """
        self.refuse_class_names(where)
        return positions_by_unique_name(truth, where)


STRICT = Policy()


def policy(
    unknown: str = "error",
    class_names: ClassNames | None = None,
    image_key: str | None = None,
    class_key: str | None = None,
) -> Policy:
    """Creates a policy from arguments.

    Parameters
    ----------
    unknown : "error" or "drop"
    image_key, class_key : "id" or "name"; default: the header and the values of a column decide
    class_names : a list of names, whose ids are 0, 1, 2 ...; a dict from id to name; or the path of
        a file of either: one name per line, the first being class 0, or JSON; COCO ``categories``
        and those of a ground truth are accepted too

    Raises `DataError` for invalid arguments.
    """
    if unknown not in UNKNOWN:
        raise DataError("unknown", f"{unknown!r}", f"say {' or '.join(UNKNOWN)}")
    word: Unknown = "drop" if unknown == "drop" else "error"
    plain = Policy(
        word,
        image_key=chosen_key("image_key", image_key),
        class_key=chosen_key("class_key", class_key),
    )
    if class_names is None:
        return plain
    if isinstance(class_names, str | os.PathLike):
        file = Path(class_names)
        return plain._replace(class_names=_read_names(file), source=shown(file))
    if isinstance(class_names, Categories):
        names = dict(zip(class_names.ids.tolist(), class_names.names, strict=True))
        return plain._replace(class_names=names)
    return plain._replace(class_names=_names("class_names", class_names))


def chosen_key(where: str, given: str | None) -> Key | None:
    """Returns a key that a user chooses. Raises `DataError` if it is none."""
    if given is not None and given not in KEYS:
        raise DataError(where, f"{given!r:.60}", f"say {' or '.join(KEYS)}")
    return given


def _read_names(file: Path) -> dict[int, str]:
    """Reads class names from a file."""
    import msgspec

    from detmap.core.adapters import text_fields
    from detmap.core.base import unique_keys

    content = text_fields.decoded(file)
    if content.lstrip()[:1] in ("{", "["):
        try:
            names = msgspec.json.decode(content)
            unique_keys.require(content, shown(file))
            return _names(shown(file), names)
        except msgspec.DecodeError as error:
            fix = "write one name per line, or a JSON object from id to name"
            raise DataError(shown(file), *json_faults.explain(content, error, fix)) from None
    names = [name.strip(text_fields.SPACE) for name in content.replace("\r\n", "\n").split("\n")]
    while names and not names[-1]:
        names.pop()
    for line, name in enumerate(names, start=1):
        if not name:
            fix = (
                f"line k is class k - 1, so every class needs its line, including class {line - 1}"
            )
            raise DataError(f"{shown(file)}: line {line}", "is empty", fix)
    return _names(shown(file), names)


def _names(where: str, given: Any) -> dict[int, str]:
    """Returns class names by id, from a list, a dict, or COCO's categories."""
    if isinstance(given, Mapping) and isinstance(given.get("categories"), list):
        given = given["categories"]
    if isinstance(given, list | tuple) and given and all(isinstance(x, Mapping) for x in given):
        pairs = [(each.get("id"), each.get("name")) for each in given]
    elif isinstance(given, Mapping):
        pairs = list(given.items())
    elif isinstance(given, list | tuple):
        pairs = list(enumerate(given))
    else:
        raise DataError(where, f"a {type(given).__name__}", "give a list of names, or a dict")
    names: dict[int, str] = {}
    for key, name in pairs:
        try:
            number = int(key) if isinstance(key, str | int | np.integer) else None
        except ValueError:
            number = None
        if number is None or isinstance(key, bool) or not -(2**63) <= number < 2**63:
            raise DataError(where, f"{key!r:.60} is not a class id", "ids are whole numbers")
        if not isinstance(name, str) or not name:
            raise DataError(
                f"{where}: class {number}", f"{name!r:.60} is not a name", "give a name"
            )
        if number in names:
            raise DataError(where, f"class {number} occurs twice", "give each id one name")
        names[number] = name
    if not names:
        raise DataError(where, "lists no class", "give one name per line")
    return names


def _refuse_shared(known: Mapping[int, int], given: Policy) -> None:
    """Raises `DataError` if two ids mean one class of the ground truth."""
    first: dict[int, int] = {}
    for number, label in known.items():
        if label in first and given.class_names is not None:
            name = given.class_names[number]
            what = f"{name!r} is class {first[label]} and class {number}"
            raise DataError(given.source, what, "give every class one id")
        first[label] = number


def named_classes(truth: Truth, policy: Policy) -> tuple[Truth, Policy]:
    """Returns a ground truth whose classes have numbers alone with the classes that the policy
    names, which are then those of both sides; others as they are.

    Raises `DataError` for a class without a name, and two of one name.
    """
    given, ids = policy.class_names, truth.categories.ids.tolist()
    if given is None or truth.scope is not None or not truth.categories.are_numbers:
        return truth, policy
    if {*given.values()} & {*truth.categories.names}:  # names of VOC, which are numbers
        return truth, policy
    lacking = [each for each in ids if each not in given]
    if lacking:
        what = f"class {lacking[0]} of {truth.source} has no name"
        fix = f'name each class by its id, as in {{{lacking[0]}: "cat"}}; a list counts from 0'
        raise DataError(policy.source, what, fix)
    known = np.array(sorted(given), dtype=np.int64)
    names = tuple(given[each] for each in known.tolist())
    if len({*names}) < len(names):
        raise DataError(policy.source, "two classes share a name", "give each class one name")
    named = with_axes(truth, truth.images, Categories(known, names))
    return named, policy._replace(class_names=None)


def positions_by_unique_name(truth: Truth, source: str) -> dict[str, int]:
    """Returns class positions by name. Raises `DataError` if two classes share a name."""
    places = {name: place for place, name in enumerate(truth.categories.names)}
    if len(places) < len(truth.categories):
        what = f"names classes, but the class names of {truth.source} are not unique"
        raise DataError(source, what, "use category ids")
    return places


# --- messages -------------------------------------------------------------------------------------


def refusal(
    where: str,
    kind: str,
    strange: Iterable[Any],
    count: int,
    truth: Truth,
    things: str,
    *,
    can_add: bool = False,
) -> DataError:
    """Returns the error for detections of unknown images or classes.

    Parameters
    ----------
    where : the first of them
    kind : "image" or "class"
    strange : the unknown names or ids, in file order, with repetitions
    count : number of detections concerned
    things : "on" or "of"
    can_add : whether ``scope.unknown`` can add the classes
    """
    names = list(dict.fromkeys(strange))
    table: Sequence[Any] = truth.categories.names
    if kind == "image":
        table = truth.images.ids.tolist()
    elif not isinstance(names[0], str):
        table = truth.categories.ids.tolist()
    hint = nearest(names[0], [*table, *(truth.images.stems if kind == "image" else ())])
    has = f"the ground truth has {counted(len(table), kind)}"
    if kind == "image" and names[0] in truth.images.stems:
        hint = "it is the file stem of an image, and other rows have ids: use one of both in all; "
    if kind == "image":
        why = "they may be of another split"
        if 2 * len(names) < len(table) == len(np.unique(truth.image)):
            why = "the ground truth must list images without objects too"
            why += ", in CSV as a row without a box; or --set scope.unknown=add (in Python "
            why += 'settings={"scope.unknown": "add"}) adds them'
        has = f"{why}: {has}"
    if kind == "class" and not table:
        fix = "check that this is the annotated split, and the path of its annotations"
        what = f"{_lacking(kind, names, count, truth, things)}; the ground truth has no objects"
        return DataError(where, what, fix)
    if kind == "class" and truth.categories.are_numbers and isinstance(names[0], str):
        has = (
            "the ground truth has only class numbers: name them, --class-names FILE (in Python "
            f"class_names=); {has}"
        )
    example = f" such as {table[0]!r}" if len(table) else ""
    if kind == "class" and not isinstance(names[0], str) and len(names) > max(2, len(table)):
        what = _lacking(kind, names, count, truth, things)
        return DataError(where, what, f"{has}{example}; {OTHER_MODEL}, {FLAG}")
    if counted_from_zero(names, truth.categories) and kind == "class":
        fix = (
            "classes seem to count from 0 here: give --class-names FILE (in Python class_names=) "
            "with one name per line, line 1 for class 0; an Evaluator without truth has classes="
        )
        return DataError(where, _lacking(kind, names, count, truth, things), fix)
    if kind == "class" and names == [len(table)] and table == list(range(len(table))):
        fix = (
            "if classes count from 1 here, --fix classes-one-based (in Python class_names=); "
            f"if {names[0]} is another class, {FLAG}"
        )
        return DataError(where, _lacking(kind, names, count, truth, things), fix)
    what = _lacking(kind, names, count, truth, things)
    fix = f"{hint}{has}{example}; {FLAG}"
    return DataError(where, what, f"{fix}; {ADD}" if can_add else fix)


def dropped(
    kind: str, strange: Iterable[Any], count: int, source: str, categories: Categories | None = None
) -> tuple[Note, ...]:
    """Returns notes on dropped detections of unknown images or classes.

    Parameters
    ----------
    kind : "image" or "class"
    strange : the unknown names or ids
    count : number of detections concerned
    categories : of the ground truth, for classes
    """
    strange = set(strange)
    things = "on images" if kind == "image" else "of classes"
    text = f"detections {things} that are not in the ground truth were dropped: {{names}}"
    notes = (Note(f"{kind}-unknown", text, count, source, listed_names(map(short, strange))),)
    if categories is None or not counted_from_zero(strange, categories):
        return notes
    text = (
        "class (id 0) is not in the ground truth, which counts from 1: classes of the detections "
        "seem to count from 0, then use --class-names FILE"
    )
    return (*notes, Note("class-zero", text, 1, source, adding="once"))


def counted_from_zero(ids: Iterable[Any], categories: Categories) -> bool:
    """Checks for a class 0 where the classes of the ground truth count from 1: it was not added to
    them, so the other ids are off by one.
    """
    known = categories.ids
    return 0 in ids and len(known) > 0 and bool(known[0] == 1)


def off_by_one(used: NDArray[Any], known: NDArray[Any], source: str) -> tuple[Note, ...]:
    """Returns a note if class ids of detections seem to be one less or one more than those of the
    objects.

    Parameters
    ----------
    used, known : the different ids of both, ascending; names have no note
    """
    if not (len(used) and len(known)) or "U" in (used.dtype.kind, known.dtype.kind):
        return ()
    low, high, first, last = (int(each) for ends in (used, known) for each in ends[[0, -1]])
    step = first - low
    if {low, first} != {0, 1} or (last - high) * step <= 0:
        return ()
    change = "add 1 to" if step > 0 else "subtract 1 from"
    text = f"class ids of detections from {low} on, beside {first} and higher of objects: {change} "
    text += "them if both name the same classes"
    return (Note("class-zero", text, len(used), source, adding="once"),)


def _lacking(kind: str, names: Sequence[Any], count: int, truth: Truth, things: str) -> str:
    return (
        f"no {kind} {short(names[0])} in {truth.source}; in all {counted(count, 'detection')} "
        f"{'is' if count == 1 else 'are'} {things} {counted(len(names), kind)} "
        f"that it lacks: {few(map(short, names))}"
    )


def nearest(name: Any, known: Sequence[Any]) -> str:
    """Returns "did you mean ...? " for a similar name, "" if there is none."""
    if not isinstance(name, str):
        return ""
    import difflib  # both for messages alone
    import unicodedata
    from bisect import bisect

    names = sorted({each for each in known if isinstance(each, str) and each})
    for how, change in (
        ("Unicode normalization", lambda each: unicodedata.normalize("NFKC", each)),
        ("case", str.casefold),
        ("case, spaces, _ and -", lambda each: re.sub("[ _-]+", " ", each.casefold())),
    ):
        same = [each for each in names if change(each) == change(name)]
        if same:
            return f"did you mean {short(same[0])}? only the {how} differs; "
    if len(names) > MOST_COMPARED:
        at = bisect(names, name)
        names = names[max(0, at - MOST_COMPARED // 2) : at + MOST_COMPARED // 2]
    digits = re.findall("[0-9]+", name)  # of another number it is another image or class
    names = [each for each in names if re.findall("[0-9]+", each) == digits]
    close = difflib.get_close_matches(name[:200], names, n=1)
    return f"did you mean {short(close[0])}? " if close else ""


def short(value: Any) -> str:
    """Returns a name or id, shortened for messages."""
    spelled = repr(value)
    return spelled if len(spelled) <= 60 else f"{spelled[:57]}..."
