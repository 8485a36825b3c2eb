"""Packaging of zoo. Lower bounds here; the exact versions that were tested are in constraints.txt."""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
VERSION = re.search(r'__version__ = "(.+)"', (ROOT / "zoo" / "__init__.py").read_text())[1]
REPORT = ["matplotlib>=3.8"]
TEST = [*REPORT, "pytest>=8", "pillow>=10", "pytest-xdist>=3.6", "scikit-learn>=1.4", "setuptools>=70.1"]
DEV = [*TEST, "ruff>=0.6", "build>=1.2"]

setup(
    name="accelerator-zoo",
    version=VERSION,
    description="A Keras/TensorFlow model zoo and accelerator benchmark: one Gin file on a TPU, GPUs or a CPU.",
    long_description=(ROOT / "README.md").read_text(),
    long_description_content_type="text/markdown",
    author="The zoo authors",
    license="Apache-2.0",
    python_requires=">=3.11",
    # The .gin files live at the root of the checkout and travel as package data. No __init__.py may ever be in gin/: it
    # would hide gin-config.
    packages=[*find_packages(include=["zoo", "zoo.*"]), "zoo.gin", "zoo.gin.recipes"],
    package_dir={"zoo.gin": "gin", "zoo.gin.recipes": "gin/recipes"},
    package_data={
        "zoo": ["*.json"],
        "zoo.benchmark": ["*.csv"],
        "zoo.report": ["published/*.csv"],
        "zoo.gin": ["*.gin"],
        "zoo.gin.recipes": ["*.gin"],
    },
    install_requires=[
        "tensorflow>=2.20",
        "keras>=3.10,<4",
        "tensorflow-datasets>=4.9.9",
        "importlib_resources",  # tensorflow-datasets imports it, but does not ask for it
        "absl-py>=2.1",
        "gin-config>=0.5",
        "tensorboard>=2.19",
        "tqdm>=4.66",
    ],
    extras_require={
        "gpu": ["tensorflow[and-cuda]>=2.20"],
        "report": REPORT,
        "profile": ["xprof>=2.20"],
        "test": TEST,
        "dev": DEV,
    },
    entry_points={"console_scripts": ["zoo-train = zoo.train:run"]},
    classifiers=[
        "Programming Language :: Python :: 3.11",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
