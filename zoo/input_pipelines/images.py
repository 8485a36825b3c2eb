"""Encoded images (JPEG or PNG) to pixels: the crops of training and of evaluation."""

import tensorflow as tf

ASPECT_RATIO_RANGE = (3 / 4, 4 / 3)
CENTRE_FRACTION = 0.875


def train_image(encoded: tf.Tensor, size: int, key: tf.Tensor, min_crop_area: float, flip: bool) -> tf.Tensor:
    """Decodes a random part of an image, resizes it to `[size, size, 3]` uint8 and flips every other one.

    The crop is that of the Cloud TPU reference, after Szegedy et al., 2014, arXiv:1409.4842, section 6: TensorFlow's
    sampler, which draws an aspect ratio and then a height, so that small areas are more frequent than with torchvision,
    which draws the area (their mean is 0.36 of an image of 400×300); the whole image where ten tries find none that fits.
    Bicubic, as in evaluation. Of a JPEG, only the part is decoded.

    Args:
      encoded: JPEG or PNG, string scalar.
      size: height and width of the result.
      key: int64 `[2]`; the result follows from it.
      min_crop_area: the least share of the image's area.
      flip: whether to mirror every other image.
    """
    shape = _shape(encoded)
    begin, extent, _ = tf.image.stateless_sample_distorted_bounding_box(
        shape,
        tf.zeros([1, 0, 4]),
        seed=key,
        area_range=(min_crop_area, 1.0),
        aspect_ratio_range=ASPECT_RATIO_RANGE,
        max_attempts=10,
        use_image_if_no_bounding_boxes=True,
    )
    window = tf.stack([begin[0], begin[1], extent[0], extent[1]])
    image = _resize(_decode_part(encoded, window), size)
    return tf.image.stateless_random_flip_left_right(image, seed=key) if flip else image


def eval_image(encoded: tf.Tensor, size: int) -> tf.Tensor:
    """Decodes the central square, 0.875 of the shorter side, resized to `[size, size, 3]` uint8 (bicubic)."""
    shape = _shape(encoded)
    height, width = shape[0], shape[1]
    side = tf.cast(tf.round(CENTRE_FRACTION * tf.cast(tf.minimum(height, width), tf.float32)), tf.int32)
    side = tf.maximum(side, 1)
    window = tf.stack([(height - side) // 2, (width - side) // 2, side, side])
    return _resize(_decode_part(encoded, window), size)


def _shape(encoded: tf.Tensor) -> tf.Tensor:
    """Height, width and channels, int32 `[3]`."""
    return tf.cond(
        tf.io.is_jpeg(encoded),
        lambda: tf.io.extract_jpeg_shape(encoded),
        lambda: tf.shape(tf.io.decode_png(encoded, channels=3)),
    )


def _decode_part(encoded: tf.Tensor, window: tf.Tensor) -> tf.Tensor:
    """The pixels of `window` (top, left, height, width)."""

    def of_png():
        top, left, height, width = tf.unstack(window)
        return tf.io.decode_png(encoded, channels=3)[top : top + height, left : left + width]

    return tf.cond(tf.io.is_jpeg(encoded), lambda: tf.io.decode_and_crop_jpeg(encoded, window, channels=3), of_png)


def _resize(image: tf.Tensor, size: int) -> tf.Tensor:
    resized = tf.image.resize(image, [size, size], tf.image.ResizeMethod.BICUBIC)
    return tf.cast(tf.round(tf.clip_by_value(resized, 0, 255)), tf.uint8)
