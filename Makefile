# Fresh clone to result: `make demo`. Fresh clone to green: `make test`. Each sets everything up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The small networks here run fastest on one thread; the tests use both cores by two processes.
export OMP_NUM_THREADS ?= 1

.PHONY: install demo test test-slow lint types format clean

install: $(STAMP)

# torch first and by exact version: a range would pull a build for graphics cards.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "torch==$$(sed -n 's/^torch==//p' constraints.txt)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[data,cde,tune,dask,faiss,dev]'
	touch $(STAMP)

demo: install
	$(BIN)/nocta demo

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install
	$(BIN)/mypy

test: lint types
	$(BIN)/pytest -q -n 2

test-slow: install
	$(BIN)/pytest -q -n 2 -m slow

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache build dist
