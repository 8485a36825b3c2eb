"""Accelerators, what they can do, and what an hour of them costs: accelerators.csv and prices.csv. Needs no TensorFlow."""

import csv
import dataclasses
import importlib.resources
import re

from zoo.guards import check

FLOAT_NAMES = {"float32": "float32", "mixed_bfloat16": "bfloat16", "mixed_float16": "float16"}


def accelerators() -> dict[str, dict[str, str]]:
    """accelerators.csv, by name: peaks in operations per second and chip, memory in 10^9 bytes per chip."""
    return {row["accelerator"]: row for row in _table("accelerators.csv")}


def generation(name: str) -> str:
    """'tpu-v2' of 'tpu-v2-8'; the name of a GPU itself."""
    return re.sub(r"^(tpu-v\d+\w?)-\d+$", r"\1", name)


def tpu_chips(name: str) -> int:
    """Chips of a slice: 'tpu-v2-8' counts cores, 'tpu-v5e-8' chips, as Google names them.

    Raises:
      UserError: if the name has no size.
    """
    size = re.fullmatch(r"tpu-v\d+\w?-(\d+)", name)
    check(size is not None, f"--accelerator={name}: a TPU needs its size: tpu-v2-8, tpu-v5e-4.")
    row = accelerators().get(generation(name))
    check(row is not None, f"--accelerator={name}: not known; there are {', '.join(accelerators())}.")
    return int(size[1]) // int(row["cores_per_chip"])


def peak(accelerator: str | None, chips: int | None, precision: str, tf32: bool = False) -> tuple[float, str] | None:
    """The datasheet's operations per second of all chips together, and its source; None where none is known.

    Args:
      accelerator: its name; None if it is not known.
      chips: how many.
      precision: of the experiment.
      tf32: whether float32 is multiplied as TF32.
    """
    row = accelerators().get(generation(accelerator or ""))
    kind = "tf32" if precision == "float32" and tf32 else FLOAT_NAMES[precision]
    if row is None or not row[kind]:
        return None
    return float(row[kind]) * chips, f"{kind}: {row['source']}"


@dataclasses.dataclass(frozen=True)
class Price:
    """Dollars for an hour of the whole machine, and where the figure is from."""

    usd_per_hour: float
    kind: str
    as_of: str
    includes_host: bool
    source: str


def price(accelerator: str | None, chips: int | None, usd_per_hour: float | None = None) -> tuple[Price | None, str]:
    """The price of a machine and a line about it; no price where a part of it is not known.

    Args:
      accelerator: its name; None if it is not known.
      chips: how many.
      usd_per_hour: what the user pays for all of it, which is taken instead of the table's.
    """
    if usd_per_hour is not None:
        return Price(
            usd_per_hour, "given", "", True, "Experiment.usd_per_hour"
        ), f"${usd_per_hour:.2f} an hour, as given"
    fix = "Bind Experiment.usd_per_hour to what the whole machine costs"
    if accelerator in (None, "cpu"):
        return None, f"none is known for {accelerator or 'this accelerator'}. {fix}"
    names = (accelerator, generation(accelerator))
    rows = [row for row in _table("prices.csv") if row["accelerator"] in names and row["kind"] == "on_demand"]
    whole = [row for row in rows if row["includes_host"] == "true"]
    if not whole:
        known = "; ".join(f"${row['usd_per_hour']} a {row['unit']} ({row['as_of']}, {row['source']})" for row in rows)
        what = f"known without its host alone: {known}" if rows else f"none is known for {accelerator}"
        return None, f"{what}. {fix}"
    row = max(whole, key=lambda row: row["as_of"])
    count = 1 if row["unit"] == "slice" else chips
    found = Price(float(row["usd_per_hour"]) * count, row["kind"], row["as_of"], True, row["source"])
    return found, f"${found.usd_per_hour:.2f} an hour, {row['kind']}, host included, {row['as_of']} ({row['source']})"


def _table(name: str) -> list[dict[str, str]]:
    with importlib.resources.files("zoo.benchmark").joinpath(name).open() as file:
        return list(csv.DictReader(file))
