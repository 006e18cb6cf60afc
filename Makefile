# demo: from a fresh clone to an agreed answer. test: sets up and runs the fast suite. check: what CI runs.
# peers: servers and documents of other makers, for the tests that speak to them; test and check set them up where they can.
# bench, chaos: the long ones. MODEL=provider:name puts another model in the demo's place.
SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
# the first Python of 3.11 or later that can make a virtual environment
PYTHON := $(shell for p in "$$PYTHON" python3 python3.13 python3.12 python3.11 /usr/bin/python3; do \
	[ -n "$$p" ] && "$$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$p" && break; done)
# two more than there are cores: tests wait for processes that they have started, and for leases to run out
WORKERS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$((n + 2)))

PEERS := tests/peers

.PHONY: demo test check bench chaos clean lock setup setup-dev format peers peers-where-possible

setup: $(VENV)/.runtime
setup-dev: $(VENV)/.dev

$(VENV)/bin/python:
	@[ -n "$(PYTHON)" ] || { echo "Folkmoot needs Python 3.11 or later with the venv module. Install it, or name it: make PYTHON=/path/to/python3 …" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: requirements.lock pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@echo "$(CURDIR)/src" > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/folkmoot-src.pth"
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

demo: setup
	@$(BIN)/python -m folkmoot demo $(if $(MODEL),--model $(MODEL))

test: setup-dev peers-where-possible
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not chaos"

check: setup-dev peers-where-possible
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not chaos"

peers: $(PEERS)/venv/.done $(PEERS)/node_modules/.done $(PEERS)/documents/.done

$(PEERS)/venv/.done: $(PEERS)/requirements.lock examples/release-panel/requirements.txt examples/assistant/requirements.txt | $(VENV)/.dev
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(PEERS)/venv
	$(BIN)/uv pip install --quiet --python $(PEERS)/venv/bin/python --require-hashes -r $(PEERS)/requirements.lock
	$(BIN)/uv pip install --quiet --python $(PEERS)/venv/bin/python --no-deps --require-hashes -r examples/release-panel/requirements.txt -r examples/assistant/requirements.txt
	@touch $@

# without scripts: nothing of theirs runs when they are installed
$(PEERS)/node_modules/.done: $(PEERS)/package-lock.json
	cd $(PEERS) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error --fetch-retries=1
	@touch $@

$(PEERS)/documents/.done: $(PEERS)/fetch_document.py | $(VENV)/.dev
	$(BIN)/python $(PEERS)/fetch_document.py
	@touch $@

peers-where-possible: setup-dev
	@$(MAKE) --no-print-directory --jobs 3 --keep-going --silent peers >/dev/null 2>&1 || echo "Some tests against other makers' servers are left out; 'make peers' says why."

format: setup-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup-dev
	$(BIN)/python -m bench

chaos: setup-dev
	$(BIN)/python -m pytest -n 0 -m chaos --timeout 3600 -s tests

# hashes and versions only: no addresses
lock: setup-dev
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url -o requirements-dev.lock
	$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url -c requirements-dev.lock -o requirements.lock

clean:
	rm -rf $(VENV) $(PEERS)/venv $(PEERS)/node_modules $(PEERS)/documents .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist bench/data
