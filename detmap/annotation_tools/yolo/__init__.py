"""Reads YOLO: data.yaml, obj.data, folders of labels and predictions.json."""
