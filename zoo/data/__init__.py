"""Data on disk: `python -m zoo.data --help`. Nothing here imports TensorFlow before it is needed."""
