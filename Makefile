# demo: from a fresh clone to an agreed answer. test: sets up and runs the fast suite. check: what CI runs.
# bench, chaos: the long ones. MODEL=provider:name puts another model in the demo's place.
SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
# the first Python of 3.11 or later that can make a virtual environment
PYTHON := $(shell for p in "$$PYTHON" python3 python3.13 python3.12 python3.11 /usr/bin/python3; do \
	[ -n "$$p" ] && "$$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$p" && break; done)
WORKERS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$n)

.PHONY: demo test check bench chaos clean lock setup setup-dev format

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

test: setup-dev
	$(BIN)/python -m pytest -n $(WORKERS) -m "not chaos"

check: setup-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n $(WORKERS) -m "not chaos"

format: setup-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup-dev
	$(BIN)/python -m bench

chaos: setup-dev
	$(BIN)/python -m pytest -n 0 -m chaos --timeout 3600 -s tests/acceptance

# hashes and versions only: no addresses
lock: setup-dev
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url -o requirements-dev.lock
	$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url -c requirements-dev.lock -o requirements.lock

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist bench/data
