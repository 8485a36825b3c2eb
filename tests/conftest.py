"""Set-up of the test process: quiet, and with the CPU split into the replicas that the tests ask for."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import gin
import pytest


def pytest_configure(config):
    from zoo.strategy import logical_cpus

    logical_cpus(4)  # before TensorFlow first runs: it is not to be changed afterwards


@pytest.fixture(autouse=True)
def no_gin_configuration():
    yield
    gin.clear_config()
