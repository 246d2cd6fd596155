# make demo    the main job: two posteriors, sampled with compiled gradients
# make test    everything that must hold before a commit
# make torch   the bridge to PyTorch, in an environment of its own, whose download is large
# make test-versions  the tests at the lowest and the newest versions of NumPy, SciPy and numba (PYTHONS=, TESTS=)
# make docs    the site, into build/site
# make bench   the table of benchmarks, model by model, also into benchmarks/RESULTS.md
#              (MODELS=folder DATA=folder STAN=table: more models, see benchmarks/README.md)
# make clean   remove all that the above has made, .venv included
#
# Each target makes .venv itself, from PYTHON (3.11 or later).

PYTHON ?= python3
WORKERS ?= auto

VENV := .venv
PY := $(CURDIR)/$(VENV)/bin/python
BESIDE := $(CURDIR)/build

# Threads of BLAS would fight with the parallel tests, and blur the timings.
export OPENBLAS_NUM_THREADS = 1
export OMP_NUM_THREADS = 1
export MKL_NUM_THREADS = 1
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Tests begin many processes, and each would compile every module that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test test-versions bench docs lint types tests pymc torch wheel clean

help:
	@sed -n 's/^# \(make.*\)/\1/p; s/^#\( \{6,\}.*\)/\1/p' Makefile

demo: $(VENV)/.demo
	$(PY) -m jitad demo

# One pytest run covers tests, the examples in docstrings, the pages of the site and a smoke run of the benchmarks; the
# bridge to PyMC has one of its own. It goes on beside the first, as do the types and the site: else a core waits.
test: $(VENV)/.test $(VENV)/.docs
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory wheel
	@$(MAKE) --no-print-directory $(BESIDE)/pymc-venv/.ready
	@$(MAKE) --no-print-directory types docs pymc > build/beside.log 2>&1 & \
		$(MAKE) --no-print-directory tests; status=$$?; wait $$!; beside=$$?; \
		cat build/beside.log; exit $$((status || beside))

test-versions:
	.ci/versions $(PYTHONS)

bench: $(VENV)/.bench
	$(PY) -m benchmarks.compare --write $(if $(MODELS),--models $(MODELS) --data $(DATA)) $(if $(STAN),--stan $(STAN))

docs: $(VENV)/.docs
	$(PY) -m mkdocs build --strict --quiet

# --- parts of make test ------------------------------------------------------------------

lint: $(VENV)/.test
	$(PY) -m ruff check .

# The folder cache/ is installed as jitad.cache. mypy does not read that mapping, so it gets a mirror.
types: $(VENV)/.test
	@rm -rf build/types && mkdir -p build/types/jitad
	@ln -s $(CURDIR)/jitad/* build/types/jitad/ && ln -s $(CURDIR)/cache build/types/jitad/cache
	cd build/types && $(PY) -m mypy --config-file ../../pyproject.toml --cache-dir ../mypy-cache

tests: $(VENV)/.test
	$(PY) -m pytest -n $(WORKERS) --dist worksteal --benchmark-disable --doctest-modules tests jitad cache benchmarks

# Bridges tested beside, each in an environment that the others' packages are lent to: PyMC wants an older numba than the
# newest, PyTorch is large.
pymc_TESTS := tests/integrations/test_pytensor.py jitad/integrations/pytensor.py --nbmake notebooks/pymc_likelihood.ipynb
torch_TESTS := tests/integrations/test_torch.py jitad/integrations/torch.py

pymc torch: %: $(BESIDE)/%-venv/.ready
	$(BESIDE)/$@-venv/bin/python -m pytest -p no:cacheprovider --doctest-modules $($@_TESTS)

$(BESIDE)/%-venv/.ready: $(VENV)/.test
	@rm -rf $(@D) && $(PY) -m venv --without-pip $(@D)
	@$(PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
		> "$$($(@D)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/lent.pth"
	@$(PY) -m pip --python $(@D)/bin/python install --quiet --no-compile --editable '.[$*]'
	@touch $@

# Build the sdist and of it the wheel, check what they say of themselves, install the wheel alone into an empty
# environment, lend it the dependencies, and take a gradient.
wheel: $(VENV)/.test
	@rm -rf build/lib build/bdist.* build/wheel build/wheel-venv && mkdir -p build
	@$(PY) -m build --no-isolation --outdir build/wheel . > build/wheel.log 2>&1 || { cat build/wheel.log; exit 1; }
	@$(PY) -m twine check --strict build/wheel/*
	@$(PY) -m venv --without-pip build/wheel-venv
	@$(PY) -m pip --python build/wheel-venv/bin/python install --quiet --no-deps build/wheel/jitad-*.whl
	@$(PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
		> "$$(build/wheel-venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/lent.pth"
	@cd build && wheel-venv/bin/python -I -c "$$WHEEL_CHECK"

define WHEEL_CHECK
import pathlib, sys
import numpy as np
import jitad, jitad.cache, jitad.integrations
for module in (jitad, jitad.cache, jitad.integrations):
    assert pathlib.Path(module.__file__).is_relative_to(sys.prefix), module.__file__
assert (pathlib.Path(jitad.__file__).parent / "py.typed").exists()
gradient = jitad.jit_grad(lambda x: np.sum(np.sin(x) * x))
x = np.linspace(-1, 1, 5)
np.testing.assert_allclose(gradient(x), np.sin(x) + x * np.cos(x), rtol=1e-12)
print("the wheel, installed alone, imports and differentiates")
endef
export WHEEL_CHECK

# --- the environment ---------------------------------------------------------------------

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "jitad needs Python 3.11 or later; this is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp per extra: installed again only when pyproject.toml changes. Python compiles what is imported, when it is
# first imported: a small part of what is installed.
$(VENV)/.demo $(VENV)/.test $(VENV)/.docs $(VENV)/.bench: $(VENV)/.%: pyproject.toml | $(VENV)/bin/python
	$(PY) -m pip install --quiet --no-compile --editable '.[$*]'
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks demo-posterior.png
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
