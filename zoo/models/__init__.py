"""Networks: functions of their hyperparameters that return plain `keras.Model`s, from raw inputs to float32 logits."""
