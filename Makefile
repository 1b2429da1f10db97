PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TORCH ?= torch==2.13.0
# The CPU build is enough for everything but running CUDA packages, and is a tenth of the size where the default is CUDA:
# make demo TORCH_FLAGS="--index-url https://download.pytorch.org/whl/cpu"
TORCH_FLAGS ?=

# A real Triton server core, which needs none of the wheel's dependencies.
ORACLE ?= $(VENV)/oracle
ORACLE_WHEEL ?= nvidia-pytriton==0.7.0

# A CUDA build of torch for the tests on a simulated GPU: 4.7 GB, kept outside the checkout by version.
CUDA_CACHE ?= $(or $(AOTIDOCTOR_CUDA_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/aotidoctor-cuda)
CUDA_TORCH ?= 2.13.0
CUDA_VENV ?= $(CUDA_CACHE)/venv/$(CUDA_TORCH)

.PHONY: demo test test-oracle test-cuda-sim lint bench install clean

$(BIN)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet $(TORCH_FLAGS) "$(TORCH)"
	$(BIN)/python -m pip install --quiet --editable ".[torch,test,lint,bench]"
	touch $@

install: $(BIN)/.installed

demo: install
	$(BIN)/aotidoctor demo

test: install
	$(BIN)/python -m pytest -n auto --dist worksteal

$(ORACLE)/.installed: $(BIN)/.installed
	$(BIN)/python -m pip install --quiet --no-deps --target $(ORACLE) "$(ORACLE_WHEEL)"
	touch $@

test-oracle: $(ORACLE)/.installed
	AOTIDOCTOR_ORACLE=$(abspath $(ORACLE)) $(BIN)/python -m pytest -m oracle -p no:xdist

# Three equals signs: two would also take a CPU build that is at hand.
$(CUDA_VENV)/.installed:
	$(PYTHON) -m venv $(CUDA_VENV)
	$(CUDA_VENV)/bin/python -m pip install --quiet --no-cache-dir "torch===$(CUDA_TORCH)" --editable ".[torch]"
	touch $@

test-cuda-sim: install $(CUDA_VENV)/.installed
	AOTIDOCTOR_CUDA_CACHE=$(CUDA_CACHE) $(BIN)/python -m pytest tests/cuda_sim -m cuda_sim -n auto --dist worksteal

lint: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: install
	$(BIN)/python -m pytest tests/bench -m bench --benchmark-only -p no:xdist

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
