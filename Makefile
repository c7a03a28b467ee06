# Every target makes the environment it needs by itself, in .venv/ (and .venv-bench/ for the benchmark).
# A stamp file is touched last, so that an interrupted install is simply done again.

PYTHON  ?= python3
WORKERS ?= 4

VENV    := .venv
BENCH   := .venv-bench
BIN     := $(VENV)/bin
PIP     := -m pip --quiet --quiet --no-input
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore
# Without byte code each of the test processes would compile every test and rewrite its assertions anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup agents demo check lint formatted types layers unit test test-full mutants conformance bench \
        requirements format diagram mcp-replies picture hooks clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.dev ## make .venv/ with everything for development

agents: $(VENV)/.made ## the pinned real CLIs for the tests, into a cache folder outside the tree
	@$(BIN)/python -m tools.agents.install

demo: $(VENV)/.package ## see an agent killed in the middle of an effect, and resumed
	@$(BIN)/jackline demo

# --- checks ----------------------------------------------------------------------------------------------

check: $(VENV)/.dev ## lint, format, types, layers and unit tests, side by side
	@$(MAKE) --no-print-directory --jobs=5 --keep-going --output-sync=target lint formatted types layers unit

lint: $(VENV)/.dev
	@$(BIN)/ruff check --output-format=concise

formatted: $(VENV)/.dev
	@$(BIN)/ruff format --check

types: $(VENV)/.dev
	@$(BIN)/mypy

layers: $(VENV)/.dev
	@$(BIN)/lint-imports --no-logo

unit: $(VENV)/.dev
	@$(BIN)/pytest -n 2 --dist worksteal tests/unit -m "not full"

# Who has nothing left to do takes half of what another one still has: the slow tests stand beside each other.
test: $(VENV)/.dev ## all tests but the long ones
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not full"

# Three at a time: most tests of real CLIs wait, and a test of eight processes that fight for one database brings its own load.
test-full: $(VENV)/.dev ## the long tests only
	@$(BIN)/pytest -n 3 --dist worksteal -m full

# NAMES="lease fence" runs only the mutants whose names contain one of these words.
mutants: $(VENV)/.dev ## remove one guard after the other in a copy of the tree: do the tests notice?
	@$(BIN)/python -m tools.mutants $(NAMES)

# CI=true: a CLI that is missing is a failure, and then no page is written. Old results would be no results.
conformance: export JACKLINE_CONFORMANCE := $(CURDIR)/build/conformance
conformance: $(VENV)/.dev agents ## what each real CLI does under jackline, into docs/conformance.md
	@rm -rf $(JACKLINE_CONFORMANCE)
	@CI=true $(BIN)/pytest -n 2 tests/agents
	@$(BIN)/python -m tests.agents.table

bench: $(BENCH)/.bench ## what durability costs, as ratios measured in one run
	@$(BENCH)/bin/python -m benchmarks

# --- upkeep ----------------------------------------------------------------------------------------------

format: $(VENV)/.dev ## let ruff rewrite the code
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

diagram: $(VENV)/.package ## write docs/states.md from the transition tables
	@$(BIN)/python -m jackline.domain.diagram > docs/states.md.new && mv docs/states.md.new docs/states.md || \
	  { rm -f docs/states.md.new; exit 1; }

mcp-replies: $(VENV)/.dev ## write the MCP server's fixed answers, which agents get without waiting for the SDK
	@$(BIN)/python -m tools.mcp_replies

picture: $(VENV)/.dev agents ## record docs/session.svg: a real session with claude, tmux and the fake model
	@$(BIN)/python -m tools.picture

requirements: $(VENV)/.dev ## compile requirements/*.in again (UPGRADE=--upgrade takes newer versions)
	@cd requirements && for name in build base dev bench agents; do ../$(COMPILE) $(UPGRADE) $$name.in --output-file $$name.txt || exit; done

hooks: $(VENV)/.dev ## run the quick checks before each commit
	@$(BIN)/pre-commit install

clean: ## remove the environments, the caches and what was built
	rm -rf $(VENV) $(BENCH) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# --- environments ----------------------------------------------------------------------------------------

# The environment alone; refuses an old Python before anything is written.
$(VENV)/.made $(BENCH)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo 'jackline needs Python 3.11 or newer as "$(PYTHON)"; name another: make PYTHON=/path/to/python3' >&2; exit 1; }
	@$(PYTHON) -m venv $(@D)
	@touch $@

# The package itself, editable, with its base dependencies. Built here with the pinned builder: `make demo` downloads
# nothing else.
$(VENV)/.package $(BENCH)/.package: %/.package: %/.made requirements/build.txt requirements/base.txt pyproject.toml src/jackline/version.py
	@$*/bin/python $(PIP) install --require-hashes -r requirements/build.txt -r requirements/base.txt
	@$*/bin/python $(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.package requirements/dev.txt
	@$(BIN)/python $(PIP) install --require-hashes -r requirements/dev.txt
	@touch $@

# Apart from .venv/, because what it compares with brings pytest plugins and half a web stack along.
$(BENCH)/.bench: $(BENCH)/.package requirements/bench.txt
	@$(BENCH)/bin/python $(PIP) install --require-hashes --no-deps -r requirements/bench.txt
	@touch $@
