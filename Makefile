# 'make demo' and 'make test' do all their set-up: they need git, bash and Python 3.11 or newer with venv.
PYTHON ?= python3
VENV ?= .venv
override python := $(VENV)/bin/python

.PHONY: demo test e2e evidence-e2e engine check format environment lock clean

demo: environment  ## plan, import, sign, judge and audit the recorded trials
	$(python) demo/run.py

test: environment  ## run every test: make test [ARGS='-k name']
	$(python) -m pytest $(ARGS)

e2e: environment  ## everything against a real vLLM on this machine's CPUs: make e2e [OUT=DIR]; about ten minutes
	$(python) -m e2e.run $(OUT)

evidence-e2e: environment  ## make evidence/tiny-moe-vllm-cpu anew, with seven judged gates; on an idle machine
	$(python) -m e2e.run --strict --keep evidence/tiny-moe-vllm-cpu $(OUT)

engine: environment  ## install the engine of 'make e2e' alone: 3.5 GB
	$(python) -m e2e.install_engine

check: environment  ## what .ci/run checks without running anything
	$(python) -m ruff format --check
	$(python) -m ruff check
	$(python) -m mypy

format: environment
	$(python) -m ruff format
	$(python) -m ruff check --fix

environment:
	@requirements/install $(VENV) requirements/dev.txt $(PYTHON) --editable

lock:  ## choose versions anew, hashes and all: make lock PYTHON=python3.11 [UPGRADE=--upgrade]
	requirements/lock $(PYTHON) $(UPGRADE)

clean:
	rm -rf .venv .venv-lock .e2e build dist demo-out .mypy_cache .pytest_cache .ruff_cache .hypothesis
