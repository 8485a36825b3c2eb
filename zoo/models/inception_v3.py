"""InceptionV3 (Szegedy et al., 2015, arXiv:1512.00567), with its auxiliary head."""

import gin
import keras
from keras import layers

from zoo.guards import UserError
from zoo.models.batch_norm import BatchNorm
from zoo.models.dropout import Dropout

SMALLEST_INPUT = 75


class _Builder:
    """Convolutions with normalization, numbered in the order in which they are made, as `keras.applications` numbers its own."""

    def __init__(self, norm_momentum: float, norm_epsilon: float):
        self.count = 0
        self.norm = {"momentum": norm_momentum, "epsilon": norm_epsilon, "warmup": True, "scale": False}

    def conv(self, x, filters: int, height: int, width: int, strides: int = 1, padding: str = "same", name: str = ""):
        if not name:
            self.count += 1
            name = str(self.count)
        x = layers.Conv2D(
            filters,
            (height, width),
            strides=strides,
            padding=padding,
            use_bias=False,
            kernel_initializer=keras.initializers.VarianceScaling(2.0, "fan_out", "untruncated_normal"),
            name=f"conv_{name}",
        )(x)
        return layers.ReLU(name=f"relu_{name}")(BatchNorm(**self.norm, name=f"bn_{name}")(x))

    def pooled(self, x, filters: int):
        """An average of 3×3 and a 1×1 convolution. The padding does not count in the average."""
        return self.conv(layers.AveragePooling2D(3, strides=1, padding="same")(x), filters, 1, 1)

    def grid_35(self, x, pool_filters: int, name: str):
        a = self.conv(x, 64, 1, 1)
        b = self.conv(self.conv(x, 48, 1, 1), 64, 5, 5)
        c = self.conv(x, 64, 1, 1)
        c = self.conv(self.conv(c, 96, 3, 3), 96, 3, 3)
        return layers.Concatenate(name=name)([a, b, c, self.pooled(x, pool_filters)])

    def reduction_to_17(self, x, name: str):
        a = self.conv(x, 384, 3, 3, strides=2, padding="valid")
        b = self.conv(self.conv(x, 64, 1, 1), 96, 3, 3)
        b = self.conv(b, 96, 3, 3, strides=2, padding="valid")
        return layers.Concatenate(name=name)([a, b, layers.MaxPooling2D(3, strides=2)(x)])

    def grid_17(self, x, filters: int, name: str):
        a = self.conv(x, 192, 1, 1)
        b = self.conv(x, filters, 1, 1)
        b = self.conv(self.conv(b, filters, 1, 7), 192, 7, 1)
        c = self.conv(x, filters, 1, 1)
        c = self.conv(self.conv(c, filters, 7, 1), filters, 1, 7)
        c = self.conv(self.conv(c, filters, 7, 1), 192, 1, 7)
        return layers.Concatenate(name=name)([a, b, c, self.pooled(x, 192)])

    def reduction_to_8(self, x, name: str):
        a = self.conv(self.conv(x, 192, 1, 1), 320, 3, 3, strides=2, padding="valid")
        b = self.conv(x, 192, 1, 1)
        b = self.conv(self.conv(b, 192, 1, 7), 192, 7, 1)
        b = self.conv(b, 192, 3, 3, strides=2, padding="valid")
        return layers.Concatenate(name=name)([a, b, layers.MaxPooling2D(3, strides=2)(x)])

    def grid_8(self, x, name: str):
        a = self.conv(x, 320, 1, 1)
        b = self.conv(x, 384, 1, 1)
        b = layers.Concatenate()([self.conv(b, 384, 1, 3), self.conv(b, 384, 3, 1)])
        c = self.conv(self.conv(x, 448, 1, 1), 384, 3, 3)
        c = layers.Concatenate()([self.conv(c, 384, 1, 3), self.conv(c, 384, 3, 1)])
        return layers.Concatenate(name=name)([a, b, c, self.pooled(x, 192)])

    def auxiliary_head(self, x, num_classes: int):
        """Pooled by 5×5 in steps of 3, or as a whole where the grid is smaller, down to logits."""
        size = x.shape[1]
        x = layers.AveragePooling2D(min(5, size), strides=3, name="aux_pool")(x)
        x = self.conv(x, 128, 1, 1, name="aux_1")
        kernel = min(5, x.shape[1])
        x = self.conv(x, 768, kernel, kernel, padding="valid", name="aux_2")
        return _logits(layers.GlobalAveragePooling2D(name="aux_vector")(x), num_classes, "aux_logits")


def _logits(x, num_classes: int, name: str):
    initializer = keras.initializers.TruncatedNormal(stddev=0.01)
    return layers.Dense(num_classes, kernel_initializer=initializer, dtype="float32", name=name)(x)


@gin.configurable(denylist=["input_size", "num_classes"])
def inception_v3(
    input_size: int = 299,
    num_classes: int = 1000,
    *,
    norm_momentum: float = 0.996,
    norm_epsilon: float = 1e-3,
    dropout_rate: float = 0.2,
    dropout_seed: int = 0,
) -> keras.Model:
    """Builds InceptionV3.

    Args:
      input_size: height and width of the images, at least 75.
      num_classes: number of logits.
      norm_momentum: of the moving statistics of batch normalization, which warm up.
      norm_epsilon: added to the variances of batch normalization.
      dropout_rate: before the logits.
      dropout_seed: of the masks.

    Returns:
      A model from uint8 images `[batch, input_size, input_size, 3]`, RGB, 0 to 255, to two float32 tensors
      `[batch, num_classes]`: the logits, and those of the auxiliary head, which only the training loss needs.

    Raises:
      UserError: if the images are too small.
    """
    if input_size < SMALLEST_INPUT:
        raise UserError(f"input_size = {input_size}: InceptionV3 needs at least {SMALLEST_INPUT} pixels.")
    b = _Builder(norm_momentum, norm_epsilon)
    images = keras.Input((input_size, input_size, 3), dtype="uint8", name="images")
    x = layers.Rescaling(1 / 127.5, -1, dtype="float32", name="normalize")(images)
    x = b.conv(x, 32, 3, 3, strides=2, padding="valid")
    x = b.conv(x, 32, 3, 3, padding="valid")
    x = b.conv(x, 64, 3, 3)
    x = layers.MaxPooling2D(3, strides=2)(x)
    x = b.conv(x, 80, 1, 1, padding="valid")
    x = b.conv(x, 192, 3, 3, padding="valid")
    x = layers.MaxPooling2D(3, strides=2)(x)
    for i, pool_filters in enumerate((32, 64, 64)):
        x = b.grid_35(x, pool_filters, f"mixed{i}")
    x = b.reduction_to_17(x, "mixed3")
    for i, filters in enumerate((128, 160, 160, 192), start=4):
        x = b.grid_17(x, filters, f"mixed{i}")
    auxiliary = b.auxiliary_head(x, num_classes)
    x = b.reduction_to_8(x, "mixed8")
    x = b.grid_8(x, "mixed9")
    x = b.grid_8(x, "mixed10")
    x = layers.GlobalAveragePooling2D(name="pool")(x)
    x = Dropout(dropout_rate, seed=dropout_seed, name="dropout")(x)
    return keras.Model(images, [_logits(x, num_classes, "logits"), auxiliary], name="inception_v3")
