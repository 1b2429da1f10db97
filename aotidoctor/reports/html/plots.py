"""Draw the figures of the HTML report as inline SVG. The only module that imports matplotlib.

Nothing of the user's settings, no date and no random name gets into a drawing: equal numbers give equal bytes. Colours
are those of the page, by name, so that it can be dark or light; text is text, in the page's own font.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Sequence

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from aotidoctor.reports.html.html_blocks import ErrorRow, ValueRow, clean

# Stand-ins that matplotlib draws with, and what they become.
_INK, _DIM, _GRID, _ACCENT, _BAD, _GOOD, _BAND = (f"#0102{number:02x}" for number in range(7))
_COLORS = {_INK: "ink", _DIM: "dim", _GRID: "line", _ACCENT: "accent", _BAD: "bad", _GOOD: "good", _BAND: "bad-soft"}
_WIDTH = 10.0
_ROW = 0.25
_FONT = 8.5
_NO_METADATA = {"Creator": None, "Date": None, "Format": None, "Type": None}
# Beyond this ratio a linear axis shows the largest values only.
_WIDE = 200.0


def values(rows: Sequence[ValueRow]) -> Markup:
    """Range, mean, NaN and Inf of each row; beside it the error, where one is known."""
    return _draw("values", lambda figure: _values(figure, rows), height=len(rows) * _ROW + 0.8)


def errors(rows: Sequence[ErrorRow]) -> Markup:
    """Per row the error of the package, of the reference, and what rounding explains."""
    return _draw("errors", lambda figure: _errors(figure, rows), height=len(rows) * _ROW * 1.4 + 0.9)


def _draw(name: str, paint: Callable[[Figure], None], *, height: float) -> Markup:
    with mpl.rc_context(), warnings.catch_warnings():
        # A letter that matplotlib's own font lacks is no concern: the page's fonts show it.
        warnings.simplefilter("ignore")
        mpl.rcdefaults()
        mpl.rcParams["svg.fonttype"] = "none"
        mpl.rcParams["svg.hashsalt"] = name
        mpl.rcParams["text.parse_math"] = False
        mpl.rcParams["axes.unicode_minus"] = False
        mpl.rcParams["font.size"] = _FONT
        figure = Figure(figsize=(_WIDTH, height))
        paint(figure)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata=_NO_METADATA)
    # The element alone, in the colours and fonts of the page, with ids that occur once in it.
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, count=1, flags=re.DOTALL)
    svg = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" aria-hidden="true">', svg, count=1)
    svg = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", svg)
    used = set(re.findall(r"url\(#([^)]+)\)", svg)) | set(re.findall(r'xlink:href="#([^"]+)"', svg))
    svg = re.sub(r' id="([^"]*)"', lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "", svg)
    svg = svg.replace("url(#", f"url(#{name}-").replace('xlink:href="#', f'href="#{name}-')
    for color, variable in _COLORS.items():
        svg = svg.replace(color, f"var(--{variable})")
    return Markup(re.sub(r"\n\s*", "\n", svg))  # noqa: S704 - made by matplotlib, which escapes every label


def _axes(figure: Figure, left: float, width: float, count: int, height: float) -> Axes:
    """An empty panel with ``count`` rows from the top, without a frame."""
    bottom = 0.52 / height
    axes = figure.add_axes((left, bottom, width, 1 - bottom - 0.06 / height))
    axes.set_ylim(count - 0.4, -0.6)
    axes.set_yticks([])
    axes.patch.set_visible(False)
    for side in ("top", "left", "right"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_GRID)
    axes.tick_params(axis="x", which="both", color=_GRID, labelcolor=_DIM, labelsize=_FONT - 0.5)
    axes.minorticks_off()
    axes.grid(visible=True, axis="x", color=_GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    figure.patch.set_visible(False)
    return axes


def _values(figure: Figure, rows: Sequence[ValueRow]) -> None:
    height = figure.get_figheight()
    against = any(row.error is not None for row in rows)
    axes = _axes(figure, 0.41, 0.3 if against else 0.46, len(rows), height)
    axes.set_xlabel("values written (line: smallest to largest; dot: mean)", color=_DIM)
    _scale(axes, [value for row in rows for value in (row.low, row.high) if value is not None])
    for at, row in enumerate(rows):
        _label(axes, at, row.tensor, bad=row.bad)
        # The name of a call at the left edge, in the row of the first tensor that it wrote.
        axes.annotate(
            clean(row.call),
            xy=(0.005, at),
            xycoords=("figure fraction", "data"),
            ha="left",
            va="center_baseline",
            color=_BAD if row.bad else _INK,
        )
        color = _BAD if row.bad else _ACCENT
        if row.low is not None and row.high is not None:
            axes.plot([row.low, row.high], [at, at], color=color, linewidth=2.6, solid_capstyle="round")
        if row.mean is not None:
            axes.plot([row.mean], [at], "o", color=color, markersize=4.5)
        counts = [f"{count:,} {name}" for count, name in ((row.nan, "NaN"), (row.inf, "Inf")) if count]
        if counts:
            _beside(axes, at, ", ".join(counts), color=_BAD)
    if against:
        beside = _axes(figure, 0.84, 0.09, len(rows), height)
        beside.set_xlabel("off by", color=_DIM)
        _off_by(beside, rows)


def _label(axes: Axes, at: int, words: str, *, bad: bool) -> None:
    """The name of a row before it; the row in question stands on a coloured ground."""
    if bad:
        axes.axhspan(at - 0.5, at + 0.5, color=_BAND, linewidth=0)
    _beside(axes, at, clean(words), color=_BAD if bad else _DIM, before=True)


def _beside(axes: Axes, at: int, words: str, *, color: str, before: bool = False) -> None:
    """Words at the right of the panel, or ``before`` it."""
    axes.annotate(
        words,
        xy=(0 if before else 1, at),
        xycoords=axes.get_yaxis_transform(),
        xytext=(-8 if before else 4, 0),
        textcoords="offset points",
        ha="right" if before else "left",
        va="center_baseline",
        color=color,
    )


def _scale(axes: Axes, numbers: Sequence[float]) -> None:
    """Linear, unless few values would then hide all others; then logarithmic on both sides of zero."""
    sizes = sorted(abs(number) for number in numbers if number)
    if not sizes:
        axes.set_xlim(-1, 1)
        return
    largest, usual = sizes[-1], sizes[len(sizes) // 2]
    if largest / usual > _WIDE:
        axes.set_xscale("symlog", linthresh=max(usual / 10, largest * 1e-8))
        # Powers of ten around zero would stand on each other.
        edge = math.floor(math.log10(largest))
        axes.set_xticks([-(10.0**edge), 0, 10.0**edge])
        axes.set_xticklabels([f"-1e{edge}", "0", f"1e{edge}"])
        axes.minorticks_off()
    else:
        axes.locator_params(axis="x", nbins=5)
    axes.margins(x=0.04)


def _logarithmic(axes: Axes, low: float, high: float, *, ticks: int = 6) -> None:
    """A logarithmic axis with a few powers of ten, written as ``1e-7``."""
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.minorticks_off()
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    step = max(1, math.ceil((last - first) / ticks))
    powers = range(first, last + 1, step)
    axes.set_xticks([10.0**power for power in powers])
    axes.set_xticklabels([f"1e{power}" for power in powers])
    axes.minorticks_off()


def _off_by(axes: Axes, rows: Sequence[ValueRow]) -> None:
    """Errors on a logarithmic scale; none at all stands at the left edge."""
    parts = [row.error for row in rows if row.error]
    # A decade at least: otherwise no power of ten may lie between them.
    low, high = (min(parts) / 4, max(parts) * 4) if parts else (1e-8, 1.0)
    _logarithmic(axes, low, high, ticks=2)
    for at, row in enumerate(rows):
        if row.bad:
            axes.axhspan(at - 0.5, at + 0.5, color=_BAND, linewidth=0)
        if row.error is None:
            continue
        color = _BAD if row.bad and row.agrees is False else _GOOD
        axes.plot([max(row.error, low)], [at], "o", color=color, markersize=4.5, clip_on=False)
        _beside(axes, at, f"{row.error:.2g}", color=color if row.bad else _DIM)


def _errors(figure: Figure, rows: Sequence[ErrorRow]) -> None:
    axes = _axes(figure, 0.2, 0.66, len(rows), figure.get_figheight())
    parts = [value for row in rows for value in (row.error, row.reference, row.allowed) if value]
    low, high = min([0.5, *parts]) / 2, max([10.0, *parts]) * 2
    _logarithmic(axes, low, high)
    axes.set_xlabel("eps from float64 (dot: package; ring: reference; bar: what rounding explains)", color=_DIM)
    for at, row in enumerate(rows):
        _label(axes, at, row.label, bad=False)
        if row.allowed:
            axes.barh([at], [row.allowed - low], left=low, height=0.62, color=_GOOD, alpha=0.22, linewidth=0)
        if row.reference is not None:
            axes.plot([max(row.reference, low)], [at], "o", color=_INK, markerfacecolor="none", markersize=7)
        color = _BAD if row.bad else _GOOD
        axes.plot([max(row.error, low)], [at], "o", color=color, markersize=5, clip_on=False)
        _beside(axes, at, f"{row.error:.3g}", color=color)
