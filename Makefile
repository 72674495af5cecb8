# `make` lists the targets. Each sets up what it needs first; that is done once (see scripts/setup.py).

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup run test generate drift lint types check bench fuzz clean

# Programs of .venv, with the JAVA_HOME that set-up found necessary (usually none). Read when a recipe
# starts, which is after set-up.
JAVA_HOME_FOUND = $(shell cat .venv/java.home 2>/dev/null)
VENV = $(if $(JAVA_HOME_FOUND),JAVA_HOME='$(JAVA_HOME_FOUND)' ).venv/bin

# Tests that share a Spark session carry one group name, so one of the two workers runs them all.
PYTEST = $(VENV)/python -m pytest -n 2 --dist loadgroup

help: ## list the targets
	@sed -n 's/^\([a-z]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name line; \
	do printf '  make %-9s %s\n' "$$name" "$$line"; done

setup: ## make .venv, find or install Java; done once, redone when the dependencies change
	@./scripts/setup.sh

run: setup ## the main job: generate, transfer files, capture, decode on Spark, report
	@$(VENV)/specwire run $(ARGS)

test: setup ## all tests, in two workers
	@$(PYTEST) $(ARGS)

generate: setup ## write generated/ from grammars/, and docs/diagnostics.md
	@$(VENV)/specwire generate
	@$(VENV)/python -m specwire.generator.codes.page docs/diagnostics.md

drift: setup ## fail when generated/ is not what grammars/ gives
	@$(VENV)/specwire generate --check
	@$(VENV)/python -m specwire.generator.codes.page --check docs/diagnostics.md

lint: setup ## layout and style of the code
	@$(VENV)/ruff format --check .
	@$(VENV)/ruff check .

types: setup ## mypy, strict
	@$(VENV)/mypy

check: drift lint types test ## what continuous integration runs: drift, lint, types, test

bench: setup ## measure speed, as ratios against a baseline of the same run
	@$(VENV)/python tests/benchmarks/run.py $(ARGS)
	@$(VENV)/python tests/benchmarks/compiler.py $(ARGS)
	@$(VENV)/python tests/benchmarks/startup.py $(ARGS)

fuzz: setup ## a million mutated messages
	@SPECWIRE_FUZZ_COUNT=1000000 $(PYTEST) tests/fuzz $(ARGS)

clean: ## remove what the other targets wrote, but not .venv
	@rm -rf build dist out .mypy_cache .pytest_cache .ruff_cache .hypothesis src/*.egg-info
	@find generator generated runtime tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +
