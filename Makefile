# Two commands matter: make run, make test. Both set up whatever is missing first.
BIN := .venv/bin
PY := $(BIN)/python
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup run worker test check bench screens conformance clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

setup: .venv/base.installed ## a virtual environment in .venv with what the product needs

run: .venv/base.installed ## the portal and a worker; HOST, PORT, PLACET_HOME, DATABASE_URL, CELERY_BROKER_URL
	@exec $(PY) -m config.serve

worker: .venv/base.installed ## one more worker, for a broker that can be shared
	@exec $(PY) -m celery -A config.celery worker --pool prefork --loglevel INFO

test: .venv/test.installed ## every test, on SQLite and on PostgreSQL 18 with Redis; ARGS="tests/audit -x"
	@$(PY) -m tests $(ARGS)

check: .venv/test.installed ## format, lint, types, migrations, OpenAPI, deployment settings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PLACET_HOME=.mypy_cache $(BIN)/mypy
	$(PY) -m config.check

bench: .venv/test.installed ## the benchmark, as a table of ratios
	@$(PY) -m bench $(ARGS)

screens: .venv/test.installed ## pictures of the portal's pages in docs/screens; ARGS="home" for one; needs chromium
	@$(PY) -m bench.screens $(ARGS)

conformance: .venv/test.installed var/conformance/.installed ## the official MCP suite, on both wires; needs npm
	@$(PY) -m tests.conformance

clean: ## remove what can be made again; keeps var/
	rm -rf .venv var/conformance .pytest_cache .mypy_cache .ruff_cache .hypothesis build *.egg-info static-collected
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp per requirements file: a second run finds it newer and does nothing.
.venv/%.installed: requirements/%.txt requirements/uv.txt
	@scripts/install $<
	@touch $@

var/conformance/.installed: tests/conformance/node/package.json tests/conformance/node/package-lock.json
	@scripts/conformance-tools
	@touch $@
