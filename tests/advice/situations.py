"""What a row of the tables of advices is, and the files that its situation is made of."""

import json
import re
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

import detmap
from detmap import DetmapError
from tests.advice.collected import advices
from tests.support import builders as make
from tests.support.running import run
from tests.support.varied_exports import Case, sizes_csv
from tools.doctor_sets import Look, Set, generated

LOOK = Look(n_images=24, n_classes=3, per_image=2.5)


@cache
def drawn(shape: str = "boxes") -> Set:
    """A generated ground truth and the results of a detector on it."""
    return generated(5, shape, LOOK)


@cache
def right_ap(shape: str = "boxes") -> float:
    """AP of the right files; `test_followed` compares it with pycocotools."""
    given = drawn(shape)
    kind = {"boxes": "coco-bbox", "masks": "coco-segm", "keypoints": "coco-keypoints"}[shape]
    return detmap.evaluate(given.truth, given.rows, kind)["AP"]


class Place:
    """A folder with the right files, `truth` and `found`, and wrong ones beside them."""

    def __init__(self, folder: Path, shape: str = "boxes") -> None:
        self.folder = folder
        self.shape = shape
        self.made: Any = None
        self.right = drawn(shape).copy()
        self.truth = self.write("truth.json", self.right.truth)
        self.found = self.write("found.json", self.right.rows)

    def write(self, name: str, content: Any) -> Path:
        """A file of text, bytes or JSON."""
        return make.write(self.folder / name, content)

    def changed(self, change: Callable[[dict[str, Any]], Any], name: str = "wrong.json") -> Path:
        """Detections of which each record is changed."""
        return self.write(name, [change(dict(row)) for row in self.right.rows])

    def converted(self, name: str, to: str, *, found: bool = False, truth: Any = None) -> Path:
        """The files in another format."""
        if (self.folder / name).exists():
            return self.folder / name
        source = self.found if found else self.truth
        given = ["--truth", truth or self.truth] if found else []
        done = run("convert", source, self.folder / name, "--to", to, *given)
        assert done.code == 0, done.err
        return self.folder / name

    def names(self) -> Path:
        """A file of the names of the classes, one per line."""
        lines = [f"{each['name']}\n" for each in self.right.truth["categories"]]
        return self.write("names.txt", "".join(lines))

    def names_by_id(self) -> Path:
        """The same as JSON."""
        classes = self.right.truth["categories"]
        return self.write("names.json", {str(each["id"]): each["name"] for each in classes})

    def classes(self) -> dict[int, str]:
        """Names by id."""
        return {each["id"]: each["name"] for each in self.right.truth["categories"]}

    def sizes(self) -> Path:
        """A file of the sizes of the images."""
        return sizes_csv(self.case(), self.folder)

    def case(self, rows: list[dict[str, Any]] | None = None, *, objects: Any = None) -> Case:
        """The right files, or these detections and objects, as the writers of formats take them."""
        tree = self.right.truth
        images, classes = (
            {each["id"]: k for k, each in enumerate(tree[group])}
            for group in ("images", "categories")
        )

        def placed(row: dict[str, Any]) -> tuple[Any, ...]:
            return images[row["image_id"]], classes[row["category_id"]], tuple(row["bbox"])

        return Case(
            [(each["file_name"], each["width"], each["height"]) for each in tree["images"]],
            [each["name"] for each in tree["categories"]],
            [placed(row) for row in (tree["annotations"] if objects is None else objects)],
            [(*placed(row), row["score"]) for row in (self.right.rows if rows is None else rows)],
        )


Words = list[Any]
Make = Callable[[Place], Words | Callable[..., Any]]


class Row(NamedTuple):
    """How an advice is followed.

    Parameters
    ----------
    advice : its key
    make : makes the situation: words of a command, or a function to call without arguments
    told : finds in what is printed what to write
    then : does it, with what was found: words after those of the command, arguments of the
        function, or a function of the place and what was found
    right : the number that results, by default that of the right files
    shape : boxes, masks or keypoints
    patch : what is another thing while it is printed
    """

    advice: str
    make: Make
    told: str
    then: str | Callable[..., Any] = "{0}"
    right: Callable[[Place], Any] | float | None = None
    shape: str = "boxes"
    patch: Mapping[str, Any] = MappingProxyType({})


def ways(advice: str, make: Make, *each: tuple[Any, ...]) -> list[Row]:
    """Rows of one situation: of each way out `told`, `then` and `right`."""
    return [Row(advice, make, *way) for way in each]


def answer(words: Words) -> Any:
    """AP of an evaluation; the exit code of another command."""
    if words[0] not in ("eval", "merge"):
        return run(*words).code
    done = run(*words, "--format", "json")
    assert done.code == 0, done.err
    metrics = json.loads(done.out)["metrics"]
    return metrics[next(iter(metrics))]


def printed(made: Words | Callable[..., Any]) -> str:
    """What is said about the situation, in one line."""
    if isinstance(made, list):
        done = run(*made)
        text = done.err + done.out
    else:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                result = made()
                text = "\n".join(map(str, [*getattr(result, "notes", ()), result]))
            except (DetmapError, TypeError, AttributeError, KeyError, IndexError) as error:
                text = str(error)
        text += "\n".join(str(each.message) for each in seen)
    return " ".join(text.split())


def is_said(advice: str, text: str) -> bool:
    """Whether a text has a piece of an advice that has no value in it, of three words or more."""
    pieces = [" ".join(each.split()) for each in re.split(r"\{.*?\}|[;,()]|: ", advices()[advice])]
    most = max(len(each.split()) for each in pieces)
    return any(each in text for each in pieces if len(each.split()) >= min(3, most))


def follow(row: Row, folder: Path) -> tuple[Any, Any]:
    """The number after doing what is printed, and the right one."""
    place = Place(folder, row.shape)
    made = row.make(place)
    if isinstance(made, list) and not isinstance(made[0], str):
        made = ["eval", *made]
    place.made = made
    with pytest.MonkeyPatch.context() as patched:
        for name, value in row.patch.items():
            patched.setattr(name, value)
        text = printed(made)
    assert is_said(row.advice, text), text
    found = re.search(row.told, text)
    assert found, text
    if not isinstance(row.then, str):
        got = row.then(place, *(found.groups() or (found[0],)))
    elif isinstance(made, list):
        words = [each.format(*found.groups()) for each in row.then.split(" ")]
        got = answer([*made, *(words[0].split() if words[1:] == [] else words)])
    else:
        got = made(**eval(f"dict({row.then.format(*found.groups())})", {"p": place}))
    number = got["AP"] if isinstance(got, detmap.Result) else got
    if row.right is None:
        code = isinstance(number, int) and not isinstance(number, bool)
        return number, 0 if code else right_ap(row.shape)
    return number, row.right(place) if callable(row.right) else row.right
