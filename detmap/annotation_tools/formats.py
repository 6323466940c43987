"""The table of formats of annotation tools."""

from detmap.core.adapters.format_rows import Format, Looks, Place, lazy, nothing, row

HERE = "detmap.annotation_tools"
LOOKS = f"{HERE}.looks"
NO_DETECTIONS = lazy(f"{HERE}.export_tables:no_detections")
SIZES, NAMED = ("image_sizes",), ("roles", "attributes")


def closer(function: str) -> Looks:
    """Calls a function of a reader's module only for folders, and files that may be of it."""
    may_be, looks = lazy(f"{LOOKS}:may_be"), lazy(f"{HERE}.{function}")
    module = function.partition(":")[0]
    return lambda path: looks(path) if may_be(path, module) else 0


def export(
    name: str, place: Place, what: str, options: tuple[str, ...], *, scored: bool = True
) -> Format:
    """Returns the row of a tool whose module has the name of the format."""
    looks, read = lazy(f"{LOOKS}:{name}"), lazy(f"{HERE}.{name}:read_truth")
    found = lazy(f"{HERE}.{name}:read_detections") if scored else NO_DETECTIONS
    return Format(name, place, looks, looks, read, found, options=options, what=what)


FORMATS: tuple[Format, ...] = (
    Format(
        "roboflow",
        "a file or a folder",
        closer("roboflow:looks"),
        nothing,
        lazy(f"{HERE}.roboflow:read_truth"),
        NO_DETECTIONS,
        options=("split", "shapes", "box_format", "image_sizes", "roles", "attributes"),
        what="Roboflow: _annotations.coco.json or .csv of a split",
    ),
    row(
        "retinanet",
        "a file",
        f"{HERE}.retinanet_csv",
        closer("retinanet_csv:looks"),
        closer("retinanet_csv:detections_look"),
        "CSV without a header: image, four corners, class, and score",
        options=("box_format", "image_sizes", "roles", "attributes"),
        detection_options=("box_format",),
    ),
    Format(
        "cvat",
        "a file or a folder",
        closer("cvat:looks"),
        nothing,
        lazy(f"{HERE}.cvat:read_truth"),
        NO_DETECTIONS,
        options=("roles", "attributes"),
        what="CVAT for images 1.1: annotations.xml",
    ),
    row(
        "labelstudio",
        "a file",
        f"{HERE}.label_studio",
        closer("label_studio:looks"),
        closer("label_studio:detections_look"),
        "Label Studio: JSON or JSON-MIN, and predictions in JSON",
    ),
    row(
        "labelme",
        "a file or a folder",
        f"{HERE}.labelme",
        closer("labelme:looks"),
        closer("labelme:detections_look"),
        "LabelMe: one JSON file per image",
        options=("roles", "attributes"),
    ),
    row(
        "darknet",
        "a file",
        f"{HERE}.darknet_json",
        nothing,
        closer("darknet_json:looks"),
        "Darknet: detections of -out result.json",
    ),
    export("fiftyone", "a file or a folder", "FiftyOne's labels.json", SIZES + NAMED),
    export("createml", "a file or a folder", "CreateML JSON, a list of images", SIZES),
    export("via", "a file", "VGG Image Annotator JSON", SIZES, scored=False),
    export("supervisely", "a folder", "a Supervisely project or dataset", NAMED),
    export("vott", "a file", "VoTT's JSON export", SIZES, scored=False),
    row(
        "huggingface",
        "a file or a folder",
        f"{HERE}.huggingface",
        lazy(f"{LOOKS}:huggingface"),
        lazy(f"{LOOKS}:huggingface"),
        "Hugging Face: metadata.jsonl, or Parquet with a column objects",
        options=("split", "box_format", *SIZES, *NAMED),
        detection_options=("box_format",),
    ),
    *(
        row(
            name,
            "a folder",
            f"{HERE}.{module}",
            nothing,
            lazy(f"{LOOKS}:{module}"),
            f"{what}, one file per image",
        )
        for name, module, what in (
            ("ultralytics-json", "ultralytics_json", "Results.to_json() of Ultralytics"),
            ("mmdet-preds", "mmdet_predictions", "predictions of mmdetection's inferencer"),
        )
    ),
)
