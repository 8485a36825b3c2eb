"""The machine that a row was measured on."""

import dataclasses
import os
import platform
import re
import subprocess
import time

import tensorflow as tf

from zoo.benchmark.accelerators import FLOAT_NAMES, accelerators, generation, tpu_chips
from zoo.guards import check
from zoo.strategy import Choice


@dataclasses.dataclass(frozen=True)
class Hardware:
    """What a row says of its machine.

    Attributes:
      accelerator: as in accelerators.csv ('v100-16gb'; a TPU with its size, 'tpu-v2-8'); 'cpu'; None if it is not known.
      device_names: of the devices, as their driver has them.
      driver: its version.
      chips: processors.
      boards: what is bought as one accelerator; a Cloud TPU v2-8 is one board of four chips.
      cpu: of the host.
      cores: of the host that this process may use.
      memory_bytes: of the host.
      machine_type: what the host's firmware calls it: on some clouds the type that one rents ('p3.2xlarge').
      system: operating system.
    """

    accelerator: str | None
    device_names: tuple[str, ...]
    driver: str | None
    chips: int | None
    boards: int | None
    cpu: str
    cores: int
    memory_bytes: int
    machine_type: str | None
    system: str


def look(choice: Choice, name: str | None = None) -> Hardware:
    """Looks at the devices that a strategy runs on and at their host.

    Args:
      choice: the strategy.
      name: of the accelerator, where the machine does not say; as in accelerators.csv.

    Raises:
      UserError: if there is no accelerator of that name.
    """
    driver, chips, boards, device_names = None, None, None, ()
    if choice.accelerator == "cpu":
        name, chips, boards = "cpu", 1, 1
    elif choice.accelerator == "gpu":
        gpus = tf.config.list_physical_devices("GPU")
        device_names = tuple(tf.config.experimental.get_device_details(gpu).get("device_name", "?") for gpu in gpus)
        name, chips, boards = name or _gpu_name(device_names), len(gpus), len(gpus)
        driver = _line("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    else:
        kind = os.environ.get("TPU_ACCELERATOR_TYPE")
        device_names = (kind,) if kind else ()
        name = name or (f"tpu-{kind.replace('v5litepod', 'v5e')}" if kind else None)
        if name:
            chips = tpu_chips(name)
            boards = chips // int(accelerators()[generation(name)]["chips_per_board"])
    if name not in (None, "cpu"):
        names = ", ".join(accelerators())
        check(generation(name) in accelerators(), f"--accelerator={name}: not known; there are {names}.")
    return Hardware(
        accelerator=name,
        device_names=device_names,
        driver=driver,
        chips=chips,
        boards=boards,
        cpu=cpu_name(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        machine_type=_machine_type(),
        system=f"{platform.system()} {platform.release()}",
    )


def cpu_name() -> str:
    """What the processor of this host calls itself."""
    with open("/proc/cpuinfo") as file:
        found = re.search(r"^model name\s*:\s*(.+)$", file.read(), re.MULTILINE)
    return found[1] if found else platform.processor() or platform.machine()


def matrix_product_rate(size: int, dtype: str, seconds: float = 2.0) -> float:
    """Floating-point operations per second of square matrix products, the best of several."""
    a = tf.cast(tf.random.stateless_uniform([size, size], [0, 1]), dtype)

    @tf.function
    def product(x):
        return tf.reduce_sum(tf.cast(tf.linalg.matmul(x, a), tf.float32))

    float(product(a))
    best, started = float("inf"), time.perf_counter()
    while time.perf_counter() - started < seconds:
        before = time.perf_counter()
        float(product(a))
        best = min(best, time.perf_counter() - before)
    return 2 * size**3 / best


def matrix_product_peak(choice: Choice, precision: str) -> float:
    """Operations per second of matrix products in a precision, measured on one device, times the devices.

    Replicas on a CPU share it: there it is that of the whole CPU.
    """
    size = 2048 if choice.accelerator == "cpu" else 8192
    rate = matrix_product_rate(size, FLOAT_NAMES[precision])
    return rate if choice.accelerator == "cpu" else rate * choice.replicas


def _machine_type() -> str | None:
    try:
        with open("/sys/class/dmi/id/product_name") as file:
            return file.read().strip() or None
    except OSError:
        return None


def _gpu_name(device_names: tuple[str, ...]) -> str | None:
    """The row of accelerators.csv that all devices are; None if there is none."""
    for row in accelerators().values():
        if row["device_name"] and all(name.endswith(row["device_name"]) for name in device_names):
            return row["accelerator"]
    return None


def _line(*command: str) -> str | None:
    """The first line that a command prints; None if there is no such command or it fails."""
    try:
        out = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return (out.splitlines() or [None])[0]
