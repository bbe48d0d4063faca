# Each target does its own set-up: a fresh machine needs Python 3.11 or newer and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN_DIR ?= runs/demo
DISTRIBUTIONS := envharness_core plugins/flaky_tools plugins/llm
WITH_EXTRAS := 'envharness_core[report]' plugins/flaky_tools 'plugins/llm[offline]'
MEMBERS := $(foreach member,$(WITH_EXTRAS),-e $(member))
STAMP := $(VENV)/.installed
SOURCES := envharness_core/src plugins/flaky_tools/src plugins/llm/src
TESTS := envharness_core/tests plugins/flaky_tools/tests plugins/llm/tests tests

.PHONY: demo pipeline test check format bench wheels clean

demo: $(STAMP)
	$(BIN)/envharness run examples/toy24.toml --run-dir $(RUN_DIR)
	$(BIN)/envharness report $(RUN_DIR)
	$(BIN)/envharness report $(RUN_DIR) --html $(RUN_DIR)/report.html
	$(BIN)/envharness verify $(RUN_DIR)

pipeline: $(STAMP)
	examples/pipeline.sh runs/pipeline

test: $(STAMP)
	$(BIN)/pytest

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(SOURCES)
	$(BIN)/mypy $(TESTS) benchmarks
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/sandbox.py
	$(BIN)/python benchmarks/gate.py
	$(BIN)/python benchmarks/retrieval.py
	$(BIN)/python benchmarks/throughput.py

wheels: $(STAMP)
	for distribution in $(DISTRIBUTIONS); do $(BIN)/python -m build --no-isolation --outdir dist $$distribution || exit 1; done

$(STAMP): pyproject.toml constraints.txt $(addsuffix /pyproject.toml,$(DISTRIBUTIONS))
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt $(MEMBERS) --group dev
	touch $(STAMP)

clean:
	rm -rf $(VENV) dist runs
