"""This over that, as the 2018 comparison gave it: where two figures are of like things, or with what differs beside it."""

import dataclasses

from zoo.guards import check
from zoo.report.points import Point

# What two figures must have in common; what one of them does not state is named, but is no known difference.
ALIKE = ("model", "variant", "precision", "data", "feed", "mode", "size", "rehearsal")


@dataclasses.dataclass(frozen=True)
class Ratio:
    """One speed over another.

    Attributes:
      over: the speed above the line.
      under: the one below.
      per_board: of the speeds of one board each; None where a number of boards is not known.
      per_chip: of those of one chip each.
      differences: what differs, each 'precision: tf32 / float32'; such figures are not divided, unless one asks for it.
      unstated: what one of the two does not state.
    """

    over: Point
    under: Point
    per_board: float | None
    per_chip: float | None
    differences: tuple[str, ...]
    unstated: tuple[str, ...]

    def __str__(self) -> str:
        rates = [
            f"{value:.2f} per {unit}" for unit, value in (("board", self.per_board), ("chip", self.per_chip)) if value
        ]
        text = f"{self.over.model}: {self.over.name} over {self.under.name}: {', '.join(rates)}"
        if self.differences:
            text += f". DIFFERENT: {'; '.join(self.differences)}"
        if self.unstated:
            text += f". Not stated by one of them: {', '.join(self.unstated)}"
        return text


def ratio(over: Point, under: Point) -> Ratio:
    """Divides two speeds, and says what differs.

    A board of four chips over a board of one is a fair question of a buyer, and a chip over a chip one of an engineer: both are
    answered. Where neither the boards nor the chips are as many, the machines are of different sizes, which is a difference.
    """
    differences, unstated = [], []
    for name in ALIKE:
        one, other = getattr(over, name), getattr(under, name)
        if one in ("", None) or other in ("", None):
            unstated += [name] if one != other else []
        elif one != other:
            differences.append(f"{name}: {one} / {other}")
    if over.boards != under.boards:
        differences.append(f"boards: {over.boards} of {over.chips} chip(s) / {under.boards} of {under.chips} chip(s)")
    values = []
    for unit in ("board", "chip"):
        one, other = over.per(unit), under.per(unit)
        values.append(one / other if one and other else None)
    return Ratio(over, under, *values, tuple(differences), tuple(unstated))


def ask(points: list[Point], question: str, allow_unlike: bool) -> list[Ratio]:
    """The ratios that '--ratio=A/B' asks for: every point of accelerator A over every one of B of the same network.

    Raises:
      UserError: if there are none, or if what they divide differs and `allow_unlike` is not set.
    """
    over, slash, under = (part.strip() for part in question.partition("/"))
    check(bool(slash and over and under), f"--ratio={question}: must look like tpu-v2-8/v100-16gb.")
    pairs = [
        ratio(a, b)
        for a in points
        for b in points
        if (a.accelerator, b.accelerator) == (over, under) and a.model == b.model and a is not b
    ]
    names = ", ".join(sorted({point.accelerator for point in points}))
    check(bool(pairs), f"--ratio={question}: no two such figures of one network. There are figures of {names}.")
    unlike = [f"{a.over.name} and {a.under.name} ({'; '.join(a.differences)})" for a in pairs if a.differences]
    check(
        allow_unlike or not unlike,
        f"--ratio={question}: {len(unlike)} of {len(pairs)} pairs are of different things: {', '.join(unlike[:3])}. Choose "
        "others with --where, or add --allow_unlike, which divides them and prints what differs.",
    )
    return pairs


def matrix(points: list[Point], allow_unlike: bool) -> tuple[list[Point], list[list[Ratio | None]]]:
    """Each point over each other one, the fastest board first; None where they differ and `allow_unlike` is not set.

    Points that can be divided by no other one are left out.
    """

    def divided(a: Point, b: Point) -> Ratio | None:
        found = ratio(a, b)
        return found if allow_unlike or not found.differences else None

    kept = [a for a in points if any(divided(a, b) for b in points if b is not a)]
    kept.sort(key=lambda point: -(point.per("board") or 0))
    return kept, [[divided(a, b) for b in kept] for a in kept]
