# Everything runs in .venv from requirements/*.txt; a second call of a target has nothing to do.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Said twice, quiet leaves out warnings, which are about indexes that other packages may be in.
PIP := $(BIN)/python -m pip --disable-pip-version-check
MODEL := .cache/models/SmolLM2-135M-Instruct.Q4_1.gguf
# Hashes of every file of a release, and nothing of this machine or its package index.
LOCK := $(BIN)/pip-compile -q --upgrade --generate-hashes --allow-unsafe --strip-extras --no-header \
        --no-emit-index-url --no-emit-find-links --no-emit-trusted-host
# Demos have stores of their own: running one again makes no call.
SAMPLE := jobs/sample.jsonl

.PHONY: help demo demo-windows test check bench site model lock clean
.DEFAULT_GOAL := help

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.installed  ## rerank the sample by likelihood and measure it (fetches 253 MB once)
	$(BIN)/batchrank run $(SAMPLE) --job jobs/demo.toml
	$(BIN)/batchrank inspect tides --store demo.sqlite
	$(BIN)/batchrank eval demo.sqlite --qrels jobs/sample.qrels --measure nDCG@10

demo-windows: $(VENV)/.installed $(MODEL)  ## the same in listwise windows, with a tiny model
	$(BIN)/batchrank run $(SAMPLE) --job jobs/demo-windows.toml
	$(BIN)/batchrank inspect tides --store demo-windows.sqlite

test: $(VENV)/.developing  ## run every test this machine can run; REQUIRE_ALL=1: skip none
	@$(MAKE) --no-print-directory model || echo "make: no model, so no tests with a model" >&2
	$(BIN)/pytest -rs

check: $(VENV)/.developing  ## lint, formatting and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: $(VENV)/.developing  ## measure every target of speed and size, with plots (20 min)
	$(BIN)/python scripts/bench.py --json docs/img/figures.json --plots docs/img

site: $(VENV)/.developing  ## build the site of docs/ into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict -q

model: $(MODEL)  ## fetch the weights of the tests (92 MB) and check them

lock: $(VENV)/.developing  ## pin the newest fitting versions of all requirements
	$(LOCK) pyproject.toml -o requirements/runtime.txt
	$(LOCK) pyproject.toml --extra embedded --extra eval --extra metrics -c requirements/runtime.txt -o requirements/embedded.txt
	$(LOCK) pyproject.toml --extra eval --extra metrics -c requirements/embedded.txt -o requirements/eval.txt
	$(LOCK) requirements/build.in -c requirements/embedded.txt -o requirements/build.txt
	$(LOCK) requirements/dev.in -c requirements/embedded.txt -c requirements/eval.txt \
	    -c requirements/build.txt -o requirements/dev.txt

clean:  ## remove all that make, the demo and the tools have made
	rm -rf $(VENV) site .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis demo.* demo-windows.*

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "batchrank needs Python 3.11 or newer; name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "$(PYTHON) has no venv; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml requirements/build.txt requirements/embedded.txt \
    requirements/eval.txt
	$(PIP) install -qq --require-hashes -r requirements/build.txt -r requirements/embedded.txt \
	    -r requirements/eval.txt
	$(PIP) install -qq --no-deps --no-build-isolation --no-index -e .
	@touch $@

$(VENV)/.developing: $(VENV)/.installed requirements/dev.txt
	$(PIP) install -qq --require-hashes -r requirements/dev.txt
	@touch $@

$(MODEL): batchrank/backends/weights.py | $(VENV)/.created
	$(BIN)/python -m scripts.fetch_model $@
