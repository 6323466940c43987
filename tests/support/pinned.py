"""Numbers that are known beforehand, each with its history: a changed number is a new entry with
its date and reason, never an edited one.
"""

from typing import NamedTuple


class Pin(NamedTuple):
    """A number from a day on.

    Parameters
    ----------
    date : ``2026-11-20``
    value : in full precision, or as it was published
    reason : why it is this number, or became it
    """

    date: str
    value: float
    reason: str


TWIN = "first value; the slow twin of the devkit's rule agrees"
OFFICIAL = "first value; pycocotools 2.0.11 on instances_test.json agrees in every bit"

# The bundled sample: protocol and detector to AP or mAP.
SAMPLE: dict[tuple[str, str], list[Pin]] = {
    ("coco-bbox", "contours"): [Pin("2026-11-20", 0.4477780444842106, OFFICIAL)],
    ("coco-bbox", "template"): [Pin("2026-11-20", 0.18738938166671465, OFFICIAL)],
    ("voc2007", "contours"): [Pin("2026-11-20", 0.6008492057113535, TWIN)],
    ("voc2007", "template"): [Pin("2026-11-20", 0.3074926968632667, TWIN)],
    ("voc2012", "contours"): [Pin("2026-11-20", 0.6042971474569891, TWIN)],
    ("voc2012", "template"): [Pin("2026-11-20", 0.2979290850808541, TWIN)],
}

AUTHORS = "as its authors and an independent slow program have it"

# VOC 2007 test, mAP in percent to four decimals: detector and protocol.
VOC2007: dict[tuple[str, str], list[Pin]] = {
    ("yolov2-voc", "voc2007-python"): [Pin("2026-11-20", 72.1868, AUTHORS)],
    ("yolov2-voc", "voc2007"): [Pin("2026-11-20", 72.1868, AUTHORS)],
    ("yolov2-voc", "voc2012-python"): [Pin("2026-11-20", 74.3876, AUTHORS)],
    ("yolov2-voc", "voc2012"): [Pin("2026-11-20", 74.3876, AUTHORS)],
    ("tiny-yolov2-voc", "voc2007-python"): [Pin("2026-11-20", 53.9744, AUTHORS)],
    ("tiny-yolov2-voc", "voc2007"): [Pin("2026-11-20", 53.9744, AUTHORS)],
    ("tiny-yolov2-voc", "voc2012-python"): [Pin("2026-11-20", 54.4145, AUTHORS)],
    ("tiny-yolov2-voc", "voc2012"): [Pin("2026-11-20", 54.4145, AUTHORS)],
    ("detector-8603", "voc2007-python"): [Pin("2026-11-20", 86.0310, AUTHORS)],
    ("detector-8603", "voc2007"): [Pin("2026-11-20", 86.0310, AUTHORS)],
    ("detector-8603", "voc2012-python"): [Pin("2026-11-20", 89.9941, AUTHORS)],
    ("detector-8603", "voc2012"): [Pin("2026-11-20", 89.9943, AUTHORS)],
}
