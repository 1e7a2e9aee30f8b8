# Everything needs only make and Python 3.12 or newer; `make help` lists the targets.

SHELL := /bin/sh
VENV := .venv
PY := $(VENV)/bin/python
# What exists of the checked packages: bench/ and others come and go with the branch.
CODE := $(wildcard config audit plans approvals demo bench tests sdk/src sdk/examples target/src conftest.py manage.py)
TEMPLATES := $(shell find templates -name '*.html' 2>/dev/null)
# A file's tests stay together on one worker; who begins with what: tests/sharing.py.
# Twice what CI has of cores: tests of real processes mostly wait.
WORKERS ?= 4

.DEFAULT_GOAL := help
.PHONY: help demo demo-reset test lint fmt bench bench-queue bench-waiting bench-desks chaos chaos-mutants matrix requirements

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "make %-13s %s\n", $$1, $$2}'

demo: $(VENV)/runtime.stamp ## Run everything here until Ctrl-C (PORT, BILLING_PORT, DEMO_AGENT=0)
	@exec $(PY) -m demo.run

demo-reset: $(VENV)/runtime.stamp ## Stop the demo and wipe .demo/
	@exec $(PY) -m demo.reset

test: $(VENV)/dev.stamp ## Run the tests but the long matrix (REQUIRE_BROWSER=1: fail without a Chromium)
	@exec $(PY) -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
	  -m "not long" $(ARGS)

lint: $(VENV)/dev.stamp ## Check style, types, templates and the direction of imports
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy $(CODE)
	$(if $(TEMPLATES),$(VENV)/bin/djade --check $(TEMPLATES))
	PYTHONPATH=sdk/src:target/src $(VENV)/bin/lint-imports

fmt: $(VENV)/dev.stamp ## Put code and templates into shape
	$(PY) -m ruff check --fix-only .
	$(PY) -m ruff format .
	$(if $(TEMPLATES),-$(VENV)/bin/djade $(TEMPLATES))

requirements: $(VENV)/dev.stamp ## Pin requirements*.in again, with hashes (needs uv)
	uv pip compile -q --universal --python-version 3.12 --generate-hashes --no-header \
	  --no-annotate --no-emit-index-url requirements.in -o requirements.txt
	uv pip compile -q --universal --python-version 3.12 --generate-hashes --no-header \
	  --no-annotate --no-emit-index-url requirements-dev.in -o requirements-dev.txt

bench: $(VENV)/dev.stamp ## Measure beside the physical limit of this machine (ARGS=--help)
	@exec $(PY) -m bench $(ARGS)

bench-waiting: $(VENV)/dev.stamp ## Let a thousand agents wait on one web process (ARGS=--help)
	@exec $(PY) -m bench.waiting $(ARGS)

bench-desks: $(VENV)/dev.stamp ## Let two hundred people look at one web process (ARGS=--help)
	@exec $(PY) -m bench.desks $(ARGS)

bench-queue: $(VENV)/dev.stamp ## Open the review page with a thousand plans waiting (ARGS=--help)
	@exec $(PY) -m bench.queue $(ARGS)

chaos: $(VENV)/dev.stamp ## Break everything at random and judge what is left (SEED, SECONDS)
	@exec $(PY) -m tests.chaos $(if $(SEED),--seed $(SEED)) $(if $(SECONDS),--seconds $(SECONDS))

chaos-mutants: $(VENV)/dev.stamp ## Give the product one bug per invariant and see each one found
	@exec $(PY) -m pytest -n $(WORKERS) tests/chaos/test_mutants.py $(ARGS)

matrix: $(VENV)/dev.stamp ## Fail at every step, in every way, at every kind of target
	@exec $(PY) -m pytest tests/matrix -m long -s $(ARGS)

# A name on PATH proves nothing: version managers leave shims that fail when they are run.
define FIND_PYTHON
found=; \
for name in $(PYTHON) python3.13 python3.12 python3.14 python3 \
    /usr/bin/python3.13 /usr/bin/python3.12 /usr/bin/python3 /usr/local/bin/python3 \
    $$HOME/.pyenv/versions/3.1[2-4]*/bin/python3; do \
  version=`$$name -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null` || continue; \
  found="$$found $$name ($$version)"; \
  if $$name -c 'import sys; sys.exit(sys.version_info < (3, 12))'; then python=$$name; break; fi; \
done; \
if [ -z "$$python" ]; then \
  echo "Countersign needs Python 3.12 or newer. Found:$${found:- none}."; \
  echo "Install one (Debian, Ubuntu: apt install python3.12 python3.12-venv; macOS: brew install"; \
  echo "python@3.13; anywhere: pyenv install 3.13), or name it: make PYTHON=/path/to/python3.13"; \
  exit 1; \
fi
endef

# An interpreter that was removed or replaced leaves a folder that looks finished.
ifneq ($(shell $(PY) -m pip --version >/dev/null 2>&1 && echo works),works)
.PHONY: $(VENV)/python.stamp
endif

$(VENV)/python.stamp:
	@if $(PY) -m pip --version >/dev/null 2>&1; then touch $@; exit; fi; \
	$(FIND_PYTHON); \
	echo "Making $(VENV) with $$python …"; \
	$$python -m venv --clear $(VENV) || { \
	  echo "This Python cannot make virtual environments."; \
	  echo "Debian, Ubuntu: apt install python3-venv, then run make again."; exit 1; }; \
	touch $@

# Installed again when the pins differ, not when the file is only younger, as after a checkout.
INSTALL = $(PY) -m pip install -qq --disable-pip-version-check --no-deps --require-hashes

$(VENV)/runtime.stamp: $(VENV)/python.stamp requirements.txt
	@cmp -s requirements.txt $@ || { echo "Installing requirements.txt …"; \
	  $(INSTALL) -r requirements.txt; } && cp requirements.txt $@

$(VENV)/dev.stamp: $(VENV)/python.stamp requirements-dev.txt
	@cmp -s requirements-dev.txt $@ || { echo "Installing requirements-dev.txt …"; \
	  $(INSTALL) -r requirements-dev.txt; } && cp requirements-dev.txt $@
