"""The stream is a function of the step alone, complete and disjoint over epochs and hosts."""

import dataclasses

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tests import tiny
from zoo.input_pipelines import pipeline
from zoo.input_pipelines.synthetic import synthetic

ONE = tf.distribute.InputContext(num_input_pipelines=1, input_pipeline_id=0, num_replicas_in_sync=1)


def identity_source(examples):
    """A source whose label is the index of the example."""
    source = tiny.source(examples)
    return dataclasses.replace(
        source,
        decode_train=lambda index, key: (tf.stack([index, key[0], key[1]]), tf.cast(index, tf.int32)),
        decode_eval=lambda index: (tf.stack([index]), tf.cast(index, tf.int32)),
    )


def train(source, start_step, batches, context=ONE, global_batch_size=8, seed=3):
    dataset = pipeline.train_dataset(
        source, seed=seed, start_step=start_step, global_batch_size=global_batch_size, context=context
    )
    return [tuple(np.array(x) for x in batch) for batch in dataset.take(batches).as_numpy_iterator()]


class TrainDatasetTest(parameterized.TestCase):
    @parameterized.parameters(1, 4, 5, 7, 12)
    def test_resumed_equals_uninterrupted(self, start):
        """Over epoch borders (20 examples are 2.5 batches), augmentation included."""
        source = tiny.source(20)
        whole, resumed = train(source, 0, 15), train(source, start, 15 - start)
        for a, b in zip(whole[start:], resumed, strict=True):
            for x, y in zip(a, b, strict=True):
                np.testing.assert_array_equal(x, y)

    def test_every_example_once_an_epoch_in_changing_order(self):
        labels = np.concatenate([batch[1] for batch in train(identity_source(20), 0, 10)]).reshape(4, 20)
        for epoch in labels:
            self.assertEqual(sorted(epoch), list(range(20)))
        self.assertLen({tuple(epoch) for epoch in labels}, 4)

    def test_augmentation_key_is_seed_and_position(self):
        inputs = np.concatenate([batch[0] for batch in train(identity_source(20), 2, 3)])
        np.testing.assert_array_equal(inputs[:, 1], np.full(24, 3))
        np.testing.assert_array_equal(inputs[:, 2], np.arange(16, 40))

    def test_tensorflows_global_seed_does_not(self):
        orders = []
        for seed in (1, 7):
            tf.random.set_seed(seed)
            orders.append(list(train(identity_source(20), 0, 1, seed=0)[0][1]))
        self.assertEqual(*orders)

    def test_seed_changes_the_order(self):
        a, b = (train(identity_source(20), 0, 1, seed=seed)[0][1] for seed in (0, 1))
        self.assertNotEqual(list(a), list(b))

    @parameterized.parameters(2, 4)
    def test_hosts_get_disjoint_blocks_of_the_same_global_batches(self, hosts):
        whole = train(identity_source(20), 1, 6)
        parts = [
            train(identity_source(20), 1, 6, tf.distribute.InputContext(hosts, host, hosts)) for host in range(hosts)
        ]
        for step, (_, labels, _) in enumerate(whole):
            np.testing.assert_array_equal(np.concatenate([part[step][1] for part in parts]), labels)

    def test_shapes_are_static(self):
        dataset = pipeline.train_dataset(tiny.source(20), seed=0, start_step=0, global_batch_size=8, context=ONE)
        self.assertEqual([spec.shape for spec in dataset.element_spec], [(8, 16, 16, 3), (8,), (8,)])

    def test_a_source_that_promises_too_much_fails(self):
        source = dataclasses.replace(identity_source(20), num_examples=21)
        with self.assertRaises(tf.errors.FailedPreconditionError):
            train(source, 0, 3)


class EvalDatasetTest(parameterized.TestCase):
    @parameterized.parameters((20, 8, 1), (16, 8, 1), (3, 8, 1), (20, 8, 2), (130, 64, 4))
    def test_every_example_once(self, examples, batch, hosts):
        source, seen = identity_source(examples), []
        for host in range(hosts):
            dataset = pipeline.eval_dataset(
                source, global_batch_size=batch, context=tf.distribute.InputContext(hosts, host, hosts)
            )
            batches = list(dataset.as_numpy_iterator())
            self.assertLen(batches, pipeline.eval_steps(source, batch))
            seen += [label for _, labels, mask in batches for label, m in zip(labels, mask, strict=True) if m]
        self.assertEqual(sorted(seen), list(range(examples)))


class ResidentTest(absltest.TestCase):
    def test_synthetic_batch_stays(self):
        data = synthetic(
            pipeline.Request(data_dir="", input_size=8, num_classes=5, train_examples=32, eval_examples=10)
        )
        strategy = tf.distribute.MirroredStrategy(
            ["CPU:0", "CPU:1"], cross_device_ops=tf.distribute.ReductionToOneDevice()
        )
        batches, resumed = (
            pipeline.train_iterator(data.train, strategy, seed=0, start_step=start, global_batch_size=4)
            for start in (0, 5)
        )
        images, labels, _ = next(batches)
        for a, b in zip(*map(strategy.experimental_local_results, (images, next(resumed)[0])), strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
        self.assertIs(next(batches)[0], images)
        rows = [part.numpy() for part in strategy.experimental_local_results(images)]
        self.assertEqual([part.shape for part in rows], [(2, 8, 8, 3)] * 2)
        self.assertFalse(np.array_equal(*rows))
        labels = np.concatenate([part.numpy() for part in strategy.experimental_local_results(labels)])
        self.assertTrue(((labels >= 0) & (labels < 5)).all())


if __name__ == "__main__":
    absltest.main()
