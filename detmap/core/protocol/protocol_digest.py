"""The digest of a protocol: equal rules give equal digests; texts do not count."""

import json

from detmap.core.base.sha import sha256
from detmap.core.protocol import LATER, Protocol


def protocol_digest(protocol: Protocol) -> str:
    """Twelve hexadecimal digits over every key of the protocol except its texts.

    A key in `detmap.core.protocol.LATER` with its default value is left out, so adding a key does
    not change the digests of existing protocols.
    """
    tree = protocol.to_dict()
    del tree["summary"], tree["source"]
    for key, default in LATER.items():
        table, name = key.split(".")
        if tree[table][name] == default:
            del tree[table][name]
    del tree["files"]  # formats of files change no metric
    later = ("operating", "evaluation", "miss_rate", "kitti", "froc", "cgf1", "classes")
    for table in later:
        if not tree[table]:
            del tree[table]
    return sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:12]
