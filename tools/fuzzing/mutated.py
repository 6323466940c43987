"""A data.yaml, a protocol, a Parquet file or a receipt that is mutated: read, or refused in words,
within limits of time and memory; a receipt also contradicts itself or says the same.
"""

import functools
import io
import json
import random
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow
from pyarrow import parquet

import detmap
from detmap.core import protocol
from detmap.core.adapters.tabular import csv_parquet as sheets
from detmap.core.adapters.text_per_image import plain_yaml
from detmap.core.base.resources import folder
from detmap.errors import DetmapError
from detmap.reproducibility import receipt, receipt_contradictions
from tools.fuzzing._files import scratch

SECONDS = 20.0
MEGABYTES = 500
TIMES = [1] * 12 + [3] * 6 + [100] * 5 + [5000]
"""How often a piece is repeated. A tenth of the files get long: they take most of the time."""


class Kind(NamedTuple):
    """A file: its bytes, pieces that are put into it, its suffix, and what reads it."""

    whole: Callable[[], bytes]
    pieces: list[bytes]
    suffix: str
    read: Callable[[Path], object]


def case(seed: int) -> str | None:
    """What is wrong with reading one mutated file; a refusal in words is fine."""
    kind = KINDS[seed % len(KINDS)]
    data = mutated(random.Random(seed), kind.whole(), kind.pieces)
    file = scratch("mutated").with_suffix(kind.suffix)
    file.unlink(missing_ok=True)  # file systems flush a file that is truncated and written again
    file.write_bytes(data)
    before, begin = peak(), time.process_time()
    try:
        kind.read(file)
    except DetmapError as error:
        if len(str(error)) > 2000:
            return f"a message of {len(str(error))} characters"
    took, grown = time.process_time() - begin, peak() - before
    if took > SECONDS or grown > MEGABYTES:
        return f"{len(data)} bytes took {took:.1f} s and {grown:.0f} MB"
    return None


def mutated(rng: random.Random, whole: bytes, pieces: list[bytes]) -> bytes:
    """Bytes with parts cut out, doubled, or replaced by pieces, now and then many times."""
    data = bytearray(whole)
    for _ in range(rng.randrange(1, 6)):
        a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        b = min(b, a + rng.choice([0, 1, 4, 40]))
        times = rng.choice(TIMES)
        data[a:b] = rng.choice([b"", bytes(data[a:b]), rng.choice(pieces)]) * times
    return bytes(data[:1_000_000])


def peak() -> float:
    """Megabytes that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@functools.cache
def table_bytes() -> bytes:
    """A Parquet file of nine boxes."""
    columns = {name: [1.0] * 9 for name in "xywh"}
    columns |= {"image": ["a"] * 9, "class": ["b", "c", "d"] * 3}
    stream = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), stream)
    return stream.getvalue()


@functools.cache
def receipt_bytes() -> bytes:
    """The receipt of the sample."""
    place = folder("datasets") / "shapes"
    paths = {
        "truth": place / "instances_test.json",
        "detections": place / "detections/contours.json",
    }
    result = detmap.evaluate(paths["truth"], paths["detections"])
    digests, options = ("0" * 12, "1" * 12), dict.fromkeys(receipt.OPTIONS)
    return receipt.make(result, digests, paths, options, ["detmap"]).to_bytes()


in_order = functools.partial(json.dumps, sort_keys=True)


def read_receipt(file: Path) -> None:
    """Reads a receipt; an AssertionError if a changed one is believed."""
    found = receipt.parse(file.read_bytes(), "mutated")
    same = in_order(found.content) == in_order(json.loads(receipt_bytes()))
    assert same or receipt_contradictions.contradictions(found), "a changed receipt was believed"


YAML = b"path: .\nval: images/val\nnc: 2\nnames: {0: &a cat, 1: dog}\nkpt_shape: [17, 3]\nx: *a\n"
OF_YAML = [b"[", b"{", b"]", b"}", b"- ", b"? ", b": ", b"&a ", b"*a, ", b"<<: *a\n", b"59:", b"x,"]
OF_YAML += [b"!!set ", b"'", b'"', b"|\n ", b"#", b"\n", b" ", b"---\n", b"\xff", b"\0", b"k: 1\n"]
TOML = (folder("configs") / "coco-bbox.toml").read_bytes()
OF_TOML = [b"a.", b"[", b"{a=", b'"', b"'", b"[[a]]\n", b"1", b"=", b"\n", b'"""', b"1e9,", b"\\"]
OF_TOML += [b"[subsets.x]\n", b"subsets.a.b=[1,2]\n", b"\xff", b"nan", b"0xf", b"true", b"#"]
PARQUET = [bytes([value]) for value in (0, 1, 2, 0x15, 0x7F, 0x80, 0xFF)] + [b"\xff" * 8, b"PAR1"]
RECEIPT = [b"0", b"1", b'"', b",", b"{", b"[", b"e9", b"null", b'"digest": "",', b'"AP": 0.9,']
KINDS = (
    Kind(lambda: YAML, OF_YAML, ".yaml", plain_yaml.load),
    Kind(lambda: TOML, OF_TOML, ".toml", protocol.load),
    Kind(table_bytes, PARQUET, ".parquet", sheets.read_parquet),
    Kind(receipt_bytes, RECEIPT, ".json", read_receipt),
)
