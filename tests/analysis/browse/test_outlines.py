"""Outlines of shapes: at most 24 points, on the border of the shape."""

from pathlib import Path

import numpy as np

import detmap
from detmap.analysis.browse.outlines import MOST_POINTS, outlines
from detmap.core.overlaps.keypoints import Keypoints
from detmap.core.overlaps.rotated_boxes import RotatedBoxes
from tests.analysis.diagnosis.test_shape_overlaps import rectangles


def test_masks_of_rectangles_have_their_corners(tmp_path: Path) -> None:
    truth = detmap.read_truth(rectangles(tmp_path, 1)[0], shapes="masks")
    rows = np.arange(len(truth))[::-1]
    count, points = outlines(truth.shapes, rows)
    assert count.max() <= MOST_POINTS
    for row, some in zip(rows, np.split(points, np.cumsum(count)[:-1]), strict=True):
        x, y, w, h = truth.boxes[row]
        assert (some.min(axis=0).tolist(), some.max(axis=0).tolist()) in (
            ([x, y], [x + w, y + h]),
            ([x, y], [x + w - 1, y + h]),  # a single column has its left side alone
        )
        assert {*some[:, 1].tolist()} == {y, y + h}


def test_empty_masks_have_no_points() -> None:
    images = {
        "images": [{"id": 1, "width": 4, "height": 3}],
        "categories": [{"id": 1, "name": "a"}],
    }
    runs = ([12], [4, 2, 6])
    objects = [
        {"id": k, "image_id": 1, "category_id": 1, "bbox": [1, 1, 1, 2], "area": 2, "iscrowd": 0}
        | {"segmentation": {"size": [3, 4], "counts": counts}}
        for k, counts in enumerate(runs, 1)
    ]
    truth = detmap.read_truth({**images, "annotations": objects}, shapes="masks")
    count, points = outlines(truth.shapes, np.array([0, 1]))
    assert (count.tolist(), points.tolist()) == ([0, 2], [[1.0, 1.0], [1.0, 3.0]])


def test_rotated_boxes_have_four_corners_and_keypoints_those_that_are_labeled() -> None:
    values = np.array([[10.0, 10, 4, 2, 0], [20, 20, 4, 2, 0]])
    count, points = outlines(RotatedBoxes(values), np.array([1]))
    assert (count.tolist(), points.min(axis=0).tolist()) == ([4], [18.0, 19.0])
    marks = np.zeros((2, 30, 3))
    marks[0, 3] = 5, 6, 2
    marks[1, :] = 1, 1, 1
    count, points = outlines(Keypoints(marks, np.ones(2)), np.array([0, 1]))
    assert count.tolist() == [1, MOST_POINTS]
    assert points[0].tolist() == [5.0, 6.0]
