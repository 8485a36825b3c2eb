"""The strategy layer: which devices a run uses, decided at launch. The only file that names devices."""

import dataclasses

import tensorflow as tf

from zoo import devices
from zoo.guards import NoDevice, UserError, check, first_line

ACCELERATORS = ("auto", "tpu", "gpu", "cpu")


@dataclasses.dataclass(frozen=True)
class Choice:
    """A strategy and why it was picked, in one line."""

    strategy: tf.distribute.Strategy
    accelerator: str
    reason: str

    @property
    def replicas(self) -> int:
        return self.strategy.num_replicas_in_sync

    def __str__(self) -> str:
        kind = type(self.strategy).__name__.removesuffix("V2")
        return f"{kind} over {self.replicas} {self.accelerator.upper()} replica(s): {self.reason}"


def create_strategy(
    accelerator: str = "auto",
    *,
    allow_cpu: bool = False,
    cpu_replicas: int = 1,
    tpu: str = "local",
    tpu_zone: str | None = None,
    tpu_project: str | None = None,
) -> Choice:
    """Picks TPUStrategy or MirroredStrategy.

    Args:
      accelerator: 'auto' takes a TPU where there is one, else all GPUs, else the CPU if `allow_cpu`. 'tpu', 'gpu' and
        'cpu' are orders: what can't be met is an error, never a run on something else.
      allow_cpu: whether 'auto' may settle for the CPU.
      cpu_replicas: replicas on a CPU, each a logical device; more than one is for checking, not for speed.
      tpu: 'local' (the TPU of this machine), the name of a TPU, or its address, 'grpc://10.0.0.2:8470'.
      tpu_zone: zone of a TPU given by name; None asks the environment.
      tpu_project: project of a TPU given by name; None asks the environment.

    Raises:
      UserError: if the devices that were ordered are not there.
    """
    check(
        accelerator in ACCELERATORS,
        f"Experiment.accelerator = {accelerator!r}: must be one of {', '.join(map(repr, ACCELERATORS))}.",
    )
    if accelerator == "tpu" or (accelerator == "auto" and (tpu != "local" or _tpu_is_attached())):
        return _tpu(tpu, tpu_zone, tpu_project, "ordered" if accelerator == "tpu" else "auto found a TPU")
    if accelerator == "auto":
        signs = devices.look().tpu
        check(
            not signs,
            f"Experiment.accelerator = 'auto': {', '.join(signs)} speaks of a TPU, but TensorFlow sees none on this machine. For "
            "one that is elsewhere, bind Experiment.tpu to its name; to do without it, bind Experiment.accelerator = 'gpu' or "
            "'cpu', or unset the variable.",
        )
    if accelerator != "cpu":
        gpus, nodes = tf.config.list_physical_devices("GPU"), devices.look().gpu
        if gpus:
            return _gpu(gpus, "ordered" if accelerator == "gpu" else "auto found no TPU, but GPUs")
        check(
            not nodes,
            f"here is a GPU ({', '.join(nodes)}), but TensorFlow sees none. Install its GPU build (pip install "
            "'accelerator-zoo[gpu]') and check nvidia-smi; to do without it, export CUDA_VISIBLE_DEVICES=-1.",
        )
    if accelerator == "gpu":
        raise NoDevice(
            "Experiment.accelerator = 'gpu': there is no GPU here. Bind Experiment.accelerator = 'cpu' or 'auto'."
        )
    if accelerator == "auto" and not allow_cpu:
        raise NoDevice(
            "Experiment.accelerator = 'auto': neither a TPU nor a GPU is here, and this experiment is too large for a "
            "CPU. Rehearse it by adding --gin_file=gin/smoke.gin, or bind Experiment.allow_cpu = True."
        )
    return _cpu(cpu_replicas, "ordered" if accelerator == "cpu" else "auto found neither TPU nor GPU; a CPU is allowed")


def _tpu_is_attached() -> bool:
    """Whether this host has TPU chips: a TPU build of TensorFlow lists them as physical devices."""
    return bool(tf.config.list_physical_devices("TPU"))


def _tpu(tpu: str, zone: str | None, project: str | None, reason: str) -> Choice:
    if tpu == "local" and not devices.look().tpu and not _tpu_is_attached():
        raise NoDevice(
            "Experiment.accelerator = 'tpu': there is no TPU here. Name one that is elsewhere (Experiment.tpu, tpu_zone and "
            "tpu_project), or bind Experiment.accelerator = 'auto' or 'cpu'."
        )
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=tpu, zone=zone, project=project)
        if tpu != "local":
            tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        strategy = tf.distribute.TPUStrategy(resolver)
    except (ValueError, RuntimeError, OSError, tf.errors.OpError) as error:
        raise UserError(
            f"Experiment.tpu = {tpu!r}: this TPU can't be used ({first_line(error)}). 'local' needs a TPU VM with "
            "tensorflow-tpu instead of tensorflow; a name needs Experiment.tpu_zone and tpu_project; an address looks "
            "like 'grpc://10.0.0.2:8470'."
        ) from error
    return Choice(strategy, "tpu", f"{reason} ({tpu})")


def _gpu(gpus: list, reason: str) -> Choice:
    for gpu in gpus:
        try:
            tf.config.experimental.set_memory_growth(gpu, True)
        except RuntimeError:
            break  # the runtime is up already, as it is in the second run of one process
    return Choice(tf.distribute.MirroredStrategy([f"GPU:{i}" for i in range(len(gpus))]), "gpu", reason)


def _cpu(replicas: int, reason: str) -> Choice:
    check(replicas >= 1, f"Experiment.cpu_replicas = {replicas}: must be at least 1.")
    logical_cpus(replicas)
    # The default collectives fail on the second strategy of another size in one process; one device can sum them all.
    strategy = tf.distribute.MirroredStrategy(
        [f"CPU:{i}" for i in range(replicas)], cross_device_ops=tf.distribute.ReductionToOneDevice()
    )
    return Choice(strategy, "cpu", reason)


def logical_cpus(count: int) -> None:
    """Splits the CPU into at least `count` logical devices; TensorFlow allows this only before it first runs.

    Raises:
      UserError: if TensorFlow runs already with fewer.
    """
    cpu = tf.config.list_physical_devices("CPU")[0]
    configured = tf.config.get_logical_device_configuration(cpu) or [None]
    if len(configured) >= count:
        return
    try:
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
    except RuntimeError as error:
        raise UserError(
            f"{count} CPU replicas: TensorFlow already runs with {len(configured)} in this process. "
            "Start a new process for this run."
        ) from error
