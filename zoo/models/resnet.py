"""The ResNet family (He et al., 2015, arXiv:1512.03385), from one builder."""

import functools
from collections.abc import Callable

import gin
import keras
from keras import layers

from zoo.guards import UserError
from zoo.models.batch_norm import BatchNorm

# ImageNet's mean and standard deviation per channel, on a scale of 0 to 255 (torchvision and the Cloud TPU reference).
MEAN_RGB = (0.485 * 255, 0.456 * 255, 0.406 * 255)
STDDEV_RGB = (0.229 * 255, 0.224 * 255, 0.225 * 255)


def conv(filters: int, size: int, **options) -> layers.Layer:
    """A convolution without bias, He-initialized by fan-out."""
    # A new initializer for each: one draws its seed when it is made, and gives equal shapes equal weights.
    initializer = keras.initializers.VarianceScaling(2.0, "fan_out", "untruncated_normal")
    return layers.Conv2D(filters, size, use_bias=False, kernel_initializer=initializer, **options)


def pad(size: int, x, name: str):
    """Pads height and width by `size` on each side, as torchvision does; TensorFlow's SAME is asymmetric at stride 2."""
    return layers.ZeroPadding2D(size, name=name)(x)


def basic_block(x, filters: int, stride: int, stride_in_1x1: bool, norm: Callable, last_gamma: str, name: str):
    """Two 3×3 convolutions beside a shortcut (ResNet-18 and 34); it has no 1×1 to move the stride to."""
    shortcut = x
    if stride > 1 or x.shape[-1] != filters:
        shortcut = conv(filters, 1, strides=stride, name=f"{name}_0_conv")(x)
        shortcut = norm(name=f"{name}_0_bn")(shortcut)
    x = conv(filters, 3, strides=stride, padding="valid", name=f"{name}_1_conv")(pad(1, x, f"{name}_1_pad"))
    x = layers.ReLU(name=f"{name}_1_relu")(norm(name=f"{name}_1_bn")(x))
    x = conv(filters, 3, padding="same", name=f"{name}_2_conv")(x)
    x = norm(name=f"{name}_2_bn", gamma_initializer=last_gamma)(x)
    return layers.ReLU(name=f"{name}_out")(layers.Add(name=f"{name}_add")([shortcut, x]))


def bottleneck_block(x, filters: int, stride: int, stride_in_1x1: bool, norm: Callable, last_gamma: str, name: str):
    """1×1, 3×3 and 1×1 convolutions beside a shortcut (ResNet-50 and deeper)."""
    shortcut = x
    if stride > 1 or x.shape[-1] != 4 * filters:
        shortcut = conv(4 * filters, 1, strides=stride, name=f"{name}_0_conv")(x)
        shortcut = norm(name=f"{name}_0_bn")(shortcut)
    first, second = (stride, 1) if stride_in_1x1 else (1, stride)
    x = conv(filters, 1, strides=first, name=f"{name}_1_conv")(x)
    x = layers.ReLU(name=f"{name}_1_relu")(norm(name=f"{name}_1_bn")(x))
    if second > 1:
        x = conv(filters, 3, strides=second, name=f"{name}_2_conv")(pad(1, x, f"{name}_2_pad"))
    else:
        x = conv(filters, 3, padding="same", name=f"{name}_2_conv")(x)
    x = layers.ReLU(name=f"{name}_2_relu")(norm(name=f"{name}_2_bn")(x))
    x = conv(4 * filters, 1, name=f"{name}_3_conv")(x)
    x = norm(name=f"{name}_3_bn", gamma_initializer=last_gamma)(x)
    return layers.ReLU(name=f"{name}_out")(layers.Add(name=f"{name}_add")([shortcut, x]))


def resnet(
    input_size: int,
    num_classes: int,
    *,
    block: Callable,
    stage_sizes: tuple[int, ...],
    stage_filters: tuple[int, ...] = (64, 128, 256, 512),
    variant: str = "v1.5",
    zero_init_last_gamma: bool = False,
    norm_momentum: float = 0.9,
    norm_epsilon: float = 1e-5,
    synchronized_norm: bool = False,
    name: str = "resnet",
) -> keras.Model:
    """Builds a ResNet.

    Args:
      input_size: height and width of the images.
      num_classes: number of logits.
      block: `basic_block` or `bottleneck_block`.
      stage_sizes: number of blocks in each stage; every stage but the first halves height and width.
      stage_filters: width of each stage (a bottleneck block puts out four times that).
      variant: 'v1.5' has the stride of a bottleneck in its 3×3 convolution (torchvision, the Cloud TPU reference), 'v1'
        in its first 1×1 (the paper, `keras.applications`).
      zero_init_last_gamma: start every residual branch at zero (Goyal et al., 2017, arXiv:1706.02677, section 5.1).
      norm_momentum: of the moving statistics of batch normalization.
      norm_epsilon: added to the variances of batch normalization.
      synchronized_norm: batch statistics over all replicas instead of each replica's own.
      name: of the model.

    Returns:
      A model from uint8 images `[batch, input_size, input_size, 3]`, RGB, 0 to 255, to float32 logits
      `[batch, num_classes]`.

    Raises:
      UserError: on a variant that does not exist.
    """
    if variant not in ("v1.5", "v1"):
        raise UserError(
            f"variant = {variant!r}: ResNet comes as 'v1.5' (stride in the 3×3) or 'v1' (in the first 1×1)."
        )
    norm = functools.partial(BatchNorm, momentum=norm_momentum, epsilon=norm_epsilon, synchronized=synchronized_norm)
    images = keras.Input((input_size, input_size, 3), dtype="uint8", name="images")
    # Float32, since a scaled pixel loses up to a quarter of a grey level in bfloat16.
    x = layers.Rescaling(
        [1 / s for s in STDDEV_RGB],
        [-m / s for m, s in zip(MEAN_RGB, STDDEV_RGB, strict=True)],
        dtype="float32",
        name="normalize",
    )(images)
    x = conv(stage_filters[0], 7, strides=2, name="stem_conv")(pad(3, x, "stem_pad"))
    x = layers.ReLU(name="stem_relu")(norm(name="stem_bn")(x))
    x = layers.MaxPooling2D(3, strides=2, name="stem_pool")(pad(1, x, "stem_pool_pad"))
    for stage, (blocks, filters) in enumerate(zip(stage_sizes, stage_filters, strict=True), start=1):
        for i in range(1, blocks + 1):
            x = block(
                x,
                filters,
                stride=2 if stage > 1 and i == 1 else 1,
                stride_in_1x1=variant == "v1",
                norm=norm,
                last_gamma="zeros" if zero_init_last_gamma else "ones",
                name=f"stage{stage}_block{i}",
            )
    x = layers.GlobalAveragePooling2D(name="pool")(x)
    # Logits in float32 whatever the compute precision: the softmax over them is sensitive.
    logits = layers.Dense(
        num_classes,
        kernel_initializer=keras.initializers.RandomNormal(stddev=0.01),
        dtype="float32",
        name="logits",
    )(x)
    return keras.Model(images, logits, name=name)


def _depth(name: str, block: Callable, stage_sizes: tuple[int, ...]) -> Callable[..., keras.Model]:
    """One depth of the family, as a function that Gin can configure."""

    def build(
        input_size: int = 224,
        num_classes: int = 1000,
        *,
        variant: str = "v1.5",
        zero_init_last_gamma: bool = False,
        norm_momentum: float = 0.9,
        norm_epsilon: float = 1e-5,
        synchronized_norm: bool = False,
    ) -> keras.Model:
        return resnet(
            input_size,
            num_classes,
            block=block,
            stage_sizes=stage_sizes,
            variant=variant,
            zero_init_last_gamma=zero_init_last_gamma,
            norm_momentum=norm_momentum,
            norm_epsilon=norm_epsilon,
            synchronized_norm=synchronized_norm,
            name=name,
        )

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"{name}: `resnet` with {' + '.join(map(str, stage_sizes))} blocks. See `resnet` for the options."
    return gin.configurable(name, module="zoo.models.resnet", denylist=["input_size", "num_classes"])(build)


resnet18 = _depth("resnet18", basic_block, (2, 2, 2, 2))
resnet34 = _depth("resnet34", basic_block, (3, 4, 6, 3))
resnet50 = _depth("resnet50", bottleneck_block, (3, 4, 6, 3))
resnet101 = _depth("resnet101", bottleneck_block, (3, 4, 23, 3))
resnet152 = _depth("resnet152", bottleneck_block, (3, 8, 36, 3))
