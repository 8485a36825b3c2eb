"""What this machine has, and whether its Python fits it: looked at before TensorFlow is imported, in milliseconds.

Nothing here asks a network, the metadata server of a cloud least of all.
"""

import dataclasses
import glob
import importlib.metadata
import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence

from zoo.guards import NoDevice, UserError, check

TENSORFLOW_BUILDS = ("tensorflow", "tensorflow-cpu", "tensorflow-tpu")
GOOGLE_PCI_VENDOR = "0x1ae0"


@dataclasses.dataclass(frozen=True)
class Found:
    """Device nodes and environment variables that speak of accelerators."""

    tpu: tuple[str, ...]
    gpu: tuple[str, ...]

    def __str__(self) -> str:
        parts = [f"{kind} ({', '.join(signs)})" for kind, signs in (("TPU", self.tpu), ("GPU", self.gpu)) if signs]
        return " and ".join(parts) or f"neither a TPU nor a GPU ({os.cpu_count()} CPU cores)"


def look(root: str = "/", environ: Mapping[str, str] = os.environ) -> Found:
    """Looks at the device nodes under `root` and at the environment."""
    tpu = _nodes(root, "dev/accel[0-9]*", "dev/accel/[0-9]*")
    if _has_google_chip(root):
        tpu += _nodes(root, "dev/vfio/[0-9]*")
    # A TPU of another machine, or of a container that hides its nodes.
    tpu += [name for name in ("TPU_NAME", "TPU_ACCELERATOR_TYPE") if environ.get(name)]
    gpu = _nodes(root, "dev/nvidia[0-9]*", "dev/dxg")
    if environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1", "none", "NoDevFiles"):
        gpu = []  # hidden on purpose
    return Found(tuple(tpu), tuple(gpu))


def check_devices(
    found: Found,
    *,
    accelerator: str,
    allow_cpu: bool,
    tpu: str = "local",
    command: Sequence[str],
    dry_run: bool = False,
) -> None:
    """Raises `NoDevice`, with what one can do instead, where an order can't be met by what is here.

    Args:
      found: what is here.
      accelerator: `Experiment.accelerator`; so are the next two.
      allow_cpu: whether 'auto' may settle for a CPU.
      tpu: which TPU; another one than 'local' is not for this machine to say.
      command: the command line of the user, which the message completes; of other programs than `zoo.train`, with
        `Experiment.accelerator` alone.
      dry_run: a plan needs no device.
    """
    wanted = {
        "auto": bool(found.tpu or found.gpu or allow_cpu or tpu != "local"),
        "tpu": bool(found.tpu or tpu != "local"),
        "gpu": bool(found.gpu),
    }
    if dry_run or wanted.get(accelerator, True):
        return
    asked = {"auto": "a TPU or GPUs ('auto', without Experiment.allow_cpu)", "tpu": "a TPU", "gpu": "GPUs"}[accelerator]
    if "zoo.train" not in command and "zoo-train" not in command:
        on_cpu = shlex.join([*command, '--gin_bindings=Experiment.accelerator = "cpu"'])
        raise NoDevice(f"this experiment asks for {asked}; here is {found}. On this CPU: {on_cpu}")
    raise NoDevice(
        f"this experiment asks for {asked}; here is {found}. What you can do here:\n"
        f"  rehearse it:        {shlex.join([*command, '--gin_file=gin/smoke.gin'])}\n"
        f"  see its plan:       {shlex.join([*command, '--dry_run'])}\n"
        f"  train on this CPU:  {shlex.join([*_program(command), '--gin_file=gin/resnet_cpu.gin'])}"
    )


def check_environment(found: Found, *, accelerator: str, environ: Mapping[str, str] = os.environ) -> None:
    """Checks what would make TensorFlow or Keras run on something else than was asked for, in silence.

    Raises:
      UserError: naming the cure.
    """
    backend = environ.get("KERAS_BACKEND") or _configured_backend(environ)
    check(
        backend in (None, "", "tensorflow"),
        f"the backend of Keras is {backend!r} (KERAS_BACKEND or keras.json): zoo trains on TensorFlow. "
        "Run `export KERAS_BACKEND=tensorflow`.",
    )
    legacy = environ.get("TF_USE_LEGACY_KERAS", "")
    check(
        legacy.lower() not in ("1", "true", "yes"),
        f"TF_USE_LEGACY_KERAS={legacy}: zoo needs Keras 3. Run `unset TF_USE_LEGACY_KERAS`.",
    )
    installed = {name: version for name in TENSORFLOW_BUILDS if (version := _version(name))}
    check_versions(installed, _version("keras"))
    if (
        found.tpu
        and not installed.get("tensorflow-tpu")
        and accelerator in ("auto", "tpu")
        and "TPU_NAME" not in found.tpu
    ):
        raise UserError(
            f"here is a TPU ({', '.join(found.tpu)}), but {', '.join(installed) or 'no TensorFlow'} is installed, which can't "
            "use it. In a new Python 3.11 environment: pip install -r requirements-tpu.txt && pip install --no-deps ."
        )


def check_versions(tensorflow_builds: Mapping[str, str], keras: str | None) -> None:
    """Checks the installed versions against what is known not to work.

    Args:
      tensorflow_builds: versions of the builds of TensorFlow that are installed, by distribution.
      keras: version of Keras.

    Raises:
      UserError: naming the cure.
    """
    check(
        len(tensorflow_builds) == 1,
        f"{len(tensorflow_builds)} builds of TensorFlow are installed ({', '.join(tensorflow_builds) or 'none'}): they own the "
        "same import name, so exactly one must be. Make a new environment and follow README.md.",
    )
    ((name, version),) = tensorflow_builds.items()
    check(_numbers(version) >= (2, 20), f"{name} {version}: zoo needs 2.20 or newer. Run `pip install -U {name}`.")
    check(
        keras is not None and (3, 10) <= _numbers(keras) < (4,),
        f"keras {keras}: zoo needs Keras 3, 3.10 or newer. Run `pip install 'keras>=3.10,<4'`.",
    )


def _program(command: Sequence[str]) -> list[str]:
    """The part of a command line before its flags."""
    return [word for word in command if not word.startswith("--")][: 3 if command[0] == "python" else 1]


def _nodes(root: str, *patterns: str) -> list[str]:
    paths = (path for pattern in patterns for path in glob.glob(os.path.join(root, pattern)))
    return sorted("/" + os.path.relpath(path, root) for path in paths)


def _has_google_chip(root: str) -> bool:
    for path in glob.glob(os.path.join(root, "sys/bus/pci/devices/*/vendor")):
        try:
            with open(path) as file:
                if file.read().strip() == GOOGLE_PCI_VENDOR:
                    return True
        except OSError:
            continue  # a device that may not be read is none of ours
    return False


def _configured_backend(environ: Mapping[str, str]) -> str | None:
    home = environ.get("KERAS_HOME") or os.path.join(os.path.expanduser("~"), ".keras")
    try:
        with open(os.path.join(home, "keras.json")) as file:
            return json.load(file).get("backend")
    except (OSError, ValueError):
        return None


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
