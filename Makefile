# Needs only Python 3.11–3.13 and a package registry; everything is installed into $(VENV).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP_FLAGS := --quiet --disable-pip-version-check
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help study test test-all lint format bench notebooks clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(VENV)/.run: pyproject.toml constraints.txt
	@echo "installing into $(VENV) (some minutes the first time)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install $(PIP_FLAGS) -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@echo "installing the development tools into $(VENV)"
	@$(BIN)/python -m pip install $(PIP_FLAGS) -c constraints.txt -e '.[dev]'
	@touch $@

study: $(VENV)/.run ## run the default study (again: only what is missing); ARGS="seed=0,1,2,3,4" asks for more seeds
	@$(BIN)/ablate sweep experiment=bias_stability $(ARGS)

test: $(VENV)/.dev ## the default test suite, in parallel
	@$(BIN)/python -m pytest $(ARGS)

test-all: $(VENV)/.dev ## every test, the slow ones too
	@$(BIN)/python -m pytest -m '' $(ARGS)

lint: $(VENV)/.dev ## style, types and the direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

format: $(VENV)/.dev ## rewrite the sources in the project's style
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format .

notebooks: $(VENV)/.dev ## execute the notebooks again (minutes), in place
	@$(BIN)/python scripts/run_notebooks.py

bench: $(VENV)/.run ## measure speed as ratios (minutes); each script ends with one JSON line
	@for script in scripts/bench_*.py; do $(BIN)/python $$script || exit 1; done

clean: ## remove caches and the environment (never runs/)
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
