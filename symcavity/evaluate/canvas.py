"""Figures in the style of a paper, which show themselves in a notebook; loads matplotlib."""

from __future__ import annotations

import io
from contextlib import AbstractContextManager
from typing import Any, cast

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

DPI = 300
STYLE: Any = {
    "font.family": "serif",
    "font.serif": ["STIXGeneral"],
    "mathtext.fontset": "stix",
    "font.size": 10,
    "axes.labelsize": 11,
    "legend.fontsize": 9,
    "svg.fonttype": "path",
    "svg.hashsalt": "symcavity",
    "pdf.fonttype": 42,
}


def style() -> AbstractContextManager[None]:
    """Return a context in which text is set in the style of a paper."""
    return mpl.rc_context(STYLE)


class Picture(Figure):
    """A figure that is saved with 300 dots an inch, and shows itself as vector graphics in a notebook."""

    def draw(self, renderer: Any) -> None:
        """Draw with the fonts of the style, wherever it is drawn."""
        with style():
            super().draw(renderer)

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save; ``dpi`` is 300 unless told."""
        with style():
            super().savefig(fname, **{"dpi": DPI} | options)

    def _repr_svg_(self) -> str:
        target = io.BytesIO()
        self.savefig(target, format="svg", metadata={"Date": None})
        return target.getvalue().decode()


class Panel(Axes):
    """Axes that show their whole figure in a notebook."""

    def _repr_svg_(self) -> str | None:
        show = getattr(self.figure, "_repr_svg_", None)
        return show() if show else None


def panels(size: tuple[float, float], count: int) -> list[Panel]:
    """Return axes side by side in a new figure, of a size in inches."""
    with style():
        figure = Picture(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        return [cast("Panel", figure.add_subplot(1, count, n, axes_class=Panel)) for n in range(1, count + 1)]


def panel(size: tuple[float, float]) -> Panel:
    """Return the only axes of a new figure, of a size in inches."""
    return panels(size, 1)[0]
