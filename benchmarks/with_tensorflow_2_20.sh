#!/usr/bin/env bash
# Runs the test suite with tensorflow-cpu 2.20.0, the oldest TensorFlow that zoo takes, in an environment of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
environment=$(mktemp -d)
trap 'rm -rf "$environment"' EXIT
"${PYTHON:-python3}" -m venv "$environment"
grep -v -i '^tensorflow==\|^tensorboard==\|^h5py==' constraints.txt > "$environment/constraints.txt"
"$environment/bin/pip" install --quiet --constraint "$environment/constraints.txt" \
    tensorflow-cpu==2.20.0 keras tensorflow-datasets importlib_resources gin-config tqdm pytest scikit-learn setuptools
"$environment/bin/python" -m pytest -q "$@"
