# Needs Python 3.11 or newer and Rust; everything else is put into .venv and target/.

VENV := .venv
BIN := $(VENV)/bin
# The first interpreter on the path that is new enough and works.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -type f)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help build demo test test-fast test-long docs pictures reference hadoop-check sanitise wheel clean
.DEFAULT_GOAL := help

help: ## Say what the targets do
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

build: $(BIN)/.installed ## Prepare .venv/bin/eastwest

demo: build ## Run the main job and write its report
	@$(BIN)/eastwest run demo --out results/demo --force
	@$(BIN)/eastwest report results/demo

test: build $(BIN)/.test-tools ## Run the tests this machine has the tools for, but for the long ones
	@tests/run_all.sh

test-fast: build $(BIN)/.test-tools ## Run the quick tests: two minutes
	@tests/run_all.sh fast

test-long: build $(BIN)/.test-tools ## Run the tests that take many seconds or compile, which make test leaves out
	@tests/run_all.sh long

docs: build $(BIN)/.test-tools ## Build the documentation site: site/index.html
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

reference: build ## Write the reference pages that come from the code
	@EASTWEST_WRITE_DOCS=1 cargo test --quiet --locked -p eastwest-sim --test scenario_errors
	@$(BIN)/python tools/reference.py
	@$(BIN)/python tools/lab_pages.py
	@$(BIN)/python tools/shown.py
	@$(BIN)/python tools/notebooks.py

pictures: build ## Draw the pictures of the documentation anew; ONLY=demo.png for one
	@$(BIN)/python tools/pictures.py $(ONLY)

hadoop-check: build ## Measure a real Hadoop in network namespaces and compare (needs root)
	@PYTHONPATH=tools $(BIN)/python -m hadoop_check $(ARGS)

sanitise: ## Run TCP dialogues and generated scenarios under AddressSanitizer or valgrind
	@tools/sanitise.sh

wheel: build ## Build the wheel of this machine and the source distribution: dist/
	@$(BIN)/python tools/sbom.py target/sbom/python.cyclonedx.json
	@trap 'rm -rf python/eastwest/papers python/eastwest/rust' EXIT; \
	$(BIN)/python tools/shipped_papers.py python/eastwest/papers && \
	$(BIN)/python tools/shipped_source.py python/eastwest/rust && \
	$(BIN)/maturin sdist --out dist && \
	$(BIN)/maturin build --release --out dist --sbom-include target/sbom/python.cyclonedx.json

clean: ## Remove what was built; results stay
	rm -rf $(VENV) target site dist .pytest_cache .mypy_cache .ruff_cache
	find python tests -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -f python/eastwest/_core*.so

$(BIN)/maturin:
	@test -n "$(PYTHON)" || { echo "Eastwest needs Python 3.11 or newer with its venv module"; exit 1; }
	@command -v cargo >/dev/null || { echo "Eastwest needs Rust (cargo)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) 'maturin>=1.13,<2'

# Compiles the extension into the source tree and installs the dependencies and the command;
# Python files are used where they lie. Done again only when Rust or pyproject.toml has changed.
$(BIN)/.installed: $(RUST_SOURCES) pyproject.toml | $(BIN)/maturin
	@echo "Installing what Eastwest needs and compiling it: a few minutes the first time."
	@PIP_QUIET=1 VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/maturin develop --release --quiet
	@touch $@

$(BIN)/.test-tools: pyproject.toml | $(BIN)/maturin
	$(BIN)/python -c 'import tomllib; \
	project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	extras = project["optional-dependencies"]; \
	print(*extras["dev"], *extras["docs"], sep="\n")' > $(BIN)/.test-requirements
	$(PIP) -r $(BIN)/.test-requirements
	@touch $@
