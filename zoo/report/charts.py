"""The charts, each drawn once for light and once for dark, with Matplotlib.

What was measured, published and estimated differs by the shape of its mark and by a word, not by colour alone. The colours are
those of Okabe and Ito, which people with any kind of colour vision tell apart.
"""

import dataclasses
import io
import math
from collections.abc import Callable

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib import colors, ticker
from matplotlib.figure import Figure

from zoo.report.points import Arrival, Point
from zoo.report.runs import Run

BASIS_MARKS = {"measured": ("o", "full"), "published": ("D", "none"), "estimated": ("^", "none")}
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#999999")
BASIS_COLOURS = dict(zip(BASIS_MARKS, COLOURS, strict=False))


@dataclasses.dataclass(frozen=True)
class Theme:
    """Colours of a page."""

    name: str
    background: str
    text: str
    faint: str


THEMES = (Theme("light", "#ffffff", "#1b1f24", "#d7dce2"), Theme("dark", "#14181d", "#e6e9ed", "#39414b"))


@dataclasses.dataclass(frozen=True)
class Chart:
    """A drawing.

    Attributes:
      name: of its files.
      title: for people.
      text: what it shows, in words, for those who can't see it.
      draw: makes the figure in a theme.
    """

    name: str
    title: str
    text: str
    draw: Callable[[Theme], Figure]

    def svg(self, theme: Theme) -> str:
        """The drawing as an element of a page."""
        out = io.StringIO()
        # A salt of its own, so that the marks of two drawings on one page are not taken for each other's.
        with plt.rc_context({"svg.hashsalt": f"{self.name}-{theme.name}", "svg.fonttype": "none"}):
            _save(self.draw(theme), out, format="svg", metadata={"Date": None, "Creator": None})
        text = out.getvalue()
        return text[text.index("<svg") :]

    def png(self, path: str, theme: Theme) -> None:
        """The drawing as a file."""
        _save(self.draw(theme), path, format="png", dpi=160, metadata={"Software": None})


def _save(figure: Figure, out, **options) -> None:
    figure.savefig(out, bbox_inches="tight", pad_inches=0.15, facecolor=figure.get_facecolor(), **options)
    plt.close(figure)


def speed(model: str, points: list[Point]) -> Chart:
    """Examples per second of one network by accelerator, with standard errors."""
    points = sorted(points, key=lambda point: point.rate)
    return Chart(
        f"speed-{model}",
        f"{model}: examples per second",
        "; ".join(f"{point.name}: {point.rate:,.0f} ({point.basis})" for point in reversed(points)),
        lambda theme: _dots(theme, points, [p.rate for p in points], [p.error for p in points], "examples per second"),
    )


def per_dollar(model: str, points: list[Point]) -> Chart:
    """Examples per dollar of one network, where the price of the whole machine is known."""
    points = sorted(points, key=lambda point: point.examples_per_usd)
    errors = [p.error and p.error * 3600 / p.usd_per_hour for p in points]
    labels = [f"{p.name} · ${p.usd_per_hour:.2f}/h ({p.price_as_of or 'as given'})" for p in points]
    return Chart(
        f"dollars-{model}",
        f"{model}: examples per dollar",
        "; ".join(f"{point.name}: {point.examples_per_usd:,.0f} ({point.basis})" for point in reversed(points)),
        lambda theme: _dots(theme, points, [p.examples_per_usd for p in points], errors, "examples per dollar", labels),
    )


def arrivals(model: str, found: list[Arrival]) -> Chart:
    """Hours to an accuracy; repeats over seeds in one line."""
    found = sorted(found, key=lambda arrival: (arrival.target, arrival.system, -arrival.hours))
    names = list(dict.fromkeys(_arrival_name(arrival) for arrival in found))

    def draw(theme):
        figure, axes = _figure(theme, 8.5, 0.34 * len(names) + 1.3)
        for arrival in found:
            _mark(axes, arrival.hours, names.index(_arrival_name(arrival)), arrival.basis, theme)
            cost = (
                f"${arrival.usd:,.0f}"
                if arrival.usd and arrival.usd >= 10
                else f"${arrival.usd:.2f}"
                if arrival.usd
                else ""
            )
            if cost:
                axes.annotate(
                    cost,
                    (arrival.hours, names.index(_arrival_name(arrival))),
                    (7, 0),
                    textcoords="offset points",
                    va="center",
                    size=8,
                    color=theme.text,
                )
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(-0.6, len(names) - 0.4)
        _logarithmic(axes)
        axes.set_xlabel("hours, logarithmic (dollars beside the mark, where the price is known)")
        _legend(axes, {arrival.basis for arrival in found}, theme)
        return figure

    text = "; ".join(f"{_arrival_name(a)}: {a.hours:.3g} hours ({a.basis})" for a in found)
    return Chart(f"time-{model}", f"{model}: hours to accuracy", text, draw)


def curves(runs: list[Run], axis: str) -> Chart:
    """Validation accuracy of runs over 'step', 'hours' or 'dollars'."""
    shown = [run for run in runs if run.curve(axis)]

    def draw(theme):
        figure, axes = _figure(theme, 8.5, 4.2)
        for i, run in enumerate(shown):
            xs, ys = zip(*run.curve(axis), strict=True)
            style = ("-", "--", ":", "-.")[i % 4]
            axes.plot(
                xs, ys, style, marker="os^Dv"[i % 5], color=COLOURS[i % len(COLOURS)], label=run.name, markersize=4
            )
        axes.set_xlabel({"step": "optimizer steps", "hours": "hours", "dollars": "dollars"}[axis])
        axes.set_ylabel("validation top-1")
        legend = axes.legend(frameon=False, fontsize=8)
        for entry in legend.get_texts():
            entry.set_color(theme.text)
        return figure

    text = "; ".join(f"{run.name}: {run.curve(axis)[-1][1]:.4f} at {run.curve(axis)[-1][0]:.4g}" for run in shown)
    return Chart(
        f"curves-{axis}",
        f"Validation top-1 over {axis}s" if axis == "step" else f"Validation top-1 over {axis}",
        text,
        draw,
    )


def heat(model: str, points: list[Point], table: list) -> Chart:
    """The matrix of speed-ups: the row over the column, per board."""
    names = [point.name for point in points]

    def draw(theme):
        side = 0.62 * len(points)
        figure, axes = _figure(theme, side + 3.2, side + 1.4)
        axes.grid(False)
        axes.set_xlim(-0.5, len(points) - 0.5)
        axes.set_ylim(len(points) - 0.5, -0.5)
        for i, row in enumerate(table):
            for j, cell in enumerate(row):
                value = cell.per_board if cell else None
                text = f"{value:.1f}" if value and value >= 1 else f"{value:.2f}" if value else "–"
                shade = _shade(value, theme)
                axes.add_patch(plt.Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor=shade, edgecolor=theme.background))
                axes.text(j, i, text, ha="center", va="center", size=8, color=theme.text)
        axes.set_xticks(range(len(points)), [str(i + 1) for i in range(len(points))])
        axes.set_yticks(range(len(points)), [f"{name}   {i + 1}" for i, name in enumerate(names)])
        axes.xaxis.tick_top()
        return figure

    text = "Each row over each column, per board; a dash where the two are not alike."
    return Chart(f"speedups-{model}", f"{model}: speed-ups per board, row over column", text, draw)


def _shade(value: float | None, theme: Theme) -> str:
    """Blue where the row is faster, orange where it is slower; full at a factor of ten."""
    if not value:
        return theme.background
    strength = 0.55 * min(1.0, abs(math.log10(value)))
    paper, ink = (colors.to_rgb(colour) for colour in (theme.background, COLOURS[0] if value > 1 else COLOURS[1]))
    return colors.to_hex([(1 - strength) * a + strength * b for a, b in zip(paper, ink, strict=True)])


def _dots(theme: Theme, points: list[Point], values, errors, unit: str, labels: list[str] | None = None) -> Figure:
    figure, axes = _figure(theme, 8.5, 0.3 * len(points) + 1.3)
    for i, (point, value, error) in enumerate(zip(points, values, errors, strict=True)):
        axes.plot([axes.get_xlim()[0], value], [i, i], color=theme.faint, linewidth=0.8, zorder=1)
        if error:
            axes.errorbar(value, i, xerr=error, color=theme.text, capsize=3, linewidth=1, zorder=2)
        _mark(axes, value, i, point.basis, theme)
        axes.annotate(
            f"{value:,.0f}", (value, i), (8, 0), textcoords="offset points", va="center", size=8, color=theme.text
        )
    axes.set_yticks(range(len(points)), labels or [point.name for point in points])
    axes.set_ylim(-0.6, len(points) - 0.4)
    _logarithmic(axes)
    axes.set_xlim(min(values) / 1.6, max(values) * 2.2)
    axes.set_xlabel(f"{unit} (logarithmic)")
    _legend(axes, {point.basis for point in points}, theme)
    return figure


def _logarithmic(axes) -> None:
    """A logarithmic axis whose ticks are plain numbers at 1, 2 and 5."""
    axes.set_xscale("log")
    axis = axes.xaxis
    axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.12g}"))
    axis.set_minor_locator(ticker.NullLocator())


def _mark(axes, x: float, y: float, basis: str, theme: Theme) -> None:
    marker, fill = BASIS_MARKS[basis]
    colour = BASIS_COLOURS[basis]
    axes.plot(
        x,
        y,
        marker=marker,
        markersize=7,
        fillstyle=fill,
        color=colour,
        markeredgecolor=colour,
        linestyle="none",
        zorder=3,
    )


def _legend(axes, bases: set[str], theme: Theme) -> None:
    handles = []
    for basis in (basis for basis in BASIS_MARKS if basis in bases):
        marker, fill = BASIS_MARKS[basis]
        handles += axes.plot(
            [], [], marker=marker, fillstyle=fill, color=BASIS_COLOURS[basis], linestyle="none", label=basis
        )
    legend = axes.legend(
        handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=len(handles), frameon=False, fontsize=8
    )
    for entry in legend.get_texts():
        entry.set_color(theme.text)


def _figure(theme: Theme, width: float, height: float) -> tuple[Figure, plt.Axes]:
    figure, axes = plt.subplots(figsize=(width, height))
    figure.set_facecolor(theme.background)
    axes.set_facecolor(theme.background)
    axes.tick_params(colors=theme.text, labelsize=8, length=0)
    axes.xaxis.label.set_color(theme.text)
    axes.yaxis.label.set_color(theme.text)
    axes.xaxis.label.set_size(8)
    axes.yaxis.label.set_size(8)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.grid(True, axis="x", color=theme.faint, linewidth=0.5)
    axes.set_axisbelow(True)
    return figure, axes


def _arrival_name(arrival: Arrival) -> str:
    return f"{arrival.target} · {arrival.system}"
