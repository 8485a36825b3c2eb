"""zoo: a Keras/TensorFlow model zoo and accelerator benchmark. Importing it does not import TensorFlow."""

__version__ = "0.1.0"
