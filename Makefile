# Every target sets up .venv first when it has to. On a fresh machine `make demo` or `make test` alone is enough.

PYTHON      ?= python3
VENV        := .venv
BIN         := $(VENV)/bin
WORKERS     ?= 2
TORCH_INDEX ?=
RUFF_PATHS  := src tests bench scripts examples docs
# The tests that `make check` runs: whole compilations, processes and the emulator are left to `make test`.
SLOW_FILES  := tools/programs tools/explorer tools/fuzzing tools/test_terminals.py tools/test_faults_of_users.py \
               tools/test_profile.py tools/test_profile_lines.py tools/test_demo.py tools/test_cache_command.py \
               $(addprefix tools/test_debug_,adapter.py editors.py hopper.py speed.py terminal.py) \
               tools/test_inspection.py tools/test_unusual_kernels.py tools/test_beside_ncu.py tools/test_ncu_lines.py \
               repo/test_compare_code.py repo/test_circles.py repo/test_editors.py repo/test_bench_runner.py
FAST_TESTS  := $(addprefix tests/,layout hw ir tools repo) $(addprefix --ignore tests/,$(SLOW_FILES))
PYTEST      := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

# The stamp's name is a hash of what it depends on, so a checkout that changes only file times installs nothing.
SETUP_KEY   := $(shell cat pyproject.toml requirements-dev.txt requirements-torch.txt scripts/setup_venv.py \
                 | cksum | cut -d' ' -f1)
STAMP       := $(VENV)/setup-$(SETUP_KEY).stamp
DOCS_STAMP  := $(VENV)/docs-$(shell cat requirements-docs.txt | cksum | cut -d' ' -f1).stamp
SITE        := out/site

.DEFAULT_GOAL := help
.PHONY: help setup torch demo test test-all test-tenstorrent check format bench docs linkcheck dist first-hour clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' Makefile | awk -F'|' '{ printf "%-12s %s\n", $$1, $$2 }'

setup: $(STAMP) ## make .venv with pinned versions

$(STAMP):
	$(PYTHON) scripts/setup_venv.py $(VENV) $(STAMP)

torch: $(STAMP) ## install the pinned CPU build of PyTorch from TORCH_INDEX
	$(BIN)/python -m pip install -r requirements-torch.txt $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))

demo: $(STAMP) ## compile and run the demonstration kernels
	$(BIN)/tilewright demo

test: $(STAMP) ## all tests but those marked slow
	$(PYTEST) -m "not slow" tests

test-all: $(STAMP) ## all tests
	$(PYTEST) tests

test-tenstorrent: $(STAMP) ## run the C++ for Tenstorrent in wolfpine; sets .venv-tenstorrent up first
	$(BIN)/python scripts/tenstorrent_isa/setup.py
	$(BIN)/python -m pytest -rs tests/tenstorrent/isa tests/tenstorrent/test_ran_in_wolfpine.py

check: $(STAMP) ## format, lint, types, imports, sizes, fast tests
	$(BIN)/ruff format --check $(RUFF_PATHS)
	$(BIN)/ruff check $(RUFF_PATHS)
	$(BIN)/codespell
	$(BIN)/python scripts/check_structure.py
	$(BIN)/python scripts/check_circles.py
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy src/tilewright
	$(PYTEST) -m "not slow and not gpu" $(FAST_TESTS)

format: $(STAMP) ## rewrite the sources in the project's format
	$(BIN)/ruff format $(RUFF_PATHS)
	$(BIN)/ruff check --fix $(RUFF_PATHS)

bench: $(STAMP) ## run the benchmarks, results into bench/results
	$(BIN)/python -m bench

$(DOCS_STAMP): $(STAMP)
	$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements-docs.txt
	rm -f $(VENV)/docs-*.stamp
	touch $(DOCS_STAMP)

docs: $(DOCS_STAMP) ## build the site into out/site; a warning is an error
	$(BIN)/sphinx-build -q -W --keep-going -j auto -b dirhtml docs $(SITE)

linkcheck: $(DOCS_STAMP) ## ask every address that the documents name; needs the internet
	$(BIN)/sphinx-build -q -b linkcheck docs out/linkcheck

dist: $(DOCS_STAMP) ## build wheel and sdist into dist/, and check what a package index will show
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	$(BIN)/twine check --strict dist/*

first-hour: $(STAMP) ## install the wheel of dist/ into an environment of its own, and go through a new user's first steps
	$(BIN)/python scripts/first_hour.py dist

clean: ## remove the environment, caches and builds
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache dist out
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
