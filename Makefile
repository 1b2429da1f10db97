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

FUZZ_CASES ?= 2000
FUZZ_SEED ?= 1
FUZZ_RUNS ?= 200

GPU_PYTHON ?= python3
GPU_OUT ?= gpu-outcomes

.PHONY: demo test test-all pyodide web test-fast test-portable coverage docs fuzz fuzz-runs test-oracle test-cuda-sim test-cuda-sim-if-cached test-gpu gpu-wheels trial-releases lint picture trial trial-emulation trial-reports triton test-emulation bench bench-fleet install clean

# What it takes to run it; what it takes to test it comes on top.
$(BIN)/.runnable: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet $(TORCH_FLAGS) "$(TORCH)"
	$(BIN)/python -m pip install --quiet --editable ".[torch]"
	touch $@

$(BIN)/.installed: $(BIN)/.runnable
	$(BIN)/python -m pip install --quiet --editable ".[torch,test,lint,bench,docs]"
	touch $@

install: $(BIN)/.installed

demo: $(BIN)/.runnable
	$(BIN)/aotidoctor demo

# One test of each kind at least: what tests/thorough.txt names, test-all runs as well.
test: install
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not thorough and not bench and not cuda_sim"

test-all: install
	$(BIN)/python -m pytest -n auto --dist worksteal

# The units, for the inner loop: those that start a server, a cluster or a process per test are left to make test.
test-fast: install
	$(BIN)/python -m pytest -q -n auto --dist worksteal tests/unit tests/golden -m "not torch and not slow and not thorough and not browser and not bench and not cuda_sim"

# The lines and branches that the tests reach, in child processes too, as a page in build/coverage.
coverage: install
	$(BIN)/python -m pip install --quiet "pytest-cov>=6"
	$(BIN)/python -m pytest -n auto --dist worksteal --cov --cov-report=html:build/coverage --cov-report=xml:build/coverage/coverage.xml

# The site in build/site; a link that leads nowhere fails.
docs: install
	$(BIN)/mkdocs build --quiet --strict

# The static commands without POSIX, and in WebAssembly by Pyodide (14 MB from npm, once).
PYODIDE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/aotidoctor-pyodide
$(PYODIDE)/node_modules/pyodide/package.json:
	npm install --silent --no-audit --no-fund --prefix $(PYODIDE) pyodide@314.0.7

pyodide: $(PYODIDE)/node_modules/pyodide/package.json

test-portable: install pyodide
	AOTIDOCTOR_PYODIDE=$(abspath $(PYODIDE)) $(BIN)/python -m pytest -p no:xdist tests/e2e/test_portable.py

# Damaged files through every command that runs nothing: FUZZ_CASES=20000 make fuzz. A bad case is repeated by its number.
fuzz: install
	$(BIN)/python -m tests.fuzz.run --cases $(FUZZ_CASES) --seed $(FUZZ_SEED)

# Likewise through the commands that execute what they get, with the models that the tests have compiled.
fuzz-runs: install
	$(BIN)/python -m tests.fuzz.runs --cases $(FUZZ_RUNS) --seed $(FUZZ_SEED)

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
	AOTIDOCTOR_CUDA_CACHE=$(CUDA_CACHE) AOTIDOCTOR_CUDA_TORCH=$(CUDA_TORCH) $(BIN)/python -m pytest tests/cuda_sim -m cuda_sim -n auto --dist worksteal --timeout 3600

# What .ci/run asks for: the download is too big to be made on the way.
test-cuda-sim-if-cached:
	@if [ -e $(CUDA_VENV)/.installed ]; then $(MAKE) test-cuda-sim; \
	else echo "simulated CUDA was not tested: no CUDA torch in $(CUDA_VENV) (make test-cuda-sim installs it, 4.7 GB)"; fi

# On the GPU machine itself: its own Python with a CUDA torch, no network, nothing installed.
test-gpu:
	$(GPU_PYTHON) -m tests.gpu.run --out $(GPU_OUT)

# Once, where there is a network: what a stock image of torch lacks, to be carried along with the checkout.
gpu-wheels:
	$(PYTHON) -m pip download --quiet --no-deps --only-binary=:all: --dest tests/gpu/wheels pyelftools

# Other releases of PyTorch, each in an environment of its own below TRIAL_ROOT (2.2 GB each; KEEP=1 keeps them):
# make trial-releases RELEASES="2.8.0 2.11.0" MODELS="dense rows"
trial-releases: install
	KEEP=$(KEEP) MODELS="$(MODELS)" $(BIN)/python -m tests.trial_releases.run $(RELEASES)

lint: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The page for dropped files as static files, for any server; npm fetches Pyodide once.
WEB ?= site/web
web: install
	$(BIN)/aotidoctor web --build $(WEB)

# The pictures in the README; needs Chromium with its driver.
picture: install
	$(BIN)/python -m tests.browser.picture .github/report.png docs/fleet.png docs/page.png

# Real architectures through every command; needs a network once, some GB of disk and hours. MODELS are names or traits.
TRIAL_VENV ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/aotidoctor-trial/venv
MODELS ?=
FAULTS ?= 12
$(TRIAL_VENV)/.installed: tests/trial/requirements.txt tests/trial/requirements-nodeps.txt pyproject.toml
	$(PYTHON) -m venv $(TRIAL_VENV)
	$(TRIAL_VENV)/bin/python -m pip install --quiet $(TORCH_FLAGS) "$(TORCH)"
	$(TRIAL_VENV)/bin/python -m pip install --quiet --editable ".[torch]" -r tests/trial/requirements.txt
	$(TRIAL_VENV)/bin/python -m pip install --quiet --no-deps -r tests/trial/requirements-nodeps.txt
	touch $@

trial: $(TRIAL_VENV)/.installed
	$(TRIAL_VENV)/bin/python -m tests.trial.trial --faults $(FAULTS) $(MODELS)

# Public bug reports, rebuilt: what is said about each, and whether it is the truth. NAMES="any_uint8 lstm_dynamic"
NAMES ?=
trial-reports: install
	$(BIN)/python -m tests.reports.trial $(NAMES)

# Triton, for the emulation of CUDA packages: 290 MB, 1 GB on disk. In a folder of its own, so that nothing else sees it.
TRITON ?= $(VENV)/triton
TRITON_WHEEL ?= triton==3.9.0
$(TRITON)/.installed: $(BIN)/.installed
	$(BIN)/python -m pip install --quiet --no-deps --target $(TRITON) "$(TRITON_WHEEL)"
	touch $@

triton: $(TRITON)/.installed

test-emulation: $(TRITON)/.installed
	PYTHONPATH=$(abspath $(TRITON)) $(BIN)/python -m pytest -n auto --dist worksteal tests/emulation
	PYTHONPATH=$(abspath $(TRITON)) $(BIN)/python -m pytest -p no:xdist tests/docs -k "cuda"

# CUDA packages emulated: every healthy call, every fault by input, every edit of a kernel, and how many are named right.
EVERY ?= 1
trial-emulation: $(TRITON)/.installed
	PYTHONPATH=$(abspath $(TRITON)) $(BIN)/python -m tests.emulation.table --every $(EVERY)

bench: install
	$(BIN)/python -m pytest tests/bench -m bench --benchmark-only -p no:xdist --timeout 3600

bench-fleet: install
	$(BIN)/python -m tests.bench.fleet --items $(or $(ITEMS),10000)

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
