"""A row of results: what was measured, on what, with what, and what it cost."""

import datetime
import functools
import inspect
import os
import subprocess

import gin
import tensorflow as tf

from zoo import gin_checks
from zoo.benchmark import accelerators, operations
from zoo.benchmark.hardware import Hardware
from zoo.doctor import versions
from zoo.experiment import Experiment, Program
from zoo.plan import kernels, parameters
from zoo.strategy import Choice


def describe(experiment: Experiment, choice: Choice, hardware: Hardware) -> dict:
    """What a row says before anything is built, and so of a failed measurement too."""
    found, about = accelerators.price(hardware.accelerator, hardware.chips, experiment.usd_per_hour)
    price = dict.fromkeys(("usd_per_hour", "price_kind", "price_as_of", "price_includes_host", "price_source"))
    if found:
        price = {
            "usd_per_hour": found.usd_per_hour,
            "price_kind": found.kind,
            "price_as_of": found.as_of,
            "price_includes_host": found.includes_host,
            "price_source": found.source,
        }
    network = _function(experiment.model)
    return {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "basis": "measured",
        "model": network.__name__,
        "data_source": _function(experiment.data).__name__,
        "num_classes": experiment.num_classes,
        **experiment.sizes(),
        "global_batch_size": experiment.batch_size(choice.replicas),
        "replicas": choice.replicas,
        "per_replica_batch_size": experiment.batch_size(choice.replicas) // choice.replicas,
        "microbatches": experiment.microbatches,
        "strategy": type(choice.strategy).__name__,
        "strategy_reason": choice.reason,
        "precision": experiment.precision,
        "tf32": tf32(experiment, choice),
        "steps_per_loop": experiment.steps_per_loop,
        "seed": experiment.seed,
        "rehearsal": experiment.rehearsal,
        **price,
        "price_note": about,
        "accelerator": hardware.accelerator,
        "device_names": list(hardware.device_names),
        "driver": hardware.driver,
        "chips": hardware.chips,
        "boards": hardware.boards,
        "cpu": hardware.cpu,
        "cores": hardware.cores,
        "memory_bytes": hardware.memory_bytes,
        "machine_type": hardware.machine_type,
        "system": hardware.system,
        "versions": versions() | _build_versions(),
        "git_commit": git_commit(),
    }


def describe_program(experiment: Experiment, choice: Choice, program: Program) -> dict:
    """What a row says of the network and of the program that runs it."""
    model = program.state.model
    options = model_options(_function(experiment.model).__name__)
    return {
        "parameters": parameters(model),
        "variant": options.get("variant", "").strip("'"),
        "model_options": options,
        "xla": "step" if choice.accelerator == "tpu" else "gradients" if program.jit_compile else "off",
        "kernels": kernels(model),
        "recurrent_kernel": next((layer.kernel for layer in model.layers if hasattr(layer, "cudnn")), None),
    }


def utilisation(
    program: Program, mode: str, rate: float, precision: str, tf32: bool, hardware: Hardware, measured_peak: float
) -> dict:
    """Operations per second over what the devices can do: by their datasheet, and as a matrix product measured here.

    Args:
      program: what ran.
      mode: 'train' or 'inference'.
      rate: examples per second.
      precision: of the experiment.
      tf32: whether float32 is multiplied as TF32.
      hardware: the machine.
      measured_peak: operations per second of a matrix product in the same precision on all devices.
    """
    model = program.state.model
    try:
        count = operations.training(model) if mode == "train" else operations.forward(model)
    except ValueError as error:
        return {"flops_per_example": None, "utilisation_note": str(error)}
    datasheet = accelerators.peak(hardware.accelerator, hardware.chips, precision, tf32)
    return {
        "flops_per_example": count,
        "peak_flops": datasheet and datasheet[0],
        "peak_source": datasheet and datasheet[1],
        "utilisation_of_peak": datasheet and rate * count / datasheet[0],
        "matrix_product_flops": measured_peak,
        "utilisation_of_matrix_product": rate * count / measured_peak,
    }


def cost(rate: float, usd_per_hour: float | None) -> dict[str, float | None]:
    """Dollars for a million examples."""
    return {"usd_per_million_examples": usd_per_hour and usd_per_hour / 3600 / rate * 1e6}


def model_options(name: str) -> dict[str, str]:
    """Hyperparameters that the network was built with, as text, from Gin's operative configuration."""
    bindings = gin_checks.read_text(gin.operative_config_str()).bindings
    return {b.parameter: gin_checks.shown(b.value) for b in bindings if b.configurable == name}


def tf32(experiment: Experiment, choice: Choice) -> bool:
    """Whether float32 products run as TF32: TensorFlow's default on GPUs that have it (compute capability 8 and newer)."""
    if experiment.precision != "float32" or choice.accelerator != "gpu":
        return False
    details = (tf.config.experimental.get_device_details(gpu) for gpu in tf.config.list_physical_devices("GPU"))
    return tf.config.experimental.tensor_float_32_execution_enabled() and all(
        detail.get("compute_capability", (0,))[0] >= 8 for detail in details
    )


def git_commit() -> str | None:
    """The commit of the checkout that zoo runs from, with '+' behind it where files differ from it; None elsewhere."""
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if not os.path.exists(os.path.join(folder, ".git")):
        return None
    try:
        run = functools.partial(subprocess.run, cwd=folder, capture_output=True, text=True, timeout=30, check=True)
        commit = run(["git", "rev-parse", "HEAD"]).stdout.strip()
        return commit + ("+" if run(["git", "status", "--porcelain"]).stdout.strip() else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _build_versions() -> dict[str, str]:
    """Versions of CUDA and cuDNN that TensorFlow was built for."""
    build = tf.sysconfig.get_build_info()
    return {name: build[f"{name}_version"] for name in ("cuda", "cudnn") if f"{name}_version" in build}


def _function(value):
    """The function behind a partial and behind Gin's wrapper."""
    while isinstance(value, functools.partial):
        value = value.func
    return inspect.unwrap(value)
