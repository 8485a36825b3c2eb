"""Training runs in their workdirs: curves over steps, hours and dollars, and how two configurations differ."""

import dataclasses
import json
import os

from zoo import gin_checks
from zoo.benchmark import rows
from zoo.guards import UserError


@dataclasses.dataclass(frozen=True)
class Run:
    """A run, finished or not.

    Attributes:
      name: its folder.
      validation: rows of metrics.jsonl of evaluations.
      clock: hours on the run's clock at the end of the evaluation at each step.
      usd_per_hour: of its machine, where the run has ended and a price is known.
      configuration: its operative Gin configuration, as text by name.
      rehearsal: whether it is one.
    """

    name: str
    validation: tuple[dict, ...]
    clock: dict[int, float]
    usd_per_hour: float | None
    configuration: dict[str, str]
    rehearsal: bool

    def curve(self, axis: str) -> list[tuple[float, float]]:
        """Top-1 over 'step', 'hours' or 'dollars'; empty where that is not known."""
        points = []
        for row in self.validation:
            hours = self.clock.get(row["step"])
            x = {
                "step": row["step"],
                "hours": hours,
                "dollars": hours and self.usd_per_hour and hours * self.usd_per_hour,
            }[axis]
            points += [(x, row["top1"])] if x is not None else []
        return points


def read(workdir: str) -> Run:
    """Reads a workdir.

    Raises:
      UserError: if a file of it is damaged.
    """
    metrics, timing = (_lines(os.path.join(workdir, name)) for name in ("metrics.jsonl", "timing.jsonl"))
    result = os.path.join(workdir, "result.json")
    row = rows.read_one(result) if os.path.exists(result) else {}
    configuration = {}
    path = os.path.join(workdir, "operative_config.gin")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            bindings = gin_checks.read_text(file.read()).bindings
        configuration = {binding.key: gin_checks.shown(binding.value) for binding in bindings}
    return Run(
        name=os.path.normpath(workdir),
        validation=tuple(r for r in metrics if r["split"] == "validation"),
        clock={r["step"]: r["clock"] / 3600 for r in timing if r["split"] == "validation"},
        usd_per_hour=row.get("usd_per_hour"),
        configuration=configuration,
        rehearsal=configuration.get("Experiment.rehearsal") == "True",
    )


def difference(a: Run, b: Run) -> list[tuple[str, str, str]]:
    """Name and both values of what differs in two operative configurations."""
    names = sorted({*a.configuration, *b.configuration})
    values = ((name, a.configuration.get(name, "not used"), b.configuration.get(name, "not used")) for name in names)
    return [(name, one, other) for name, one, other in values if one != other]


def _lines(path: str) -> list[dict]:
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file if line.endswith("\n")]
    try:
        return [json.loads(line) for line in lines]
    except json.JSONDecodeError as error:
        raise UserError(f"{path}: damaged ({error}).") from error
