# make demo     a drift table from the bundled model, two commands after a clone
# make test     lint, types and tests, as CI runs them
# make bench    speed and memory, as ratios in one run
# make soak     the slow tests
# make gpu      the same states on a GPU as on the CPU, and its speed; says so where there is none
# make setup    the environment alone, for bin/

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo setup test-setup test lint types bench soak gpu clean

demo: setup
	PATH="$(CURDIR)/bin:$$PATH" sh examples/quickstart.sh

setup: $(VENV)/.installed
test-setup: $(VENV)/.installed-test

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# torch first: its CPU build, before anything else can ask for a larger one.
$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[offline]'
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[offline,dask,plot,test]'
	touch $@

lint: test-setup
	$(BIN)/ruff check .

types: test-setup
	$(BIN)/mypy

test: lint types
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -m "not soak"

soak: test-setup
	$(BIN)/pytest -m soak

bench: test-setup
	$(BIN)/python -m tests.bench

gpu: test-setup
	$(BIN)/python tests/gpu.py

clean:
	rm -rf $(VENV) build *.egg-info
