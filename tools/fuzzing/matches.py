"""Files of matches, forged and damaged: refused by a `DetmapError`, or evaluated; what is accepted
has the arrays of the file, and says nothing that matching cannot have said.
"""

import copy
import io
import json
import math
import zipfile
from itertools import pairwise
from typing import Any

import numpy as np

import detmap
from detmap.errors import DetmapError
from tools.fuzzing._files import scratch
from tools.fuzzing.tables import tables

Arrays = dict[str, Any]
COUNTS = {"accepted": 0, "refused": 0}
VALUES = (0, 1, -1, 2, 3, 7, 10**6, 2**31 - 1, -(2**31), 2**40, math.nan, math.inf, 1e300, 0.5)
KEPT = ("image", "score", "tp", "obj_image", "counted")
NUMBERS: tuple[Any, ...] = (None, True, -1, 0, 1, 2, 1e99, math.nan, 10**30)
LISTS: tuple[Any, ...] = ([], [1], ["a", "b"], [[]], [["a", 1]], [["a", "b", 1, "c"]])
WORDS: tuple[Any, ...] = (*NUMBERS, *LISTS, "", "x", "all", {}, {"a": 1})


def case(seed: int) -> str | None:
    """What is wrong with one forged file."""
    rng = np.random.default_rng(seed)
    path = scratch("forged.npz")
    rules = detmap.load_protocol(("coco-bbox", "voc2012")[rng.integers(2)])
    whole = detmap.match(*tables(rng), rules, threads=1)
    whole.save(path, **({"images_of_truth": 9} if rng.random() < 0.5 else {}))
    original = path.read_bytes()
    forged = (damage, damage_arrays, damage_header, damage_members)[rng.integers(4)](rng, original)
    path.write_bytes(forged)
    try:
        loaded = detmap.Matches.load(path)
    except DetmapError as error:
        COUNTS["refused"] += 1
        return None if str(error).startswith(str(path)) else f"names no file: {error}"
    COUNTS["accepted"] += 1
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        tree = json.loads(arrays["header"].tobytes())
    except Exception as error:
        return f"accepted what numpy does not read: {error}"
    if wrong := fault(arrays, tree):
        return wrong
    result = detmap.summarize(loaded, threads=1)
    repr(result), str(result), result.to_dict()
    same = (np.array_equal(getattr(loaded, name), arrays[name]) for name in KEPT)
    return None if all(same) else "an array is not what the file says"


# --- damage ---------------------------------------------------------------------------------------


def damage(rng: np.random.Generator, content: bytes) -> bytes:
    """Bytes changed, cut or put in."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(0, len(data)))
        if rng.random() < 0.6:
            data[at] ^= 1 << int(rng.integers(8))
        elif rng.random() < 0.5:
            del data[at : at + int(rng.integers(1, 20))]
        else:
            data[at:at] = rng.bytes(int(rng.integers(1, 9)))
        if not data:
            break
    return bytes(data)


def packed(members: list[tuple[str, bytes]]) -> bytes:
    """An archive of members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members:
            archive.writestr(name, content)
    return file.getvalue()


def members_of(content: bytes) -> list[tuple[str, bytes]]:
    """The members of an archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [(info.filename, archive.read(info)) for info in archive.infolist()]


def as_npy(array: Any) -> bytes:
    """An array as a file of numpy, objects too."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def damage_arrays(rng: np.random.Generator, content: bytes) -> bytes:
    """Some arrays changed in value, type, shape or order."""
    members = dict(members_of(content))
    names = sorted(name for name in members if name != "header.npy")
    for name in rng.choice(names, int(rng.integers(1, 3))):
        array = np.load(io.BytesIO(members[name]), allow_pickle=True)
        try:
            with np.errstate(all="ignore"):
                members[name] = as_npy(damaged(rng, array))
        except (OverflowError, ValueError, TypeError):
            continue
    return packed(list(members.items()))


def damaged(rng: np.random.Generator, array: Any) -> Any:
    """One array that is no longer what it was."""
    choice = rng.integers(9)
    if choice <= 2 and array.size:
        copy = array.copy()
        value = VALUES[rng.integers(len(VALUES))]
        copy.reshape(-1)[rng.integers(array.size)] = (
            value if array.dtype.kind != "U" else str(value)
        )
        return copy
    if choice == 3:
        return array[: int(rng.integers(0, len(array) + 1))] if array.ndim else array
    if choice == 4:
        kinds = (">i4", ">f8", "<i8", "<f4", "<u2", "<u8", "?", "O", "<U3", "<i4")
        return array.astype(kinds[rng.integers(len(kinds))])
    if choice == 5:
        return rng.permutation(array)
    if choice == 6:
        return np.concatenate([array, array[: int(rng.integers(0, 3))]])
    if choice == 7:
        return array[:, None] if rng.random() < 0.5 else np.asfortranarray(array[..., None])
    return array + array if array.dtype.kind in "iuf" else ~array


def damage_header(rng: np.random.Generator, content: bytes) -> bytes:
    """A value of the header changed, taken away, or put in."""
    members = dict(members_of(content))
    tree = json.loads(np.load(io.BytesIO(members["header.npy"])).tobytes())
    for _ in range(int(rng.integers(1, 3))):
        spot = tree
        while True:
            keys = list(spot) if isinstance(spot, dict) else list(range(len(spot)))
            if not keys:
                break
            key = keys[rng.integers(len(keys))]
            if isinstance(spot[key], dict | list) and rng.random() < 0.7:
                spot = spot[key]
                continue
            if rng.random() < 0.2:
                del spot[key]
            else:
                spot[key] = copy.deepcopy(WORDS[rng.integers(len(WORDS))])
            break
    text = np.frombuffer(json.dumps(tree).encode(), dtype=np.uint8)
    return packed(list({**members, "header.npy": as_npy(text)}.items()))


def damage_members(rng: np.random.Generator, content: bytes) -> bytes:
    """Members cut, swapped, renamed, left out, put in."""
    members = members_of(content)
    at, other = rng.integers(0, len(members), 2).tolist()
    name, own = members[at]
    choice = rng.integers(6)
    if choice == 0:
        members[at] = (name, own[: int(rng.integers(0, len(own)))])
    elif choice == 1:
        members[at], members[other] = (name, members[other][1]), (members[other][0], own)
    elif choice == 2:
        members[at] = (name.replace("e", "a"), own)
    elif choice == 3:
        del members[at]
    elif choice == 4:
        members.append(("x/../" + name, own))
    else:
        head = bytearray(own)
        head[int(rng.integers(0, min(len(head), 90)))] ^= 1 << int(rng.integers(7))
        members[at] = (name, bytes(head))
    return packed(members)


# --- the oracle -----------------------------------------------------------------------------------


def fault(arrays: Arrays, tree: Any) -> str | None:
    """What a file of these arrays says that matching cannot have said; row by row."""
    ids = arrays["image_ids"].tolist()
    if any(a >= b for a, b in pairwise(ids)):
        return "image ids do not ascend"
    n_classes = len(tree["categories"])
    for prefix in ("", "obj_"):
        off, image = arrays[prefix + "off"].tolist(), arrays[prefix + "image"].tolist()
        ends = off[:1] + off[-1:] == [0, len(image)] and off == sorted(off)
        if len(off) != n_classes + 1 or not ends:
            return f"{prefix}off is wrong"
        if not all(0 <= i < len(ids) for i in image):
            return f"{prefix}image is out of range"
    off, image, rank = (arrays[name].tolist() for name in ("off", "image", "rank"))
    score, tp, ignored = (arrays[name].tolist() for name in ("score", "tp", "ignored"))
    for k in range(n_classes):
        rows = range(off[k], off[k + 1])
        for i in rows:
            if math.isnan(score[i]) or (i > off[k] and score[i] > score[i - 1]):
                return "scores do not descend"
            if rank[i] != sum(image[j] == image[i] for j in range(off[k], i)):
                return "a rank is wrong"
            if any(a & b for a, b in zip(tp[i], ignored[i], strict=True)):
                return "true and ignored"
    if min(arrays["beyond"].tolist(), default=0) < 0:
        return "beyond is negative"
    return None
