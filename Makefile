# Each target does its own set-up: a fresh machine needs Python 3.11 or newer and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN_DIR ?= runs/demo
BRIDGES := envharness_bridge_alfworld
DISTRIBUTIONS := envharness_core plugins/flaky_tools plugins/llm $(BRIDGES)
WITH_EXTRAS := 'envharness_core[report]' plugins/flaky_tools 'plugins/llm[offline]'
STAMP := $(VENV)/.installed
WITH_BRIDGES := $(VENV)/.installed-bridges
SOURCES := $(addsuffix /src,$(DISTRIBUTIONS))
TESTS := $(addsuffix /tests,$(DISTRIBUTIONS)) tests

.PHONY: demo pipeline test check format bench wheels clean

demo: $(STAMP)
	$(BIN)/envharness run examples/toy24.toml --run-dir $(RUN_DIR)
	$(BIN)/envharness report $(RUN_DIR)
	$(BIN)/envharness report $(RUN_DIR) --html $(RUN_DIR)/report.html
	$(BIN)/envharness verify $(RUN_DIR)

pipeline: $(STAMP)
	examples/pipeline.sh runs/pipeline

test: $(WITH_BRIDGES)
	$(BIN)/pytest

check: $(WITH_BRIDGES)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(SOURCES)
	$(BIN)/mypy $(TESTS) benchmarks
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(WITH_BRIDGES)
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/sandbox.py
	$(BIN)/python benchmarks/gate.py
	$(BIN)/python benchmarks/retrieval.py
	$(BIN)/python benchmarks/throughput.py
	$(BIN)/python benchmarks/alfworld.py

wheels: $(STAMP)
	for distribution in $(DISTRIBUTIONS); do $(BIN)/python -m build --no-isolation --outdir dist $$distribution || exit 1; done

$(STAMP): pyproject.toml constraints.txt $(addsuffix /pyproject.toml,$(filter-out $(BRIDGES),$(DISTRIBUTIONS)))
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt $(addprefix -e ,$(WITH_EXTRAS)) --group dev
	touch $(STAMP)

# What benchmarks bring. Two of ALFWorld's packages are compiled, which takes g++, cmake and minutes; one of them asks
# for an interpreter that is called python.
$(WITH_BRIDGES): $(STAMP) $(addsuffix /pyproject.toml,$(BRIDGES))
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet --constraint constraints.txt $(addprefix -e ,$(BRIDGES))
	touch $(WITH_BRIDGES)

clean:
	rm -rf $(VENV) dist runs
