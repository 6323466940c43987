"""Several panels of curves as one picture."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.reprs import outlined
from detmap.core.output import plots
from detmap.core.output.plots import MOST_NAMED, MOST_POINTS


@outlined
@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """One line of a panel.

    Parameters
    ----------
    name : for the legend
    x, y : (P,)
    strong : whether it stands for all of the others
    ap : average precision, shown in the legend; NaN for none
    """

    name: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    strong: bool = False
    ap: float = math.nan

    @property
    def label(self) -> str:
        """The name in the legend."""
        ap = "" if math.isnan(self.ap) else f" (AP {self.ap:.3f})"
        return plots.label(self.name) + ap


@outlined
@dataclass(frozen=True, slots=True)
class Panel:
    """Curves in one frame.

    Parameters
    ----------
    name : by which a user selects it
    title, x, y : what it shows, and its axes
    curves : of more than `MOST_NAMED` only the strong ones are named
    unit_x : whether x is a fraction
    """

    name: str
    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]
    unit_x: bool = True


def figure_of(panels: Sequence[Panel], caption: str) -> Any:
    """A `matplotlib.figure.Figure` of the panels, two in a row.

    Raises `DetmapError` if matplotlib is missing.
    """
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure = plots.new_figure((6.5 * columns, 4.6 * rows))
    frames = figure.subplots(rows, columns, squeeze=False).flat
    for axes, panel in zip(frames, panels, strict=False):
        draw_panel(axes, panel)
    for axes in list(frames)[len(panels) :]:
        axes.set_axis_off()
    figure.suptitle(plots.label(caption), fontsize="x-small", color="0.4")
    return figure


def draw_panel(axes: Any, panel: Panel) -> None:
    """Draws a panel in Matplotlib axes."""
    many = len(panel.curves) > MOST_NAMED
    weak = [curve for curve in panel.curves if not curve.strong]
    curves = [weak[i] for i in plots.spread(len(weak), plots.MOST_DRAWN)]
    for curve in (*curves, *(each for each in panel.curves if each.strong)):
        some = plots.spread(len(curve.x), MOST_POINTS)
        style = {"color": "0.6", "linewidth": 0.5} if many else {"linewidth": 1.2}
        if curve.strong:
            dashes = "--" if curve.name == "macro" else "-"
            style = {"color": "black", "linewidth": 2, "zorder": 5, "linestyle": dashes}
        label = curve.label if curve.strong or not many else "_"
        axes.plot(curve.x[some], curve.y[some], label=label, **style)
    limits = {"xlim": (0, 1)} if panel.unit_x else {}
    title = panel.title + plots.left_out(len(weak))
    axes.set(title=title, xlabel=panel.x, ylabel=panel.y, ylim=(0, 1.02), **limits)
    axes.grid(alpha=0.3)
    if panel.curves:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), fontsize="x-small")
