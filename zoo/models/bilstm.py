"""A bidirectional LSTM text classifier."""

import gin
import keras
from keras import layers

from zoo.guards import UserError
from zoo.models.dropout import Dropout
from zoo.models.lstm import BidirectionalLSTM


@gin.configurable(denylist=["sequence_length", "num_classes", "vocabulary_size"])
def bilstm(
    sequence_length: int = 256,
    num_classes: int = 2,
    vocabulary_size: int = 20_000,
    *,
    units: int = 1024,
    embedding_units: int = 128,
    dropout_rate: float = 0.2,
    dropout_seed: int = 0,
) -> keras.Model:
    """Builds the text classifier: embedding, bidirectional LSTM, logits from the last state of each direction.

    Graves and Schmidhuber, 2005, with the forget gate's bias of Jozefowicz et al., 2015.

    Args:
      sequence_length: tokens of a text, padding included.
      num_classes: number of logits.
      vocabulary_size: token ids run from 0, the padding, to `vocabulary_size` - 1.
      units: of each direction.
      embedding_units: width of the embedding.
      dropout_rate: behind the embedding and before the logits.
      dropout_seed: of the masks.

    Returns:
      A model from int32 token ids `[batch, sequence_length]` to float32 logits `[batch, num_classes]`. Padding may stand
      anywhere; it changes nothing, and a row of nothing but padding gives the logits of a text without words.

    Raises:
      UserError: if there is no room for a token beside the padding.
    """
    if vocabulary_size < 2:
        raise UserError(f"vocabulary_size = {vocabulary_size}: must be at least 2, the padding and a token.")
    tokens = keras.Input((sequence_length,), dtype="int32", name="tokens")
    x = layers.Embedding(vocabulary_size, embedding_units, mask_zero=True, name="embedding")(tokens)
    x = Dropout(dropout_rate, seed=dropout_seed, name="embedding_dropout")(x)
    x = BidirectionalLSTM(units, name="bilstm")(x)
    x = Dropout(dropout_rate, seed=dropout_seed, name="dropout")(x)
    # Logits in float32 whatever the compute precision: the softmax over them is sensitive.
    logits = layers.Dense(num_classes, dtype="float32", name="logits")(x)
    return keras.Model(tokens, logits, name="bilstm")
