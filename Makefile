# `make` lists the targets. Each sets up what it needs first; that is done once (see scripts/setup.py).

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup setup-run setup-codecs setup-release run test test-codecs generate drift docs man jar lint types check matrix bench trace fuzz fuzz-short soak dist audit walk clean

# Programs of .venv, with the JAVA_HOME that set-up found necessary (usually none). Read when a recipe
# starts, which is after set-up.
JAVA_HOME_FOUND = $(shell cat .venv/java.home 2>/dev/null)
VENV = $(if $(JAVA_HOME_FOUND),JAVA_HOME='$(JAVA_HOME_FOUND)' ).venv/bin

# pyproject.toml says how tests are distributed to the workers. Three keep two cores busy: many tests wait for processes.
PYTEST = $(VENV)/python -m pytest -n $(WORKERS)
WORKERS = 3

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name line; \
	do printf '  make %-13s %s\n' "$$name" "$$line"; done

setup: ## make .venv, find or install Java, compile the packages; done once, redone when something changed
	@./scripts/setup.sh

setup-run: ## set up what `make run` needs, which is less
	@./scripts/setup.sh --for run

setup-codecs: ## set up what work on the compiler and its packages needs, in half the time of `make setup`
	@./scripts/setup.sh --for codecs

setup-release: ## set up everything, with the tools of `make dist` and `make audit`
	@./scripts/setup.sh --for release

run: setup-run ## the main job: generate, transfer files, capture, decode on Spark, report
	@$(VENV)/specwire run $(ARGS)

test: setup ## all tests, with few examples; make fuzz and make soak run more
	@$(PYTEST) $(ARGS)

test-codecs: setup-codecs ## the tests of the compiler and of generated packages alone
	@$(PYTEST) tests/generator tests/generated $(ARGS)

generate: setup-codecs ## write generated/ from grammars/, and the parts of docs/ that are tables of the code
	@$(VENV)/specwire generate
	@$(VENV)/python -m specwire.generator.codes.page docs/reference/diagnostics.md
	@$(VENV)/python scripts/command_table.py docs/reference/command-line.md
	@for page in filemq zre; do $(VENV)/python scripts/settings_table.py docs/reference/$$page.md || exit 1; done
	@$(VENV)/python scripts/api_table.py docs/reference/api.md
	@$(VENV)/python scripts/picture.py

drift: setup-codecs ## fail when generated/ is not what grammars/ gives
	@$(VENV)/specwire generate --check
	@$(VENV)/python -m specwire.generator.codes.page --check docs/reference/diagnostics.md
	@$(VENV)/python scripts/command_table.py --check docs/reference/command-line.md
	@for page in filemq zre; do $(VENV)/python scripts/settings_table.py --check docs/reference/$$page.md || exit 1; done
	@$(VENV)/python scripts/api_table.py --check docs/reference/api.md
	@$(VENV)/python scripts/picture.py --check

docs: setup ## the site, in build/site; needs no network
	@NO_MKDOCS_2_WARNING=1 $(VENV)/mkdocs build --quiet
	@echo build/site/index.html

man: setup ## manual pages of the command line, in build/man; `man -l build/man/specwire.1` shows one
	@$(VENV)/python scripts/man_pages.py build/man

jar: setup ## compile the Java decoders for Spark into generated/java/decoders.jar
	@$(VENV)/python -m specwire.runtime.spark.decoding.compile_jar

lint: setup-codecs ## layout and style of the code
	@$(VENV)/ruff format --check .
	@$(VENV)/ruff check .

types: setup ## mypy, strict
	@$(VENV)/mypy

check: setup drift lint types test fuzz-short ## what continuous integration runs: drift, lint, types, test, a minute of fuzzing

matrix: setup ## test with every Python from 3.11 on that is found, and format with the oldest and the newest ruff
	@$(VENV)/python scripts/matrix.py $(ARGS)

bench: setup ## measure speed, as ratios against a baseline of the same run
	@$(VENV)/python -m tests.benchmarks.run $(ARGS)
	@$(VENV)/python tests/benchmarks/columns_encode.py $(ARGS)
	@$(VENV)/python tests/benchmarks/compiler.py $(ARGS)
	@$(VENV)/python tests/benchmarks/startup.py $(ARGS)
	@$(VENV)/python -m tests.benchmarks.columns $(ARGS)
	@$(VENV)/python -m tests.benchmarks.filemq $(ARGS)
	@$(VENV)/python -m tests.benchmarks.filemq.notice $(ARGS)
	@$(VENV)/python -m tests.benchmarks.filemq.libfilemq $(ARGS)
	@$(VENV)/python -m tests.benchmarks.flux $(ARGS)
	@$(VENV)/python -m tests.benchmarks.flux_scale $(ARGS)
	@$(VENV)/python -m tests.benchmarks.norfab $(ARGS)
	@$(VENV)/python -m tests.benchmarks.kernel $(ARGS)
	@$(VENV)/python -m tests.benchmarks.spark $(ARGS)
	@$(VENV)/python -m tests.benchmarks.spark.live $(ARGS)

trace: setup ## count the functions that handle one message of PEER (filemq, zre, norfab or flux); ARGS=--list names them
	@SPECWIRE_PURE=1 $(VENV)/python -m tests.benchmarks.trace $(PEER) $(ARGS)

# Seconds of fuzzing, for all targets together.
FUZZ_SECONDS = 600

fuzz: setup ## hostile input, guided by coverage, for FUZZ_SECONDS (600) seconds; then tests with random examples, twelve times as many, and 2,000 grammars that expand without end
	@$(VENV)/python -m tests.fuzz.run --seconds $(FUZZ_SECONDS) $(ARGS)
	@$(if $(ARGS),,SPECWIRE_FUZZ_COUNT=300 SPECWIRE_BOMBS=2000 $(PYTEST) --timeout=0 -m 'hypothesis and not spark')

fuzz-short: setup ## the same for a minute, as a part of check; left out where atheris has no wheel
	@$(VENV)/python -m tests.fuzz.run --seconds 60 --if-possible

soak: setup ## peers and brokers killed, cut off and flooded, and histories of stores, at full count
	@SPECWIRE_SOAK_ROUNDS=10 SPECWIRE_SOAK_OCTETS=200000000 SPECWIRE_BURST=10000 SPECWIRE_SOAK_FILES=100000 \
	SPECWIRE_LARGE_OCTETS=5000000000 SPECWIRE_SOAK_SECONDS=600 SPECWIRE_CHAOS_JOBS=5000 \
	SPECWIRE_FLOOD_JOBS=100000 SPECWIRE_FLOOD_CONNECTIONS=10000 SPECWIRE_WATCH_KILLS=5 \
	SPECWIRE_PIPELINE_KILLS=1 SPECWIRE_PIPELINES_RUNS=2 SPECWIRE_CLUSTER_LAYERS=frames,typed,answers SPECWIRE_CLUSTER_WORKERS=2 \
	SPECWIRE_SOAK_HISTORIES=100000 SPECWIRE_LARGE_FRAME_MIB=100 \
	SPECWIRE_ENDLESS_OCTETS=2000000000 SPECWIRE_ENDLESS_MESSAGES=200000 \
	$(PYTEST) --timeout=0 tests/integration/test_filemq_faults_*.py tests/integration/test_filemq_large.py \
	tests/integration/test_flux_soak.py tests/integration/test_norfab_chaos.py \
	tests/integration/test_norfab_floods.py tests/integration/test_endless_messages.py \
	tests/runtime/transport/test_inflow_sockets.py tests/runtime/spark/live/test_killed.py \
	tests/runtime/spark/live/test_declare.py tests/runtime/spark/cluster/test_connect_killed.py \
	tests/runtime/spark/cluster/test_cluster.py \
	tests/runtime/spark/pipeline/test_large_frames.py tests/integration/test_pipeline_killed.py \
	tests/runtime/kernel/store/test_model.py tests/runtime/norfab_serve/test_broker_model.py \
	tests/runtime/norfab_worker/test_worker_model.py $(ARGS)

dist: setup-release ## build a wheel for each Python found, the source archive and an SBOM into dist/, and try them
	@$(VENV)/python scripts/dist.py $(ARGS)

audit: setup-release ## look for known vulnerabilities in the libraries of constraints.txt
	@$(VENV)/python scripts/audit.py

walk: setup ## type the four paths of the README word by word into empty environments; after `make dist`
	@$(VENV)/python -m tests.walk $(ARGS)

clean: ## remove what the other targets wrote, but not what set-up made
	@rm -rf build dist out .mypy_cache .pytest_cache .ruff_cache .hypothesis src/*.egg-info
	@find generator generated runtime tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +
