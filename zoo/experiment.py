"""Experiment: every dial of a run; and `build`, which turns one into the steps that all entry points share."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import NamedTuple

import gin
import keras
import tensorflow as tf

from zoo import step as steps
from zoo.guards import check
from zoo.input_pipelines.pipeline import Data, Request
from zoo.optimizers import Schedule
from zoo.strategy import Choice, create_strategy

SIZES = ("input_size", "sequence_length", "vocabulary_size")


@gin.configurable
@dataclasses.dataclass(frozen=True, kw_only=True)
class Experiment:
    """One run, completely. Everything a `.gin` file says of a run as a whole is bound here.

    Attributes:
      model: function that returns the network; it takes `num_classes` and, by name, what it needs of `input_size`,
        `sequence_length` and `vocabulary_size`.
      data: function of a `Request` that returns the `Data` of the run: `@fake_imagenet`, `@imagenet`, `@fake_text`,
        `@text_files`, `@synthetic`, …
      optimizer: function that returns a Keras optimizer.
      learning_rate: function of `(global_batch_size, total_steps)` that returns the rate as a function of the step.
      input_size: height and width of images, in pixels.
      sequence_length: tokens of a text: longer ones are cut, shorter ones padded.
      vocabulary_size: number of token ids of texts, padding and unknown words included.
      num_classes: number of logits.
      init_from: weights that a new run starts from: a workdir or a checkpoint of another run, a `.keras` file, or
        'keras.applications'; layers of other shapes, such as the logits of other classes, are drawn anew. See `zoo.init_from`.
      global_batch_size: examples per step over all replicas; either this or `per_replica_batch_size`.
      per_replica_batch_size: examples per step and replica.
      microbatches: parts that each replica takes its batch in, to save memory; the result is that of as many replicas.
      train_examples: examples in an epoch; None takes all that the data have, fewer take the first so many.
      eval_examples: examples of an evaluation; None takes all.
      train_epochs: length of the run; either this or `train_steps`.
      train_steps: length of the run in optimizer steps.
      eval_every_epochs: how often to evaluate; the end of the run is always evaluated.
      checkpoint_every_steps: how often to write a checkpoint; the end of the run always has one.
      keep_checkpoints: how many of the newest checkpoints to keep.
      steps_per_loop: steps in one call of the device; metrics are read and logged once per call.
      weight_decay: λ of the coupled L2 term, g + λ·w, on kernels.
      clip_norm: the largest global norm of the gradient; None does not clip.
      average_decay: of a moving average of weights and statistics, which is evaluated and exported instead of them; it warms
        up as min(average_decay, (1 + step) / (10 + step)). None averages nothing.
      aux_loss_weight: weight of the loss of a network's auxiliary head, where it has one.
      label_smoothing: share of the target that is spread over all classes, in training.
      precision: 'float32', 'mixed_bfloat16' or 'mixed_float16' (16-bit products, float32 weights and statistics; float16
        with dynamic loss scaling).
      xla: compile forward and backward with XLA; None decides: convolutional networks yes on GPUs, no on CPUs; recurrent
        ones where cuDNN does not run (a TPU always compiles the whole step).
      seed: of weights, order of examples and augmentation.
      accelerator: 'auto', 'tpu', 'gpu' or 'cpu', see `zoo.strategy.create_strategy`; so are the next five.
      allow_cpu: whether 'auto' may settle for the CPU.
      cpu_replicas: replicas on a CPU.
      tpu: which TPU.
      tpu_zone: its zone.
      tpu_project: its project.
      target_top1: training ends at the first evaluation that reaches it; None trains to the end.
      usd_per_hour: what an hour of the whole machine costs, for figures in dollars; None takes what zoo/benchmark/prices.csv
        says, where it says so of the whole machine.
      rehearsal: whether this is a shrunken run that only shows that the real one would work.
    """

    model: Callable[..., keras.Model] = gin.REQUIRED
    data: Callable[..., Data] = gin.REQUIRED
    optimizer: Callable[[], keras.optimizers.Optimizer] = gin.REQUIRED
    learning_rate: Callable[..., Schedule] = gin.REQUIRED
    num_classes: int = gin.REQUIRED
    init_from: str | None = None
    input_size: int | None = None
    sequence_length: int | None = None
    vocabulary_size: int | None = None

    global_batch_size: int | None = None
    per_replica_batch_size: int | None = None
    microbatches: int = 1
    train_examples: int | None = None
    eval_examples: int | None = None
    train_epochs: float | None = None
    train_steps: int | None = None
    eval_every_epochs: float = 1.0
    checkpoint_every_steps: int = 1000
    keep_checkpoints: int = 3
    steps_per_loop: int = 100

    weight_decay: float = 0.0
    clip_norm: float | None = None
    average_decay: float | None = None
    aux_loss_weight: float = 0.4
    label_smoothing: float = 0.0
    precision: str = "float32"
    xla: bool | None = None
    seed: int = 0

    accelerator: str = "auto"
    allow_cpu: bool = False
    cpu_replicas: int = 1
    tpu: str = "local"
    tpu_zone: str | None = None
    tpu_project: str | None = None
    target_top1: float | None = None
    usd_per_hour: float | None = None
    rehearsal: bool = False

    def create_strategy(self) -> Choice:
        """Picks the devices; see `zoo.strategy.create_strategy`."""
        return create_strategy(
            self.accelerator,
            allow_cpu=self.allow_cpu,
            cpu_replicas=self.cpu_replicas,
            tpu=self.tpu,
            tpu_zone=self.tpu_zone,
            tpu_project=self.tpu_project,
        )

    def create_data(self, data_dir: str, write: bool = True) -> Data:
        """Opens the data under `data_dir`. Fake data are written there on first use if `write`."""
        return self.data(
            Request(
                data_dir=data_dir,
                num_classes=self.num_classes,
                **self.sizes(),
                train_examples=self.train_examples,
                eval_examples=self.eval_examples,
                write=write,
            )
        )

    def sizes(self) -> dict[str, int]:
        """What the network takes of the sizes of its input.

        Raises:
          UserError: if one has no value.
        """
        names = [name for name in SIZES if name in inspect.signature(self.model).parameters]
        for name in names:
            check(
                getattr(self, name) is not None,
                f"Experiment.{name} = None: this network needs it; bind it to a number.",
            )
        return {name: getattr(self, name) for name in names}

    def batch_size(self, replicas: int) -> int:
        """The global batch size on `replicas` replicas."""
        return self.global_batch_size or self.per_replica_batch_size * replicas


class Program(NamedTuple):
    """The steps of an experiment, to be run in replica context under the strategy that they were built for.

    Attributes:
      state: what a step changes.
      gradients: forward and backward pass of one replica, a pure function; see `step.make_gradients`.
      train_step: see `step.make_train_step`.
      eval_step: see `step.make_eval_step`.
      batch_spec: shapes and dtypes of one replica's `(inputs, labels, mask)`.
      learning_rate: the rate as a function of the step.
      jit_compile: whether XLA compiles `gradients`; TPUStrategy compiles the whole step by itself.
    """

    state: steps.State
    gradients: Callable
    train_step: Callable
    eval_step: Callable
    batch_spec: tuple[tf.TensorSpec, ...]
    learning_rate: Schedule
    jit_compile: bool


def build(
    experiment: Experiment,
    strategy: tf.distribute.Strategy,
    *,
    total_steps: int,
    replicas: int | None = None,
    all_reduce: steps.AllReduce = steps.sum_over_replicas,
) -> Program:
    """Builds model, optimizer and steps. Train, benchmark, preflight and compare all use these very steps.

    Args:
      experiment: the run.
      strategy: to build under.
      total_steps: length of the run, which the learning rate is laid over.
      replicas: number of replicas that the step is for, if not the strategy's own.
      all_reduce: sums each tensor of a list over all replicas.

    Raises:
      UserError: if the settings contradict one another.
    """
    replicas = replicas or strategy.num_replicas_in_sync
    global_batch_size = experiment.batch_size(replicas)
    with strategy.scope():
        model = create_model(experiment)
        averaged = (
            model if experiment.average_decay is None else create_model(experiment)
        )  # the same weights: same seed
        optimizer = experiment.optimizer()
        optimizer.build(model.trainable_variables)
        scaled = experiment.precision == "mixed_float16"
        state = steps.State(
            model=model,
            averaged=averaged,
            optimizer=optimizer,
            step=_counter("step", 0, tf.int64),
            loss_scale=_counter("loss_scale", steps.INITIAL_LOSS_SCALE if scaled else 1.0, tf.float32),
            steps_at_scale=_counter("steps_at_scale", 0, tf.int64),
        )
    jit_compile = _jit_compile(experiment, strategy, model)
    for layer in (*model.layers, *averaged.layers):
        if hasattr(layer, "cudnn"):
            layer.cudnn = not jit_compile and _cudnn(experiment, strategy)
    # Grappler's memory optimizer makes temporary variables of larger sums, which collide in a loop inside the device loop
    # (AlreadyExistsError); it has no switch of its own.
    loops = experiment.microbatches > 1 and not jit_compile
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": loops})
    learning_rate = experiment.learning_rate(global_batch_size=global_batch_size, total_steps=total_steps)
    gradients = steps.make_gradients(
        model,
        global_batch_size=global_batch_size,
        label_smoothing=experiment.label_smoothing,
        aux_loss_weight=experiment.aux_loss_weight,
        microbatches=experiment.microbatches,
        jit_compile=jit_compile,
    )
    train_step = steps.make_train_step(
        state,
        gradients,
        learning_rate=learning_rate,
        weight_decay=experiment.weight_decay,
        clip_norm=experiment.clip_norm,
        average_decay=experiment.average_decay,
        scaled=scaled,
        replicas=replicas,
        all_reduce=all_reduce,
    )
    rows = global_batch_size // replicas
    batch_spec = (
        tf.TensorSpec([rows, *model.input.shape[1:]], model.input.dtype, name="inputs"),
        tf.TensorSpec([rows], tf.int32, name="labels"),
        tf.TensorSpec([rows], tf.float32, name="mask"),
    )
    eval_step = steps.make_eval_step(state.averaged)
    return Program(state, gradients, train_step, eval_step, batch_spec, learning_rate, jit_compile)


def _counter(name: str, value: float, dtype: tf.DType) -> tf.Variable:
    """A scalar that is the same on all replicas."""
    return tf.Variable(
        value, dtype=dtype, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA, name=name
    )


def create_model(experiment: Experiment) -> keras.Model:
    """The network of an experiment, with weights drawn from its seed, under its precision."""
    before = keras.config.dtype_policy()
    keras.utils.set_random_seed(experiment.seed)
    keras.config.set_dtype_policy(experiment.precision)
    try:
        model = experiment.model(num_classes=experiment.num_classes, **experiment.sizes())
    finally:
        keras.config.set_dtype_policy(before)
    odd = [v.path for v in model.non_trainable_variables if v.dtype != "float32"]
    check(not odd, f"{model.name}: {odd[:1]} is a state that can't be averaged over replicas; use zoo's own layers.")
    return model


def _jit_compile(experiment: Experiment, strategy: tf.distribute.Strategy, model: keras.Model) -> bool:
    """Whether XLA compiles forward and backward apart. Under TPUStrategy never: it compiles the whole step itself."""
    if isinstance(strategy, tf.distribute.TPUStrategy):
        return False
    synchronized = [layer.name for layer in model.layers if getattr(layer, "synchronized", False)]
    if synchronized and strategy.num_replicas_in_sync > 1:
        for option, value in (("xla", None), ("microbatches", 1)):
            check(
                getattr(experiment, option) in (value, False),
                f"Experiment.{option} = {getattr(experiment, option)}: does not go with the all-reduce inside {synchronized[0]} "
                f"(synchronized batch normalization) under MirroredStrategy. Bind Experiment.{option} = {value}, or "
                "synchronized_norm = False.",
            )
        return False
    if experiment.xla is not None:
        return experiment.xla
    if any(hasattr(layer, "cudnn") for layer in model.layers):
        # XLA can't compile cuDNN's LSTM, which is faster than any loop; elsewhere, XLA's loop is faster than TensorFlow's.
        return not _cudnn(experiment, strategy)
    # On a CPU, TensorFlow's own convolutions train ResNet-50 several times as fast as XLA's.
    return _on_gpus(strategy)


def _on_gpus(strategy: tf.distribute.Strategy) -> bool:
    mirrored = isinstance(strategy, tf.distribute.MirroredStrategy | tf.distribute.MultiWorkerMirroredStrategy)
    return mirrored and any("GPU" in device for device in strategy.extended.worker_devices)


def _cudnn(experiment: Experiment, strategy: tf.distribute.Strategy) -> bool:
    """Whether cuDNN's LSTM can run here: it takes no bfloat16."""
    return _on_gpus(strategy) and experiment.precision != "mixed_bfloat16"
