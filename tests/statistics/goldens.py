"""The cases of the study's data as `Matches`: verdicts are given, no box is."""

import json
from typing import Any

import numpy as np

import detmap
from detmap.core.matching.matches import Matches
from detmap.core.tables.grouping import offsets, ranked
from tests.support.real_data import data_path

INTEGRATORS = {
    "grid": "grid_envelope",
    "all": "all_points",
    "eleven": "eleven_point",
    "step": "step",
}


def protocol(n_thresholds: int, integrator: str = "grid_envelope") -> detmap.Protocol:
    """Two area ranges, a few thresholds, no limit that bites, no epsilon: the study's setting."""
    return detmap.load_protocol("coco-bbox").override(
        {
            "iou.thresholds": [0.5 + 0.1 * t for t in range(n_thresholds)],
            "subsets": {"all": {"area": [0, 1e10]}, "small": {"area": [0, 1024]}},
            "limits.max_dets": [1, 1000],
            "metrics": ["AP", "AP50", "APs", "AR@1000", "AR@1"],
            "ap.integrator": integrator,
            "ap.epsilon": 0.0,
        }
    )


def as_matches(case: dict[str, Any], detector: int, integrator: str = "grid_envelope") -> Matches:
    """One detector of a case."""
    rules = protocol(case["T"], integrator)
    rows, objects = case["detectors"][detector], case["objects"]
    image = np.array([row["image"] for row in rows], np.int32)
    label = np.array([row["cls"] for row in rows], np.int32)
    score = np.array([row["score"] for row in rows], np.float64)
    order, off = ranked(image, label, score, None, (case["I"], case["K"]))
    words = {
        verdict: np.array(
            [
                [
                    sum(1 << t for t, given in enumerate(area) if given == verdict)
                    for area in row["verdict"]
                ]
                for row in rows
            ],
            np.uint16,
        )[order]
        for verdict in "TI"
    }
    seen: dict[tuple[int, int], int] = {}
    rank = np.empty(len(rows), np.int32)
    for i, row in enumerate(order.tolist()):
        cell = int(label[row]), int(image[row])
        rank[i] = seen[cell] = seen.get(cell, -1) + 1
    obj_order = sorted(
        range(len(objects)), key=lambda i: (objects[i]["cls"], objects[i]["image"], i)
    )
    obj_label = np.array([objects[i]["cls"] for i in obj_order], np.int32)
    base = Matches.empty(
        rules,
        detmap.Categories(np.arange(case["K"]), tuple(f"class {k}" for k in range(case["K"]))),
    )
    n_images = case["I"]
    from dataclasses import replace

    return replace(
        base,
        image_ids=np.arange(n_images),
        digest=np.zeros((n_images, 2), np.uint64),
        beyond=np.zeros(n_images, np.int32),
        unjudged=np.zeros(n_images, np.int32),
        off=off,
        image=image[order],
        rank=rank,
        position=order,
        score=score[order],
        tp=words["T"],
        ignored=words["I"],
        obj_off=offsets(obj_label, case["K"]),
        obj_image=np.array([objects[i]["image"] for i in obj_order], np.int32),
        counted=np.array([objects[i]["counted"] for i in obj_order], bool),
    )


def load(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A case and what is expected of it."""
    folder = data_path("statistics")
    return tuple(  # type: ignore[return-value]
        json.loads((folder / f"{name}_{number}.json").read_text()) for name in ("case", "expected")
    )
