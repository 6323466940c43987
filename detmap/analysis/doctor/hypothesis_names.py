"""The names of all findings: what each means, and whether a flag repairs it."""

from typing import NamedTuple


class Hypothesis(NamedTuple):
    """A row of the table in docs/doctor.md.

    Parameters
    ----------
    name : of the finding, and of the flag that repairs it
    meaning : what is wrong
    repaired : whether ``--fix`` repairs it
    """

    name: str
    meaning: str
    repaired: bool


def _rows(repaired: bool, **meanings: str) -> tuple[Hypothesis, ...]:
    return tuple(
        Hypothesis(name.replace("_", "-"), meaning, repaired) for name, meaning in meanings.items()
    )


HYPOTHESES = (
    *_rows(
        True,
        boxes_xyxy="left, top, right, bottom where left, top, width, height is read",
        boxes_xywh="left, top, width, height where corners are read (VOC's text)",
        boxes_cxcywh="center, width, height",
        boxes_xyhw="left, top, height, width",
        boxes_normalised="fractions of the image's sides, of its long side, of a letterboxed "
        "square, or of a fixed number of pixels; in any order of the four numbers",
        boxes_resized="pixels of a resized image: one factor for all, the same square for all, a "
        "fixed long or short side; the size is guessed",
        boxes_letterboxed="pixels of a letterboxed square, whose size is guessed",
        boxes_xy_swapped="x and y swapped: top, left, height, width; or top, left, bottom, right",
        boxes_sizes_swapped="scaled by an image's height in x and width in y",
        boxes_turned="of images turned by 90, 180 or 270 degrees, as their EXIF orientation says: "
        "of all portrait or landscape images, or of some; which of them is guessed",
        boxes_mirrored="left and right, or top and bottom exchanged",
        boxes_zero_based="pixels counted from 0 where the ground truth counts from 1 (VOC)",
        boxes_one_based="pixels counted from 1 where the ground truth counts from 0",
        boxes_off_by_one="width and height one pixel too small",
        boxes_narrow_by_one="width one pixel too small, height correct",
        boxes_low_by_one="height one pixel too small, width correct",
        boxes_shifted="all boxes shifted by the same number of pixels",
        boxes_too_wide_by_one="width and height one pixel too large",
        boxes_reversed="the last pixel before the first: right and left, or bottom and top swapped"
        " in some boxes (VOC's text)",
        classes_zero_based="class ids one too low",
        classes_one_based="class ids one too high",
        classes_contiguous="classes numbered consecutively from 0 or 1 where the ground truth's "
        "ids have gaps (COCO's 1 to 90)",
        classes_coco_ids="COCO's ids with gaps where the ground truth numbers its 80 classes "
        "consecutively",
        classes_coco_model="ids of a model with COCO's 80 classes, on a ground truth with some of "
        "them",
        classes_alphabetical="classes numbered in alphabetical order where those of the ground "
        "truth are not",
        classes_permuted="any other order, found by overlap on half of the images and checked on "
        "the other half",
        classes_as_text="class ids written as text",
        classes_spelling="class names of another case, plural or spelling",
        images_by_stem="images named by file stem, file name or path",
        images_by_id="images named by ids that are also file stems of other images",
        images_by_file_name="ids of other images beside the right file names (COCO results)",
        images_by_position="images numbered consecutively from 0 or 1 where the ground truth's ids"
        " are not",
        images_shifted="image ids too low or too high by a constant",
        scores_percent="scores from 0 to 100",
        scores_logits="scores that are logits",
        scores_negated="the lowest score is the most confident",
        masks_as_bytes="counts of run lengths are the text of Python bytes, b'...'",
        masks_c_order="run lengths of masks go along the rows, where COCO's go down the columns",
        masks_xy_swapped="run lengths of masks with x and y swapped",
        rows_repeated="detections that are in the file twice, bit for bit",
        duplicates="no suppression: many boxes overlap a higher-scoring box of their class",
    ),
    *_rows(
        False,
        images_without_detections="only some of the images have detections; AP50 after: these "
        "images",
        shapes_outside_boxes="masks or keypoints of detections do not lie in their bbox",
        images_shuffled="detections match no object of their own image, but those of another one",
        images_other_split="most detections are on images that the ground truth does not have",
        classes_without_detections="only some of the classes have detections; AP50 after: these "
        "classes",
        classes_agnostic="all detections have one class; AP50 after: all classes as one",
        scores_equal="all scores are the same: file order decides",
        scores_rounded="few different scores, and the order of equal ones changes AP50",
        scores_cut="a score threshold removed detections that are mostly correct",
        scores_top_k="only the few highest-scoring detections per image were kept, mostly correct "
        "ones",
        truth_structure="records without an id, a name or a box, or with numbers that are none; "
        "repeated ids of images or categories, and other errors of the file",
        truth_extreme_boxes="boxes with sides of more than 50 to 1",
        truth_labels_missing="most images have no objects but as many high-scoring detections as "
        "the others",
        truth_boxes="boxes of the ground truth are corners, centers, fractions, or have another "
        "order or scale, as sizes of images or `area` show; AP50 after: with its boxes read so",
        truth_image_sizes="width and height of images are exchanged: boxes reach out of them",
        truth_area="`area` of many objects is 0, or does not fit their box",
        truth_crowd="all objects, or at least 30 %, are crowds",
        truth_keypoints="keypoints with x and y are marked as not labeled, or num_keypoints is 0 "
        "beside visible ones",
        truth_shapes="masks or polygons of the ground truth do not lie in their boxes",
        truth_unlisted="objects on images, or of categories, that the file does not list",
        truth_ids_twice="objects with the id of another one: pycocotools confuses them",
        truth_near_duplicates="objects of a class that are nearly the same box",
        truth_empty_boxes="objects with a box without a size",
        truth_outside="objects outside of their image",
        truth_box_format="VOC XML whose numbers are continuous pixels or pixels from 0",
        truth_area_missing="objects without an area under rules that use it",
        truth_crowd_missing="some objects have no crowd flag",
        truth_ignore_unused="objects marked ignore, which the rules do not read",
        truth_id_zero="an object with the id 0",
        truth_duplicates="objects that are in the ground truth twice",
        truth_images_twice="images that are listed under two ids",
        truth_benchmark="nearly a known benchmark: without images that have no objects, without "
        "crowds or difficult objects, or with some more or fewer",
        unexplained="boxes match objects as by chance, on all images or a part of them, and none "
        "of the above fits: shares of matched objects by order of images, orientation, size and "
        "class, and the range of coordinates",
    ),
)
FIXES = tuple(each.name for each in HYPOTHESES if each.repaired)


def table() -> str:
    """The table as Markdown."""
    lines = [
        f"| `{each.name}` | {each.meaning} | {'yes' if each.repaired else ''} |"
        for each in HYPOTHESES
    ]
    return "\n".join(["| finding | what is wrong | `--fix` |", "|---|---|---|", *lines, ""])
