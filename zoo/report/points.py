"""What the report draws: measured, published and estimated rows, brought to one form."""

import csv
import dataclasses
import importlib.resources
import os

from zoo.benchmark import accelerators, rows
from zoo.guards import UserError, check

PUBLISHED = "published"  # as an input: the figures that zoo brings along
BASES = ("measured", "published", "estimated")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Point:
    """A speed.

    Attributes:
      model: network.
      variant: of it, where there are several; empty if it is not stated, as the next ones.
      accelerator: as in zoo/benchmark/accelerators.csv.
      chips: processors.
      boards: accelerators as they are bought.
      precision: as in an experiment.
      batch: global, where it is stated.
      data: 'synthetic', 'imagenet', 'fake_imagenet', 'text', …
      feed: 'device', 'input' or 'both', of a measured one.
      mode: 'train' or 'inference'.
      rate: examples per second of all chips.
      error: standard error of it, where it is known.
      basis: 'measured' (by zoo), 'published' or 'estimated'.
      usd_per_hour: of the whole machine, where all of its parts are known.
      price_as_of: date of that price.
      source: who says so, or the machine.
      rehearsal: whether it is of a shrunken experiment.
      size: pixels or tokens of an example, where they are known.
    """

    model: str
    variant: str = ""
    accelerator: str
    chips: int | None = None
    boards: int | None = None
    precision: str = ""
    batch: int | None = None
    data: str = ""
    feed: str = "both"
    mode: str = "train"
    rate: float
    error: float | None = None
    basis: str
    usd_per_hour: float | None = None
    price_as_of: str = ""
    source: str = ""
    rehearsal: bool = False
    size: int | None = None

    @property
    def name(self) -> str:
        """What tells it from others, in a line."""
        parts = [self.accelerator if (self.boards or 1) == 1 else f"{self.boards}× {self.accelerator}"]
        parts += [part for part in (self.variant, self.precision.removeprefix("mixed_")) if part]
        parts += [f"batch {self.batch}"] if self.batch else []
        parts += [f"{self.size} {'tokens' if self.model.startswith('bilstm') else 'px'}"] if self.size else []
        parts += [{"input": "input alone", "device": "device alone"}.get(self.feed, self.data) or "data not stated"]
        return " · ".join(parts + (["inference"] if self.mode != "train" else []))

    def per(self, unit: str) -> float | None:
        """Rate per 'board' or per 'chip'; None where their number is not known."""
        count = self.boards if unit == "board" else self.chips
        return self.rate / count if count else None

    @property
    def examples_per_usd(self) -> float | None:
        return self.rate * 3600 / self.usd_per_hour if self.usd_per_hour else None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Arrival:
    """The time of a training to an accuracy.

    Attributes:
      model: network.
      target: the accuracy, in words.
      system: accelerators, in words.
      hours: to it.
      epochs: to it.
      usd: to it, where a price is known.
      basis: as of a `Point`.
      source: who says so.
      seed: of a measured one.
      reached: whether a measured one got there.
    """

    model: str
    target: str
    system: str
    hours: float
    epochs: float | None
    usd: float | None
    basis: str
    source: str
    seed: int | None = None
    reached: bool = True


def read(inputs: list[str]) -> tuple[list[Point], list[Arrival], list[dict], list[str]]:
    """Points, arrivals, rows that failed, and workdirs of inputs: files of rows, workdirs, or 'published'.

    Raises:
      UserError: if an input is none of these, or holds nothing.
    """
    points, arrivals, failed, workdirs = [], [], [], []
    for name in inputs:
        if name == PUBLISHED:
            points += published_points()
            arrivals += published_arrivals()
            continue
        if os.path.isdir(name):
            check(
                os.path.exists(os.path.join(name, "metrics.jsonl")), f"{name}: no run in it: metrics.jsonl is missing."
            )
            workdirs.append(name)
            result = os.path.join(name, "result.json")
            found = [rows.read_one(result)] if os.path.exists(result) else []
        else:
            found = rows.read(name)
            check(bool(found), f"{name}: no rows in it.")
        for row in found:
            if row["status"] != "ok":
                failed.append(row)
            elif row["kind"] == "throughput":
                points.append(measured_point(row))
            elif row["kind"] == "convergence":
                arrivals.append(measured_arrival(row))
            else:
                raise UserError(f"{name}: a row of the kind {row['kind']!r}, which the report does not know.")
    return points, arrivals, failed, workdirs


def measured_point(row: dict) -> Point:
    """A row of zoo.benchmark or zoo.preflight."""
    cpu = row["accelerator"] == "cpu"
    units = row["model_options"].get("units", "")  # a BiLSTM of other units is another network
    return Point(
        model=row["model"] + units,
        variant=row["variant"],
        accelerator=f"{row['cores']} cores of {row['cpu']}" if cpu else row["accelerator"] or "unknown accelerator",
        chips=row["chips"],
        boards=row["boards"],
        precision="tf32" if row.get("tf32") else row["precision"],
        batch=row["global_batch_size"],
        data="synthetic" if row["feed"] == "device" else row["data_source"],
        feed=row["feed"],
        mode=row["mode"],
        rate=row["examples_per_second"],
        error=row["standard_error"],
        basis=row["basis"],
        usd_per_hour=row["usd_per_hour"],
        price_as_of=row["price_as_of"] or "",
        source=f"zoo {row['versions']['zoo']}, TensorFlow {row['versions'].get('tensorflow', '?')}, {row['time'][:10]}",
        rehearsal=row["rehearsal"],
        size=row.get("input_size") or row.get("sequence_length"),
    )


def measured_arrival(row: dict) -> Arrival:
    """The result.json of a run."""
    target = row["target_top1"] if row["target_top1"] is not None else row["top1"]
    cpu = row["accelerator"] == "cpu"
    return Arrival(
        model=row["model"],
        target=f"top1 {target:.1%}",
        system=f"{row['cores']} cores of {row['cpu']}" if cpu else f"{row['boards']}x {row['accelerator']}",
        hours=row["hours"],
        epochs=row["epochs"],
        usd=row["usd"],
        basis=row["basis"],
        source=f"zoo {row['versions']['zoo']}, {row['time'][:10]}",
        seed=row["seed"],
        reached=row["reached"] or row["target_top1"] is None,
    )


def published_points() -> list[Point]:
    """published/throughput.csv, with today's prices of the table where they are of the whole machine."""
    points = []
    for row in _table("throughput.csv"):
        chips, boards = int(row["chips"]), int(row["boards"])
        price, _ = accelerators.price(row["accelerator"], chips)
        points.append(
            Point(
                model=row["workload"],
                variant=row["variant"],
                accelerator=row["accelerator"],
                chips=chips,
                boards=boards,
                precision=row["precision"],
                batch=int(row["global_batch"]) if row["global_batch"] else None,
                data=row["data"],
                rate=float(row["examples_per_second"]),
                basis="published",
                usd_per_hour=price.usd_per_hour if price else None,
                price_as_of=price.as_of if price else "",
                source="; ".join(part for part in (row["source"], row["software"], row["as_of"], row["note"]) if part),
            )
        )
    return points


def published_arrivals() -> list[Arrival]:
    """published/time_to_accuracy.csv."""
    return [
        Arrival(
            model=row["workload"],
            target=row["target"],
            system=row["system"],
            hours=float(row["hours"]),
            epochs=float(row["epochs"]) if row["epochs"] else None,
            usd=float(row["usd"]) if row["usd"] else None,
            basis="published",
            source=row["source"],
        )
        for row in _table("time_to_accuracy.csv")
    ]


def _table(name: str) -> list[dict[str, str]]:
    with importlib.resources.files("zoo.report").joinpath("published", name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))
