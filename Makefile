# `make train` and `make test` set up all they need on a fresh clone with Python (3.11 or newer) and make.
PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13 python3,$(if $(shell $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo yes),$(p))))
VENV := .venv
READY := $(VENV)/.ready

.PHONY: train test lint clean

train: $(READY)
	$(VENV)/bin/python -m zoo.train --gin_file=gin/resnet_tpu.gin --gin_file=gin/smoke.gin

test: $(READY)
	$(VENV)/bin/python -m pytest --numprocesses=2 --dist=loadscope

lint: $(READY)
	$(VENV)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

clean:
	rm -rf $(VENV) build dist *.egg-info

$(READY): setup.py constraints.txt
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "zoo needs Python 3.11 or newer: install it, or name it with PYTHON=/path/to/python."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[test]'
	touch $@
