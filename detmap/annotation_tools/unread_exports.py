"""Exports of tools that detmap does not read, or reads with other files: how they are recognized.

`detmap.core.adapters.recognition` names them in errors. Keys of nested values are joined by dots: a
list stands for its first item, ``*`` for any key.

Source: the documentation or the writer of each tool (docs/formats.md).
"""

from detmap.core.adapters.recognition import ALL_FILES, CONVERT, STREAM, Seen, panlabel

DATUMARO = "datum convert -i FOLDER -if datumaro -f coco_instances -o NEW (docs/recipes.md)"
PER_IMAGE = "predictions per image, as torchvision and Hugging Face return them"
PIPELINE = Seen("output of a Hugging Face pipeline", CONVERT)

KEYS: tuple[tuple[tuple[str, ...], Seen], ...] = (
    (("items", "categories"), Seen("Datumaro JSON", DATUMARO)),
    (("assets", "tags"), Seen("VoTT JSON", ALL_FILES)),
    (("asset", "regions"), Seen("VoTT JSON of one image", ALL_FILES)),
    (
        ("project", "config", "attribute", "file", "metadata", "view"),
        Seen("a project of VIA 3", "export COCO from VIA 2, or " + CONVERT),
    ),
    (("_via_img_metadata",), Seen("a project of VIA", ALL_FILES)),
    (("*.regions", "*.filename"), Seen("VIA JSON", ALL_FILES)),
    (("shapes", "imagePath"), Seen("LabelMe JSON", ALL_FILES)),
    (("classes", "labels"), Seen("labels.json of FiftyOne", ALL_FILES)),
    (("samples.filepath",), Seen("a data set of FiftyOne", "export a COCODetectionDataset")),
    (("frame_id", "objects"), Seen("results of Darknet", ALL_FILES)),
    (("data", "annotations.result"), Seen("Label Studio JSON", ALL_FILES)),
    (("label.rectanglelabels",), Seen("Label Studio JSON-MIN", ALL_FILES)),
    (
        ("image_url", "label"),
        Seen("JSON lines of Azure ML", f"export COCO from Azure, or {CONVERT}"),
    ),
    (("imageGcsUri",), Seen("import JSON lines of Vertex AI", CONVERT)),
    (("instance", "prediction"), Seen("batch predictions of Vertex AI", CONVERT)),
    (("source-ref",), Seen("a manifest of SageMaker Ground Truth", panlabel("sagemaker"))),
    (("data_row",), Seen("an export of Labelbox", panlabel("labelbox"))),
    (("Labeled Data",), Seen("an export of Labelbox", panlabel("labelbox"))),
    (("task_id", "response"), Seen("tasks of Scale", panlabel("scale-ai"))),
    (("task_id", "params"), Seen("tasks of Scale", panlabel("scale-ai"))),
    (("labels.box2d",), Seen("labels of BDD100K", ALL_FILES)),
    (("instances", "metadata"), Seen("SuperAnnotate JSON", panlabel("superannotate"))),
    (("objects.classTitle",), Seen("Supervisely JSON of one image", ALL_FILES)),
    (("item", "annotations"), Seen("Darwin JSON of V7", panlabel("v7-darwin"))),
    (("openlabel",), Seen("OpenLABEL JSON", panlabel("openlabel"))),
    (("metainfo", "data_list"), Seen("annotations of mmdet", "give COCO JSON, or " + CONVERT)),
    (("type", "features"), Seen("GeoJSON", CONVERT)),
    (("image", "annotations.coordinates"), Seen("CreateML JSON", ALL_FILES)),
    (("file_name", "objects"), Seen("metadata of a Hugging Face image folder", ALL_FILES)),
    (("image", "objects"), Seen("rows of a Hugging Face data set with objects", STREAM)),
    (("bbox", "category"), Seen("the objects of a Hugging Face row", STREAM)),
    (("bbox", "categories"), Seen("the objects of a Hugging Face row", STREAM)),
    (("file_name", "annotations"), Seen("data set dicts of detectron2", "give COCO JSON")),
    (("bboxes", "labels"), Seen("predictions of mmdet for one image", f"{ALL_FILES}; or {STREAM}")),
    (("boxes", "labels"), Seen(PER_IMAGE, STREAM)),
    (("*.boxes", "*.labels"), Seen(PER_IMAGE, STREAM)),
    (("score", "label", "box.xmin"), PIPELINE),
    (("*.score", "*.label", "*.box.xmin"), PIPELINE),
    (("predictions.class",), Seen("predictions of Roboflow", CONVERT)),
    (
        ("name", "class", "confidence", "box"),
        Seen("Ultralytics' to_json of one image", f"{ALL_FILES}; or {STREAM}"),
    ),
)
"""The keys of a record, the first one in a file."""

COLUMNS: tuple[tuple[tuple[str, ...], Seen], ...] = (
    (
        ("region_shape_attributes",),
        Seen("VIA CSV", "export JSON or COCO from VIA: detmap reads both"),
    ),
    (
        ("annotation_id", "lead_time"),
        Seen("Label Studio CSV", "export JSON or COCO from Label Studio: its CSV is for tables"),
    ),
    (
        ("Image Name", "Prediction", "Confidence"),
        Seen(
            "predictions.csv of YOLOv5, which has no boxes", "save labels: --save-txt --save-conf"
        ),
    ),
    (("objects",), Seen("rows of a Hugging Face data set with objects", CONVERT)),
    (
        ("PredictionString",),
        Seen(
            "Kaggle's PredictionString (several boxes in a cell)",
            "write one row per box, with the columns image,class,score,xmin,ymin,xmax,ymax",
        ),
    ),
)
"""The columns of a CSV file."""

XML: tuple[tuple[str, Seen], ...] = (
    (
        r"<annotations\b.*<track\b",
        Seen("CVAT for video XML", "export the task as CVAT for images 1.1 or COCO 1.0"),
    ),
    (r"<annotations\b.*<image\b", Seen("CVAT for images XML", ALL_FILES)),
    (r"<dataset\b.*<images\b", Seen("XML of dlib's imglab", CONVERT)),
)

LINES: tuple[tuple[str, Seen], ...] = (
    (
        r"(?i:(?:TRAIN\w*|TEST|VALIDATION?|UNASSIGNED),\w+://).*",
        Seen("import CSV of Vertex AI", CONVERT),
    ),
    (
        r"\S.*?(?: -?[\d.]+(?:,-?[\d.]+){3},\d+)+",
        Seen("lists of keras-yolo3 (path x1,y1,x2,y2,class ...)", panlabel("yolo-keras")),
    ),
)
"""The first line of a text."""

FOLDERS: tuple[tuple[str, Seen], ...] = (
    ("meta.json", Seen("a project of Supervisely", ALL_FILES)),
)
"""Files in a folder."""
