"""The keys that rename classes before the evaluation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, TypeVar

from detmap.core.base.immutable import Value
from detmap.core.protocol.key_checks import CLASSES, Key
from detmap.core.tables import Categories, Detections, Truth
from detmap.core.tables.new_class_names import merged_classes, with_new_names
from detmap.errors import ProtocolError

Table = TypeVar("Table", Truth, Detections)


@dataclass(slots=True, eq=False, repr=False)
class ClassRules(Value):
    """What the classes of the files become, by name.

    Raises
    ------
    ProtocolError : a new name that is renamed too, because the result would depend on the order
    """

    renamed: Annotated[
        tuple[tuple[str, str], ...],
        Key(
            "classes of ground truth and detections that get another name, before anything else: "
            '`[classes.renamed] person = "pedestrian"`',
            CLASSES,
            "bdd100k label/to_scalabel.py, deal_bdd100k_category (name_mapping)",
            {},
        ),
    ]
    ignored_as: Annotated[
        tuple[tuple[str, str], ...],
        Key(
            "classes whose objects become objects of another class with the role `crowd`, and "
            "whose detections become detections of it; after `classes.renamed`",
            CLASSES,
            "bdd100k label/to_scalabel.py, deal_bdd100k_category (ignored_mapping)",
            {},
        ),
    ]

    def __post_init__(self) -> None:
        renamed, ignored = dict(self.renamed), dict(self.ignored_as)
        for name, new in (*self.renamed, *self.ignored_as):
            if new in renamed or (new in ignored and renamed.get(name) != new):
                key = "renamed" if renamed.get(name) == new else "ignored_as"
                raise ProtocolError(
                    f"classes.{key}.{name}",
                    f"the new name {new!r} gets another name itself",
                    "give the last name",
                )

    def new_names(self) -> Mapping[str, str]:
        """What each class of the two tables becomes."""
        ignored = dict(self.ignored_as)
        return ignored | {name: ignored.get(new, new) for name, new in self.renamed}

    def rename_table(self, table: Table) -> Table:
        """A table with the new names; itself if no class has another name."""
        return with_new_names(table, self.new_names(), self.ignored())

    def rename_categories(self, categories: Categories) -> Categories:
        """The classes with the new names."""
        return merged_classes(categories, self.new_names())[0]

    def rename(self, truth: Truth, detections: Detections) -> tuple[Truth, Detections]:
        """Both tables with the new names; a second time changes nothing."""
        return self.rename_table(truth), self.rename_table(detections)

    def ignored(self) -> frozenset[str]:
        """The classes of the files whose objects become crowds."""
        ignored = dict(self.ignored_as)
        first = {name for name, new in self.renamed if new in ignored}
        return frozenset(first | (ignored.keys() - dict(self.renamed).keys()))
