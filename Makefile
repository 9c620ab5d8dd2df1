# `make run` and `make test` are all a fresh clone needs; each sets up .venv when it is missing or out of date.
# make help lists the verbs.
.PHONY: help setup run test test-slow lint docs site bench numbers conformance validation court clean
.DEFAULT_GOAL := help
SHELL := /bin/bash

PYTHON ?= python3
CORES ?= all
CONFIG ?= config/config.yaml
ARGS ?=
READY := .venv/.ready
READY_FOR_DOCS := .venv/.ready-for-docs
REPORT := results/report.html
LARGE_SET := ../shared/conformance
VALIDATION ?= ../shared/validation
COURT ?=
REFERENCE_NUMBERS := tests/conformance/data/reference-points.jsonl.gz $(wildcard tests/conformance/data/flow-*.json) \
  $(wildcard $(LARGE_SET)/fixed-core.jsonl.gz $(LARGE_SET)/flow/*.json)

# Nothing is written outside this folder, and bytecode is: without it every command starts seconds later.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export PYTHONDONTWRITEBYTECODE :=
export XDG_CACHE_HOME := $(CURDIR)/.cache
export MPLCONFIGDIR := $(CURDIR)/.cache/matplotlib

help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1\t\2/p' Makefile | expand -t 20

setup: $(READY) ## make .venv and compile the cost model; every other verb does that, too, when it is missing
	@echo 'ready; next: source .venv/bin/activate'

run: $(READY) ## compute CONFIG (default config/config.yaml), print the summary, write results/index.html
	@workflow/run.sh "$(CONFIG)" --cores $(CORES) $(ARGS)

test: $(READY) ## tests that are not marked slow; ARGS="-k name" chooses
	@python -m pytest -n auto --dist worksteal -m "not slow" tests $(ARGS)

test-slow: $(READY) ## tests that are marked slow
	@python -m pytest -n auto --dist worksteal -m slow tests $(ARGS)

lint: $(READY) ## style, format, types, rules
	@ruff check --config lib/pyproject.toml . && ruff format --config lib/pyproject.toml --check .
	@snakefmt --check Snakefile workflow
	@mypy --config-file lib/pyproject.toml lib/tilewright lib/tilewright_evidence tools
	@snakemake --lint

docs: $(READY) site ## build and check the documentation: links, generated tables, examples, notebooks
	@python docs/check_docs.py --run $(ARGS)
	@python docs/check_notebooks.py

site: $(READY_FOR_DOCS) ## the documentation as a site, results/site/index.html
	@python -m docs.website

bench: $(READY) ## measure against pinned peers; see benchmarks/README.md
	@python benchmarks/run_benchmarks.py $(ARGS)

numbers: $(READY) ## compare what verbs compute with the commit before; ARGS="--against COMMIT"
	@python tools/compare_numbers.py $(ARGS)

conformance: $(READY) ## compare with reference numbers: points, equal, worst relative difference
	@python -m tilewright conformance $(REFERENCE_NUMBERS) $(ARGS)

validation: $(READY) ## compare with chips: measured, reference tool, our models; VALIDATION=FOLDER of cases
	@python -m tilewright compare-chips "$(VALIDATION)" $(ARGS)

court: $(READY) ## predictions beside measurements that others made; COURT=FOLDER of full sets, ARGS=SET chooses
	@python -m tilewright accuracy $(addprefix --data ,$(COURT)) -o results/court $(ARGS)

clean: ## delete everything that was made, also .venv
	rm -rf .venv .cache .snakemake .pytest_cache .mypy_cache .ruff_cache .hypothesis results logs
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Set-up. The package itself is found through a path file, so that its sources are what runs; no build is needed.
$(READY): lib/requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo 'tilewright needs Python 3.11 or later: make PYTHON=/path/to/python3.11 ...' >&2; exit 1; }
	@echo 'Setting up .venv (once; a minute or two)'
	@test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@python -m pip install --quiet --disable-pip-version-check --no-cache-dir --require-hashes -r lib/requirements.lock
	@python -c 'import site; print(site.getsitepackages()[0])' | { read -r place && echo "$(CURDIR)/lib" > "$$place/tilewright.pth"; }
	@printf '#!/bin/sh\nexec "$$(dirname "$$0")/python" -m tilewright "$$@"\n' > .venv/bin/tilewright && chmod +x .venv/bin/tilewright
	@python -m compileall -q -j 0 .venv/lib > /dev/null || true
	@python -m compileall -q -j 0 --invalidation-mode checked-hash "$(CURDIR)/lib" > /dev/null || true
	@echo 'Compiling the cost model and all searches (once; a few minutes)'
	@python -m tilewright warm-up > /dev/null
	@touch $@

$(READY_FOR_DOCS): lib/requirements-docs.lock $(READY)
	@python -m pip install --quiet --disable-pip-version-check --no-cache-dir --require-hashes -r lib/requirements-docs.lock
	@touch $@
