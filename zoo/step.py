"""What one replica does: loss, gradients, reduction, update, and the sums of an evaluation.

The order of a training step is fixed here and nowhere else: forward and backward, one all-reduce of the gradients,
coupled weight decay, clipping, update. In float16, the loss is scaled and the reduced gradients are scaled back; where they are
not finite, the update is left out on all replicas. Decay and clipping after the reduction make them independent of the number of
replicas; Keras's own `weight_decay` (decoupled) and `clipnorm` (before the reduction) are therefore not used.
"""

import dataclasses
from collections.abc import Callable

import keras
import tensorflow as tf

from zoo.models.position import Position, at, warmed

Tensors = list[tf.Tensor]
AllReduce = Callable[[Tensors], Tensors]

# Dynamic loss scaling (Micikevicius et al., 2017, arXiv:1710.03740, section 3.2) with the constants of Keras's own.
INITIAL_LOSS_SCALE, STEPS_TO_DOUBLE, LEAST_LOSS_SCALE = 2.0**15, 2000, 1.0


@dataclasses.dataclass(frozen=True)
class State:
    """All that a step changes, and so all that a checkpoint holds. Every replica holds identical values after a step.

    Attributes:
      model: the network that is trained.
      averaged: the network that is evaluated and exported: `model` itself where weights are not averaged.
      optimizer: with its slots built.
      step: int64 scalar, the number of steps made, left-out updates included; the position in the data follows from it.
      loss_scale: float32 scalar that the loss is multiplied by in float16; 1 in other precisions.
      steps_at_scale: int64 scalar, updates in a row since the scale last changed.
    """

    model: keras.Model
    averaged: keras.Model
    optimizer: keras.optimizers.Optimizer
    step: tf.Variable
    loss_scale: tf.Variable
    steps_at_scale: tf.Variable

    def checkpoint(self) -> tf.train.Checkpoint:
        return tf.train.Checkpoint(**{field.name: getattr(self, field.name) for field in dataclasses.fields(self)})


def sum_over_replicas(tensors: Tensors) -> Tensors:
    """The all-reduce of `tf.distribute`: one call, whatever the number of tensors."""
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tensors)


def cross_entropy(labels: tf.Tensor, logits: tf.Tensor, label_smoothing: float) -> tf.Tensor:
    """Softmax cross-entropy of each example, float32 `[batch]`, from int32 labels `[batch]` and logits `[batch, classes]`.

    With smoothing ε, the target is 1 - ε on the label plus ε / classes on every class (Szegedy et al., 2015,
    arXiv:1512.00567, section 7).
    """
    classes = logits.shape[-1]
    targets = tf.one_hot(labels, classes) * (1 - label_smoothing) + label_smoothing / classes
    return tf.nn.softmax_cross_entropy_with_logits(targets, tf.cast(logits, tf.float32))


def make_gradients(
    model: keras.Model,
    *,
    global_batch_size: int,
    label_smoothing: float,
    aux_loss_weight: float,
    microbatches: int,
    jit_compile: bool,
) -> Callable[..., tuple[Tensors, Tensors, dict[str, tf.Tensor]]]:
    """Builds the forward and backward pass of one replica, a pure function of tensors.

    Args:
      model: the network.
      global_batch_size: each example's loss is divided by it, so that gradients sum over replicas and microbatches.
      label_smoothing: see `cross_entropy`.
      aux_loss_weight: weight of the loss of each output of `model` after the first, which alone counts for metrics.
      microbatches: parts of the replica's batch taken one after the other; batch normalization sees each part alone,
        as k replicas would.
      jit_compile: compile it with XLA. Not under TPUStrategy, which compiles the whole step by itself.

    Returns:
      `gradients(weights, statistics, loss_scale, position, inputs, labels, mask) -> (gradients, statistics, sums)`: values
      of the trainable and of the other variables of `model` come in; gradients of this replica's share of the loss, times
      `loss_scale` (float32 scalar), the new values of the other variables (averaged over microbatches) and the sums of `loss`,
      `top1` and `examples` go out. `position` is a `Position` of this replica's rows.
    """

    def one(weights, statistics, loss_scale, position, inputs, labels, mask):
        with tf.GradientTape(watch_accessed_variables=False) as tape, at(position):
            tape.watch(weights)
            outputs, new_statistics = model.stateless_call(weights, statistics, inputs, training=True)
            logits, *auxiliary = tf.nest.flatten(outputs)
            losses = cross_entropy(labels, logits, label_smoothing)
            for output in auxiliary:
                losses += aux_loss_weight * cross_entropy(labels, output, label_smoothing)
            loss = tf.reduce_sum(losses * mask) / global_batch_size
            scaled_loss = loss * loss_scale
        hits = tf.cast(tf.argmax(logits, -1, output_type=tf.int32) == labels, tf.float32)
        sums = {"loss": loss, "top1": tf.reduce_sum(hits * mask), "examples": tf.reduce_sum(mask)}
        gradients = tape.gradient(scaled_loss, weights, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return [tf.convert_to_tensor(g) for g in gradients], new_statistics, sums

    def accumulated(weights, statistics, loss_scale, position, inputs, labels, mask):
        parts = [tf.reshape(x, [microbatches, -1, *x.shape[1:]]) for x in (inputs, labels, mask)]

        def add(i, totals):
            here = position._replace(first_row=position.first_row + tf.cast(i, tf.int64) * parts[0].shape[1])
            new = one(weights, statistics, loss_scale, here, *(part[i] for part in parts))
            return i + 1, tf.nest.map_structure(tf.add, totals, new)

        zeros = tf.nest.map_structure(tf.zeros_like, (weights, statistics, {"loss": 0.0, "top1": 0.0, "examples": 0.0}))
        # One after the other, to save memory.
        _, (gradients, statistic_sums, sums) = tf.while_loop(
            lambda i, _: i < microbatches, add, (0, zeros), maximum_iterations=microbatches, parallel_iterations=1
        )
        return gradients, [s / microbatches for s in statistic_sums], sums

    function = one if microbatches == 1 else accumulated
    # Only where XLA compiles it: inside any tf.function of its own, no layer could reduce over replicas.
    return tf.function(function, jit_compile=True, autograph=False) if jit_compile else function


def make_train_step(
    state: State,
    gradients: Callable,
    *,
    learning_rate: Callable[[tf.Tensor], tf.Tensor],
    weight_decay: float,
    clip_norm: float | None,
    average_decay: float | None,
    scaled: bool,
    replicas: int,
    all_reduce: AllReduce,
) -> Callable[..., dict[str, tf.Tensor]]:
    """Builds `train_step(inputs, labels, mask) -> result`, to be run in replica context.

    The result holds this replica's sums (`loss`, `top1`, `examples`) and, equal on all replicas, `learning_rate`,
    `gradient_norm` (of the reduced gradient with its decay, before clipping), `loss_scale` (that of this step), `skipped` (1 if
    the update was left out) and `sound` (1 unless the training has diverged).

    Args:
      state: what the step changes.
      gradients: see `make_gradients`.
      learning_rate: function of the step.
      weight_decay: λ of the coupled L2 term on kernels.
      clip_norm: the largest global norm of the gradient; None does not clip.
      average_decay: of the moving average that `state.averaged` holds, warmed up; None where that is `state.model`.
      scaled: whether the loss is scaled, as float16 needs.
      replicas: number of replicas that `all_reduce` sums over.
      all_reduce: sums each tensor of a list over all replicas.
    """
    model, optimizer = state.model, state.optimizer
    trainable, other = model.trainable_variables, model.non_trainable_variables
    decayed = [variable.name.endswith("kernel") for variable in trainable]

    def update(strategy, new_gradients, new_statistics, rate, finite):
        def assign(variable, fn, *args):
            value = variable.value if isinstance(variable, keras.Variable) else variable
            strategy.extended.update(value, fn, args=args, group=False)

        def apply():
            for variable, gradient in zip(trainable, new_gradients, strict=True):
                assign(variable, lambda v, g, r: optimizer.update_step(g, v, r), gradient, rate)
            for variable, value in zip(other, new_statistics, strict=True):
                assign(variable, lambda v, x: v.assign(x), value)
            assign(optimizer.iterations, lambda v: v.assign_add(1))
            if average_decay is not None:
                kept = warmed(average_decay, strategy.experimental_local_results(state.step)[0])
                for average, variable in zip(state.averaged.weights, model.weights, strict=True):
                    assign(average, lambda a, v, k: a.assign(a - (1 - k) * (a - v)), variable.value, kept)

        if not scaled:
            apply()
            assign(state.step, lambda v: v.assign_add(1))
            return
        # All replicas agree, so the first one's word is enough.
        tf.cond(strategy.experimental_local_results(finite)[0], lambda: (apply(), 0)[1], lambda: 0)
        scale, count = _next_scale(state, finite, strategy)
        assign(state.step, lambda v: v.assign_add(1))
        assign(state.loss_scale, lambda v, x: v.assign(x), scale)
        assign(state.steps_at_scale, lambda v, x: v.assign(x), count)

    def train_step(inputs, labels, mask):
        weights = [tf.convert_to_tensor(v.value) for v in trainable]
        statistics = [tf.convert_to_tensor(v.value) for v in other]
        scale = tf.convert_to_tensor(state.loss_scale)
        replica = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.int64)
        position = Position(tf.convert_to_tensor(state.step), replica * inputs.shape[0])
        local_gradients, local_statistics, sums = gradients(weights, statistics, scale, position, inputs, labels, mask)
        reduced = all_reduce(local_gradients + local_statistics)
        total, statistics = reduced[: len(weights)], [s / replicas for s in reduced[len(weights) :]]
        if scaled:
            total = [g / scale for g in total]
        total = [g + weight_decay * w if d else g for g, w, d in zip(total, weights, decayed, strict=True)]
        norm = tf.linalg.global_norm(total)
        finite = tf.math.is_finite(norm)
        if clip_norm is not None:
            total, _ = tf.clip_by_global_norm(total, clip_norm, use_norm=norm)
        rate = learning_rate(tf.convert_to_tensor(state.step))
        tf.__internal__.distribute.interim.maybe_merge_call(
            update, tf.distribute.get_strategy(), total, statistics, rate, finite
        )
        skipped = tf.cast(~finite, tf.float32) if scaled else tf.zeros([])
        sound = finite | (scaled & (scale > LEAST_LOSS_SCALE))
        flags = {"loss_scale": scale, "skipped": skipped, "sound": tf.cast(sound, tf.float32)}
        return sums | {"learning_rate": rate, "gradient_norm": norm} | flags

    return train_step


def _next_scale(state: State, finite, strategy: tf.distribute.Strategy) -> tuple[tf.Tensor, tf.Tensor]:
    """Scale and count after a step: halved where the gradients were not finite, doubled after many where they were."""
    finite = strategy.experimental_local_results(finite)[0]
    scale, count = (
        tf.convert_to_tensor(strategy.experimental_local_results(v)[0])
        for v in (state.loss_scale, state.steps_at_scale)
    )
    doubles = count + 1 >= STEPS_TO_DOUBLE
    grown = tf.where(doubles, tf.minimum(2 * scale, 2.0**100), scale)
    halved = tf.maximum(scale / 2, LEAST_LOSS_SCALE)
    return tf.where(finite, grown, halved), tf.where(finite & ~doubles, count + 1, tf.zeros_like(count))


def make_eval_step(model: keras.Model) -> Callable[..., dict[str, tf.Tensor]]:
    """Builds `eval_step(inputs, labels, mask) -> sums` of `loss`, `top1`, `top5` and `examples` over examples of mask 1."""

    def eval_step(inputs, labels, mask):
        logits, *_ = tf.nest.flatten(model(inputs, training=False))
        losses = cross_entropy(labels, logits, label_smoothing=0.0)
        # Ties go to the lower class, so that a network that says nothing is not right every time.
        best = tf.math.top_k(logits, min(5, logits.shape[-1])).indices
        hits = tf.cast(best == labels[:, tf.newaxis], tf.float32)
        return {
            "loss": tf.reduce_sum(losses * mask),
            "top1": tf.reduce_sum(hits[:, 0] * mask),
            "top5": tf.reduce_sum(tf.reduce_max(hits, -1) * mask),
            "examples": tf.reduce_sum(mask),
        }

    return eval_step
