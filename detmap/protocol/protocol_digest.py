"""The digest of a protocol: equal for equal rules, whatever their prose."""

from __future__ import annotations

import hashlib
import json

from detmap.protocol import LATER, Protocol


def protocol_digest(protocol: Protocol) -> str:
    """Twelve hexadecimal digits over every key of the protocol but its prose.

    A key of `detmap.protocol.LATER` that has its default is left out: what was signed before there
    was such a key has the same digest still.
    """
    tree = protocol.to_dict()
    del tree["summary"], tree["source"]
    for key, default in LATER.items():
        table, name = key.split(".")
        if tree[table][name] == default:
            del tree[table][name]
    del tree["files"]  # formats of files do not change a number
    later = ("operating", "evaluation", "miss_rate", "kitti", "froc", "cgf1")
    for table in later:
        if not tree[table]:
            del tree[table]
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:12]
