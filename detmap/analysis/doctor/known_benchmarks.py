"""Published benchmarks by their counts, to recognise a ground truth that is nearly one of them."""

from collections.abc import Iterator
from typing import NamedTuple

from detmap.core.tables import Truth

COCO = 80
NEAR = 0.03  # share by which a number of images may differ

VOC = (
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa"),
    *("train", "tvmonitor"),
)


class Benchmark(NamedTuple):
    """What a published split counts.

    Parameters
    ----------
    name : as people call it
    images, classes, objects : all of them, crowds and difficult ones too
    empty : images without an object
    neutral : objects that are crowds or difficult
    marks : names of classes that it has
    """

    name: str
    images: int
    classes: int
    objects: int
    empty: int
    neutral: int
    marks: tuple[str, ...]


_COCO_MARKS = ("person", "bicycle", "traffic light", "frisbee", "hair drier")
KNOWN = (
    Benchmark("COCO val2017", 5000, COCO, 36781, 48, 446, _COCO_MARKS),
    Benchmark("COCO train2017", 118287, COCO, 860001, 1021, 10498, _COCO_MARKS),
    Benchmark("COCO val2014", 40504, COCO, 291875, 367, 3625, _COCO_MARKS),
    Benchmark("COCO train2014", 82783, COCO, 604907, 702, 7324, _COCO_MARKS),
    Benchmark("VOC 2007 test", 4952, 20, 14976, 0, 2944, VOC),
    Benchmark("VOC 2007 trainval", 5011, 20, 15662, 0, 3054, VOC),
    Benchmark("VOC 2012 val", 5823, 20, 15787, 0, 1946, VOC),
    Benchmark("VOC 2012 trainval", 11540, 20, 31561, 0, 4111, VOC),
)
"""Source: the annotation files themselves; the counts of VOC also at
host.robots.ox.ac.uk/pascal/VOC, "Database statistics"."""


def differences(truth: Truth) -> Iterator[tuple[Benchmark, list[str]]]:
    """Benchmarks that a ground truth is nearly, and in what it differs from them."""
    names = set(truth.categories.names)
    neutral = int((truth.crowd | truth.difficult).sum())
    for known in KNOWN:
        if len(names) != known.classes or not names.issuperset(known.marks):
            continue
        fewer_images = known.images - len(truth.images)
        fewer = known.objects - len(truth)
        told = []
        if fewer_images and fewer_images == known.empty:
            told.append(f"without the {fewer_images:,} images that have no objects")
        elif fewer_images and abs(fewer_images) <= NEAR * known.images and not fewer:
            told.append(f"with {len(truth.images):,} images for {known.images:,}")
        elif fewer_images:
            continue
        kind = "difficult objects" if known.marks == VOC else "crowds"
        if fewer and fewer == known.neutral:
            told.append(f"without its {known.neutral:,} {kind}")
        elif not fewer and not neutral and known.neutral:
            told.append(f"with its {known.neutral:,} {kind} not marked as such")
        elif fewer and abs(fewer) <= NEAR * known.objects:
            told.append(f"with {len(truth):,} objects for {known.objects:,}")
        elif fewer:
            continue
        if told:
            yield known, told
