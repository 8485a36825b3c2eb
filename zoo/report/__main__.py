"""Draws results: python -m zoo.report results.jsonl published runs/mine --out=report

One page that works offline, its charts as PNG and its tables as Markdown and CSV beside it. See docs/measuring.md.
"""

import argparse
import csv
import dataclasses
import io
import os

from zoo import __version__, command_line
from zoo.benchmark import rows
from zoo.guards import UserError, check
from zoo.report import page, ratios, runs
from zoo.report.points import BASES, Arrival, Point, read

INTRODUCTION = (
    "Marks and words tell three kinds of figures apart: measured with zoo on a named machine, published by others, and "
    "estimated by zoo from a compiled program. Figures of different things are not divided by one another."
)


@dataclasses.dataclass(frozen=True)
class Table:
    """A table for the page and, as Markdown and CSV, beside it."""

    name: str
    head: list[str]
    body: list[list[str]]

    def html(self) -> str:
        numbers = frozenset(i for i in range(len(self.head)) if all(_is_number(row[i]) for row in self.body))
        return page.table(self.head, self.body, numbers, self.head.index("basis") if "basis" in self.head else None)

    def markdown(self) -> str:
        shown = [{str(i): cell.replace("|", "\\|") for i, cell in enumerate(row)} for row in self.body]
        return rows.table(({f"c{i}": cell for i, cell in row.items()} for row in shown), self._layouts()) + "\n"

    def csv(self) -> str:
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([self.head, *self.body])
        return out.getvalue()

    def _layouts(self) -> dict[str, str]:
        return {head: f"{{c{i}}}" for i, head in enumerate(self.head)}


def main(args: argparse.Namespace) -> None:
    points, arrivals, failed, workdirs = read(args.inputs)
    points = [point for point in points if all(_matches(point, text) for text in args.where)]
    arrivals = [arrival for arrival in arrivals if all(_matches(arrival, text) for text in args.where)]
    found = [runs.read(workdir) for workdir in workdirs]
    check(bool(points or arrivals or found), "nothing is left to show. Name more inputs, or fewer --where.")
    answers = [answer for question in args.ratio for answer in ratios.ask(points, question, args.allow_unlike)]
    for answer in answers:
        print(answer)
    if args.out is None:
        check(bool(answers), "--out is missing: name a folder for the report, or ask for a --ratio.")
        return
    try:
        from zoo.report import charts
    except ImportError as error:
        raise UserError(f"the charts need Matplotlib ({error}). Run: pip install 'accelerator-zoo[report]'") from error

    sections, drawings, tables = [], [], []
    for draw in (speeds, dollars, speedups, times, trainings):
        new = draw(charts, args, points=points, arrivals=arrivals, found=found, answers=answers)
        if new is not None:
            head, content, drawn, tabled = new
            sections.append((head, content))
            drawings += drawn
            tables += tabled
    if failed:
        sections.append(
            (
                "Failed",
                "".join(page.warning(f"{row['gin_files']} {row['gin_bindings']}: {row['error']}") for row in failed),
            )
        )
    write(args.out, sections, drawings, tables, charts.THEMES)
    print(f"{args.out}/index.html: {len(points)} speeds, {len(arrivals)} times to accuracy, {len(found)} runs.")


def speeds(charts, args, *, points: list[Point], **_):
    """Speed of each network by accelerator."""
    if not points:
        return None
    drawn, tabled, content = [], [], []
    for model in _models(points):
        own = [point for point in points if point.model == model]
        drawn.append(charts.speed(model, own))
        body = [
            [
                point.name,
                point.basis + (" (rehearsal)" if point.rehearsal else ""),
                f"{point.rate:,.1f}",
                f"{point.error:.1f}" if point.error else "–",
                _number(point.per("board")),
                _number(point.per("chip")),
                point.source,
            ]
            for point in sorted(own, key=lambda point: -point.rate)
        ]
        tabled.append(
            Table(f"speed-{model}", ["figure", "basis", "examples/s", "±", "per board", "per chip", "source"], body)
        )
        content += [page.figure(drawn[-1]), page.folded("as a table, with sources", tabled[-1].html())]
    return "Speed", "".join(content), drawn, tabled


def dollars(charts, args, *, points: list[Point], **_):
    """Examples per dollar, where prices are known."""
    priced = [point for point in points if point.examples_per_usd and point.feed != "input"]
    if not priced:
        return None
    drawn, tabled, content = [], [], []
    for model in _models(priced):
        own = [point for point in priced if point.model == model]
        drawn.append(charts.per_dollar(model, own))
        body = [
            [
                p.name,
                p.basis,
                f"{p.examples_per_usd:,.0f}",
                f"{1e6 / p.examples_per_usd:.2f}",
                f"{p.usd_per_hour:.2f}",
                p.price_as_of,
            ]
            for p in sorted(own, key=lambda p: -p.examples_per_usd)
        ]
        head = ["figure", "basis", "examples per $", "$ per million", "$ per hour", "price of"]
        tabled.append(Table(f"dollars-{model}", head, body))
        content += [page.figure(drawn[-1]), page.folded("as a table", tabled[-1].html())]
    missing = sorted({point.accelerator for point in points if point.usd_per_hour is None})
    note = f"Left out, since the price of the whole machine is not known: {', '.join(missing)}." if missing else ""
    return "Cost", (f"<p class=soft>{page.escape(note)}</p>" if note else "") + "".join(content), drawn, tabled


def speedups(charts, args, *, points: list[Point], answers: list[ratios.Ratio], **_):
    """The matrix of each network, and the ratios that were asked for."""
    drawn, tabled, content = [], [], []
    if answers:
        body = [
            [
                a.over.model,
                a.over.name,
                a.under.name,
                _number(a.per_board, 2),
                _number(a.per_chip, 2),
                "; ".join(a.differences) or "–",
                ", ".join(a.unstated) or "–",
            ]
            for a in answers
        ]
        tabled.append(
            Table("ratios", ["network", "this", "over that", "per board", "per chip", "different", "not stated"], body)
        )
        content.append(tabled[-1].html())
    for model in _models(points):
        own, table = ratios.matrix([p for p in points if p.model == model and p.feed != "input"], args.allow_unlike)
        if not own:
            continue
        drawn.append(charts.heat(model, own, table))
        names = [f"{i + 1}  {point.name} ({point.basis})" for i, point in enumerate(own)]
        body = [[name, *map(_ratio_cell, row)] for name, row in zip(names, table, strict=True)]
        tabled.append(Table(f"speedups-{model}", ["", *(str(i + 1) for i in range(len(own)))], body))
        content += [page.figure(drawn[-1]), page.folded("as a table: per board / per chip", tabled[-1].html())]
        unlike = sorted({str(r) for row in table for r in row if r and r.differences})
        if unlike:
            lines = "".join(f"<li>{page.escape(text)}</li>" for text in unlike)
            content.append(page.folded(f"what differs, in {len(unlike)} ratios", f"<ul>{lines}</ul>"))
    if not content:
        return None
    how = "Row over column. A dash: the two are of different things, as in network, variant, precision, data or boards."
    if args.allow_unlike:
        how = "Row over column. ≠: the two are of different things, divided because --allow_unlike asked for it."
    return "Speed-ups", f"<p class=soft>{how}</p>" + "".join(content), drawn, tabled


def times(charts, args, *, arrivals: list[Arrival], **_):
    """Time and cost to accuracy."""
    reached = [arrival for arrival in arrivals if arrival.reached]
    if not reached:
        return None
    drawn, tabled, content = [], [], []
    for model in _models(reached):
        own = [arrival for arrival in reached if arrival.model == model]
        drawn.append(charts.arrivals(model, own))
        body = [
            [
                a.target,
                a.system,
                a.basis,
                f"{a.hours:.3g}",
                _number(a.epochs),
                f"{a.usd:,.2f}" if a.usd else "–",
                "–" if a.seed is None else str(a.seed),
                a.source,
            ]
            for a in sorted(own, key=lambda a: (a.target, a.hours))
        ]
        tabled.append(
            Table(f"time-{model}", ["target", "system", "basis", "hours", "epochs", "$", "seed", "source"], body)
        )
        content += [page.figure(drawn[-1]), page.folded("as a table", tabled[-1].html())]
    lost = [arrival for arrival in arrivals if not arrival.reached]
    content += [page.warning(f"{a.model} on {a.system}, seed {a.seed}: did not reach {a.target}.") for a in lost]
    return "Time to accuracy", "".join(content), drawn, tabled


def trainings(charts, args, *, found: list[runs.Run], **_):
    """Curves of runs, and how the configurations of the first and each other one differ."""
    if not found:
        return None
    drawn = [
        charts.curves(found, axis) for axis in ("step", "hours", "dollars") if any(run.curve(axis) for run in found)
    ]
    tabled, content = [], [page.figure(chart) for chart in drawn]
    for i, other in enumerate(found[1:], start=1):
        body = [list(row) for row in runs.difference(found[0], other)]
        content.append(f"<h3>{page.escape(found[0].name)} and {page.escape(other.name)}</h3>")
        if body:
            tabled.append(Table(f"difference-{i}", ["binding", found[0].name, other.name], body))
            content.append(tabled[-1].html())
        else:
            content.append("<p>Their operative configurations are the same.</p>")
    return "Training runs", "".join(content), drawn, tabled


def write(out: str, sections, drawings, tables: list[Table], themes) -> None:
    """Writes the page and what lies beside it.

    Raises:
      UserError: if the folder can't be written to.
    """
    footer = f"Made by zoo {__version__}, python -m zoo.report."
    try:
        os.makedirs(out, exist_ok=True)
        for chart in drawings:
            for theme in themes:
                chart.png(os.path.join(out, f"{chart.name}{'' if theme.name == 'light' else '-dark'}.png"), theme)
        for table in tables:
            for ending, text in (("md", table.markdown()), ("csv", table.csv())):
                with open(os.path.join(out, f"{table.name}.{ending}"), "w", encoding="utf-8") as file:
                    file.write(text)
        with open(os.path.join(out, "index.html"), "w", encoding="utf-8") as file:
            file.write(page.page("Accelerators, measured", INTRODUCTION, sections, footer))
    except OSError as error:
        raise UserError(f"--out={out}: can't be written to ({error.strerror}). Choose another.") from error


def _ratio_cell(cell: ratios.Ratio | None) -> str:
    if cell is None:
        return "–"
    return f"{_number(cell.per_board, 2)} / {_number(cell.per_chip, 2)}" + (" ≠" if cell.differences else "")


def _models(things) -> list[str]:
    return list(dict.fromkeys(thing.model for thing in things))


def _matches(thing: Point | Arrival, text: str) -> bool:
    """Whether a point has the value that '--where=NAME=VALUE' asks for; what has no such field is kept."""
    name, equals, value = text.partition("=")
    fields = {field.name for kind in (Point, Arrival) for field in dataclasses.fields(kind)}
    check(
        bool(equals) and name in fields,
        f"--where={text}: must look like model=resnet50; there are {', '.join(sorted(fields))}.",
    )
    if name == "basis":
        check(value in BASES, f"--where={text}: must be one of {', '.join(BASES)}.")
    if not hasattr(thing, name):
        return True
    own = getattr(thing, name)
    return value.lower() in own.lower() if name == "source" else str("" if own is None else own) == value


def _number(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _is_number(text: str) -> bool:
    return text == "–" or text.replace(",", "").replace(".", "").isdecimal()


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m zoo.report", description=__doc__.splitlines()[0])
    top.add_argument(
        "inputs", nargs="+", metavar="INPUT", help="a file of rows, a workdir, or 'published' for the figures of others"
    )
    top.add_argument("--out", help="folder for index.html and what lies beside it")
    top.add_argument(
        "--where", action="append", default=[], metavar="NAME=VALUE", help="only figures of that; may be repeated"
    )
    top.add_argument(
        "--ratio",
        action="append",
        default=[],
        metavar="A/B",
        help="print accelerator A over accelerator B; may be repeated",
    )
    top.add_argument(
        "--allow_unlike", action="store_true", help="divide figures of different things too, and say what differs"
    )
    return top


if __name__ == "__main__":
    command_line.run(parser(), main)
