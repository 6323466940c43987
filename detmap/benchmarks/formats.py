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


def file_if_asked(path: Path) -> int:
    """Matches any file, but never before another format."""
    return -any_file(path)


def file_like(suffix: str, look: str) -> Looks:
    """Scores files with this suffix by the function of a place, so that others do not import it."""
    return lambda path: lazy(look)(path) if file_with(suffix)(path) else 0


FORMATS: tuple[Format, ...] = (
    row(
        "kitti",
        "a folder",
        "detmap.benchmarks.kitti.files",
        folder_like("detmap.benchmarks.kitti.files:truth_looks"),
        folder_like("detmap.benchmarks.kitti.files:detections_look"),
        "KITTI text: label_2 and results, one file per image",
        options=("image_sizes",),
    ),
    row(
        "dota",
        "a folder",
        "detmap.benchmarks.dota.files",
        folder_like("detmap.benchmarks.dota.files:truth_looks"),
        folder_like("detmap.benchmarks.dota.files:detections_look"),
        "DOTA: labelTxt, and Task1_<class>.txt",
        options=("shapes",),
    ),
    Format(
        "rotated-xml",
        "a folder",
        folder_like("detmap.benchmarks.hrsc_dior.files:truth_looks"),
        nothing,
        lazy("detmap.benchmarks.hrsc_dior.files:read_truth"),
        lazy("detmap.benchmarks.dota.files:read_detections"),
        options=("shapes", "split"),
        what="HRSC2016, DIOR-R, roLabelImg: a folder of XML; detections as for dota",
    ),
    row(
        "coco-wholebody",
        "a file",
        "detmap.benchmarks.coco_wholebody.files",
        file_if_asked,
        file_if_asked,
        "COCO-WholeBody: COCO JSON with keypoints of body, feet, face and hands",
        options=("shapes", "roles", "attributes"),
    ),
    row(
        "open-images",
        "a file",
        "detmap.benchmarks.open_images.files",
        file_like(".csv", "detmap.benchmarks.open_images.files:looks"),
        file_like(".csv", "detmap.benchmarks.open_images.files:looks"),
        "Open Images: CSV of boxes, with labels, label map and hierarchy beside it",
    ),
    *(
        Format(
            f"imagenet-{name}",
            "a file or a folder",
            folder_like(f"detmap.benchmarks.imagenet.files:{name}_looks"),
            file_like(".txt", "detmap.benchmarks.imagenet.files:detections_look"),
            lazy(f"detmap.benchmarks.imagenet.files:read_{name}"),
            lazy("detmap.benchmarks.imagenet.files:read_detections"),
            what=f"ImageNet {name.upper()}: XML with WordNet ids, and a text file of detections",
        )
        for name in ("det", "vid")
    ),
    row(
        "visdrone",
        "a folder",
        "detmap.benchmarks.visdrone.files",
        folder_like("detmap.benchmarks.visdrone.files:looks"),
        folder_like("detmap.benchmarks.visdrone.files:looks"),
        "VisDrone DET: text of annotations and results, one file per image",
        options=("image_sizes",),
    ),
    row(
        "uavdt",
        "a folder",
        "detmap.benchmarks.uavdt.files",
        folder_like("detmap.benchmarks.uavdt.files:truth_looks"),
        folder_like("detmap.benchmarks.uavdt.files:detections_look"),
        "UAVDT: text of ground truth, ignored regions and results, one file per sequence",
    ),
    row(
        "scalabel",
        "a file",
        "detmap.benchmarks.bdd100k.files",
        lazy("detmap.benchmarks.shared.looks:scalabel"),
        lazy("detmap.benchmarks.shared.looks:scalabel"),
        "BDD100K: Scalabel JSON of frames and labels",
        options=("classes",),
    ),
    row(
        "odgt",
        "a file",
        "detmap.benchmarks.crowdhuman.files",
        lazy("detmap.benchmarks.shared.looks:odgt"),
        lazy("detmap.benchmarks.shared.looks:odgt"),
        "CrowdHuman odgt: a JSON record per image and line",
    ),
    row(
        "wider",
        "a folder",
        "detmap.benchmarks.wider_face.files",
        folder_like("detmap.benchmarks.wider_face.files:truth_looks"),
        folder_like("detmap.benchmarks.wider_face.files:detections_look"),
        "WIDER FACE: wider_face_val.mat and its three lists, and EVENT/*.txt",
    ),
    row(
        "bbgt",
        "a folder",
        "detmap.benchmarks.caltech.files",
        folder_like("detmap.benchmarks.caltech.files:truth_looks"),
        folder_like("detmap.benchmarks.caltech.files:detections_look"),
        "Caltech: text of bbGt.m (version 3), and x y w h score, one file per image",
    ),
    row(
        "luna16",
        "a file",
        "detmap.benchmarks.luna16.files",
        file_like(".csv", "detmap.benchmarks.luna16.files:truth_looks"),
        file_like(".csv", "detmap.benchmarks.luna16.files:detections_look"),
        "LUNA16: annotations.csv and results.csv, spheres",
    ),
    row(
        "sa-co",
        "a file",
        "detmap.benchmarks.sa_co.files",
        lambda path: file_if_asked(path) * (path.suffix.lower() == ".json"),
        nothing,
        "SA-Co: COCO JSON of image and phrase, a file per annotator",
    ),
)
