"""Masks as pixels: what run lengths say, the slow way. Source: the functions of pycocotools'
maskApi.c that are named below, on images instead of runs.
"""

import numpy as np


def numbers(text: bytes) -> list[int]:
    """The run lengths of a text. Source: rleFrString."""
    found: list[int] = []
    value = place = 0
    for character in text:
        word = character - 48
        value += (word & 31) << place
        place += 5
        if not word & 32:
            if word & 16:
                value -= 1 << place
            found.append(value + (found[-2] if len(found) > 2 else 0))
            value = place = 0
    return found


def image(runs: list[int], height: int, width: int) -> np.ndarray:
    """(height, width) bool. Source: rleDecode."""
    flags = np.repeat(np.arange(len(runs)) % 2 == 1, runs)
    return flags.reshape(width, height).T


def box(pixels: np.ndarray) -> list[float]:
    """x, y, width, height around the pixels of an image that has some. Source: rleToBbox: a run
    that reaches the next column is as high as the image.
    """
    flat = pixels.T.ravel()
    height = pixels.shape[0]
    columns = np.flatnonzero(pixels.any(axis=0))
    rows = np.flatnonzero(pixels.any(axis=1))
    edges = np.arange(height, flat.size, height)
    crossed = bool((flat[edges] & flat[edges - 1]).any())
    top, bottom = (0, height - 1) if crossed else (rows[0], rows[-1])
    return [columns[0], top, columns[-1] - columns[0] + 1, bottom - top + 1]


def overlap(found: np.ndarray, truth: np.ndarray, crowd: bool) -> float:
    """Source: rleIou."""
    shared = int((found & truth).sum())
    if not shared:
        return 0.0
    return shared / int(found.sum() if crowd else (found | truth).sum())
