"""Printed numbers, and the fractions that round to them."""

import os
import re
from dataclasses import dataclass

from detmap.errors import DataError


@dataclass(frozen=True, slots=True)
class Wanted:
    """A printed number.

    Parameters
    ----------
    text : its digits, without a percent sign
    scale : 100 for points, 1 for a fraction
    digits : after the decimal point
    """

    text: str
    scale: float
    digits: int

    @property
    def value(self) -> float:
        """The number as a fraction."""
        return float(self.text) / self.scale

    @property
    def width(self) -> float:
        """The width of the interval of fractions that round to it."""
        return float(10.0**-self.digits) / self.scale

    def prints(self, value: float) -> bool:
        """Whether a fraction rounds to these digits; halfway cases round either way."""
        return abs(value - self.value) <= self.width / 2 * (1 + 1e-9)


def parse(text: str, where: str = "reproduce") -> Wanted:
    """Parses a printed number: ``72.1``, ``72.1%``, ``0.721``.

    Raises
    ------
    DataError : not a number between 0 and 100
    """
    digits = text.strip().removesuffix("%").strip()
    if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{0,12})?|\.[0-9]{1,12}", digits):
        if os.path.exists(digits):
            fix = "the number is first: `detmap reproduce 72.1 TRUTH DETECTIONS`"
            raise DataError(where, f"{text!r:.40} is a path where the number is needed", fix)
        raise DataError(where, f"{text!r:.40} is not a number", "give it as printed, such as 72.1")
    value, after = float(digits), len(digits.partition(".")[2])
    fraction = value <= 1 and after > 0 and "%" not in text
    if value > 100:
        raise DataError(where, f"{text!r:.40} is above 100", "give it as printed, such as 72.1")
    return Wanted(digits, 1.0 if fraction else 100.0, after)
