"""The table of formats of benchmarks."""

from pathlib import Path

from detmap.core.adapters.format_rows import (
    Format,
    Looks,
    any_file,
    file_with,
    folder_like,
    lazy,
    nothing,
    row,
)

HERE = "detmap.benchmarks"
LOOKS = "truth_looks", "detections_look"


def file_if_asked(path: Path) -> int:
    """Matches any file, but never before another format."""
    return -any_file(path)


def file_like(suffix: str, look: str) -> Looks:
    """Scores files with this suffix by the function of a place, so that others do not import it."""
    return lambda path: lazy(look)(path) if file_with(suffix)(path) else 0


def folder_format(
    name: str, module: str, what: str, options: tuple[str, ...] = (), looks: tuple[str, str] = LOOKS
) -> Format:
    """Returns the row of a format of folders; `looks` are functions beside its readers."""
    home = f"{HERE}.{module}.files"
    one, other = (folder_like(f"{home}:{each}") for each in looks)
    return row(name, "a folder", home, one, other, what, options)


def file_format(
    name: str, module: str, looks: tuple[Looks, Looks], what: str, options: tuple[str, ...] = ()
) -> Format:
    """Returns the row of a format of files."""
    return row(name, "a file", f"{HERE}.{module}.files", *looks, what, options)


OPEN_IMAGES = file_like(".csv", f"{HERE}.open_images.files:looks")
LUNA16 = (
    file_like(".csv", f"{HERE}.luna16.files:truth_looks"),
    file_like(".csv", f"{HERE}.luna16.files:detections_look"),
)
SCALABEL, ODGT = (lazy(f"{HERE}.shared.looks:{name}") for name in ("scalabel", "odgt"))
FORMATS: tuple[Format, ...] = (
    folder_format(
        "kitti", "kitti", "KITTI text: label_2 and results, one file per image", ("image_sizes",)
    ),
    folder_format("dota", "dota", "DOTA: labelTxt, and Task1_<class>.txt", ("shapes",)),
    Format(
        "rotated-xml",
        "a folder",
        folder_like(f"{HERE}.hrsc_dior.files:truth_looks"),
        nothing,
        lazy(f"{HERE}.hrsc_dior.files:read_truth"),
        lazy(f"{HERE}.dota.files:read_detections"),
        options=("shapes", "split"),
        what="HRSC2016, DIOR-R, roLabelImg: a folder of XML; detections as for dota",
    ),
    file_format(
        "coco-wholebody",
        "coco_wholebody",
        (file_if_asked, file_if_asked),
        "COCO-WholeBody: COCO JSON with keypoints of body, feet, face and hands",
        ("shapes", "roles", "attributes"),
    ),
    file_format(
        "open-images",
        "open_images",
        (OPEN_IMAGES, OPEN_IMAGES),
        "Open Images: CSV of boxes, with labels, label map and hierarchy beside it",
    ),
    *(
        Format(
            f"imagenet-{name}",
            "a file or a folder",
            folder_like(f"{HERE}.imagenet.files:{name}_looks"),
            file_like(".txt", f"{HERE}.imagenet.files:detections_look"),
            lazy(f"{HERE}.imagenet.files:read_{name}"),
            lazy(f"{HERE}.imagenet.files:read_detections"),
            what=f"ImageNet {name.upper()}: XML with WordNet ids, and a text file of detections",
        )
        for name in ("det", "vid")
    ),
    folder_format(
        "visdrone",
        "visdrone",
        "VisDrone DET: text of annotations and results, one file per image",
        ("image_sizes",),
        ("looks", "looks"),
    ),
    folder_format(
        "uavdt",
        "uavdt",
        "UAVDT: text of ground truth, ignored regions and results, one file per sequence",
    ),
    file_format(
        "scalabel",
        "bdd100k",
        (SCALABEL, SCALABEL),
        "BDD100K: Scalabel JSON of frames and labels",
        ("classes",),
    ),
    file_format(
        "odgt", "crowdhuman", (ODGT, ODGT), "CrowdHuman odgt: a JSON record per image and line"
    ),
    folder_format(
        "wider", "wider_face", "WIDER FACE: wider_face_val.mat and its three lists, and EVENT/*.txt"
    ),
    folder_format(
        "bbgt",
        "caltech",
        "Caltech: text of bbGt.m (version 3), and x y w h score, one file per image",
    ),
    file_format("luna16", "luna16", LUNA16, "LUNA16: annotations.csv and results.csv, spheres"),
    file_format(
        "sa-co",
        "sa_co",
        (lambda path: file_if_asked(path) * (path.suffix.lower() == ".json"), nothing),
        "SA-Co: COCO JSON of image and phrase, a file per annotator",
    ),
)
