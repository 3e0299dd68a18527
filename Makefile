# One door to everything a person or a machine does with this repository: `make help`.

PYTHON = python3
VENV = .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed
TEST_WORKERS = auto
TEST_ARGS =
SEEDS = 2000
CASES = tests/scenarios
DIR = tests/instances/families
OUT =
ONLY =
SECONDS = 5
JOBS = 1
GHZ = .tools/bin/ghz
GHZ_VERSION = v0.120.0
GANGS = .tools/bin/gangs
LOCK = pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header
SERVE_ARGS =

.DEFAULT_GOAL := help
.PHONY: help setup run serve test storms soak check verify verify-format verify-lint verify-types verify-imports \
	verify-protos verify-generated verify-docker fix generate scenarios instances bench bench-short load clients-go lock clean

help: ## list what can be done
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP) ## make the virtual environment from the lock file

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Muster needs Python 3.11 or newer, or make PYTHON=python3.11")'
	@echo 'Setting up $(VENV): what requirements.lock names is downloaded and installed, which may take a minute or two.'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(BIN)/python -m compileall -q service store clients
	@touch $(STAMP)

run: setup ## schedule the example workloads on an embedded store and serve until stopped
	$(BIN)/muster demo

serve: setup ## serve on ./muster.db, or as SERVE_ARGS="--store URL ..." says
	$(BIN)/muster serve $(SERVE_ARGS)

test: setup ## run all tests, on SQLite and PostgreSQL
	$(BIN)/python -m pytest -n $(TEST_WORKERS) $(TEST_ARGS)

storms: setup ## let SEEDS=n storms loose on pods and gangs, on trees, and on the store
	MUSTER_STORM_SEEDS=$(SEEDS) $(BIN)/python -m pytest -q -n $(TEST_WORKERS) tests/properties/test_queue_storm.py \
	  tests/properties/test_store_storm.py

soak: SECONDS = 600
soak: setup ## churn on 5 000 nodes for SECONDS=n (600): memory, database, calls; OUT=FILE.png for their course
	$(BIN)/python -m tests.soak.run --seconds $(SECONDS) $(if $(OUT),--out '$(OUT)')

check: verify test ## all that a change must pass

verify: verify-format verify-lint verify-types verify-imports verify-protos verify-generated verify-docker ## all checks that need no test

verify-format: setup ## is all Python formatted?
	$(BIN)/ruff format --check .

verify-lint: setup ## does ruff find fault?
	$(BIN)/ruff check .

verify-types: setup ## do the types hold, strictly?
	$(BIN)/mypy

verify-imports: setup ## do imports go one way?
	$(BIN)/lint-imports --no-logo

verify-protos: setup ## does buf find fault with the contract?
	$(BIN)/buf lint protos

verify-generated: setup ## are the committed stubs what the protos say?
	$(BIN)/python protos/generate.py --check

verify-docker: setup ## does hadolint find fault with the image?
	$(BIN)/hadolint docker/Dockerfile

fix: setup ## format, and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generate: setup ## write the stubs from the protos
	$(BIN)/python protos/generate.py

scenarios: setup ## run the case files in CASES=DIR, JOBS=n at a time, each on a server of its own
	$(BIN)/python tests/scenarios/run.py --jobs $(JOBS) $(CASES)

instances: setup ## place the instance families in DIR=FOLDER through the API and judge them; OUT=FILE for a record of each
	$(BIN)/python tests/instances/run.py $(if $(OUT),--out $(OUT)) $(DIR)

bench: setup ## measure all rows, or those that ONLY=PATTERN names; OUT=FILE for JSON and a picture beside it
	$(BIN)/python -m tests.bench.run $(if $(OUT),--out '$(OUT)') $(if $(ONLY),--only '$(ONLY)')

bench-short: setup ## ratios and growth alone, in under two minutes, as `make test` does too
	$(BIN)/python -m pytest -q tests/bench

load: setup ## calls from many connections by ghz, and gangs by a Go client: ONLY=PATTERN, SECONDS=n a case, OUT=FILE
	@test -x $(GHZ) || ! command -v go >/dev/null || GOBIN='$(CURDIR)/$(dir $(GHZ))' go install github.com/bojand/ghz/cmd/ghz@$(GHZ_VERSION)
	@! command -v go >/dev/null || (cd clients/go && go build -o '$(CURDIR)/$(GANGS)' ./cmd/gangs)
	@if test -x $(GHZ) && test -x $(GANGS); then \
	  $(BIN)/python -m tests.load.run --ghz $(GHZ) --gangs $(GANGS) --seconds $(SECONDS) $(if $(OUT),--out '$(OUT)') $(if $(ONLY),--only '$(ONLY)'); \
	else \
	  echo 'make load needs ghz $(GHZ_VERSION) and the program clients/go/cmd/gangs: install Go and run it again, or put them at $(GHZ) and $(GANGS)'; \
	fi

clients-go: ## build the Go client
	cd clients/go && go build ./... && go vet ./...

lock: setup ## write the lock files anew from pyproject.toml
	$(BIN)/uv $(LOCK) --upgrade --group dev pyproject.toml --output-file requirements.lock
	$(BIN)/uv $(LOCK) --constraints requirements.lock pyproject.toml --output-file docker/requirements.lock
	$(BIN)/uv $(LOCK) --constraints requirements.lock --group build --output-file docker/build.lock

clean: ## remove all that make and the tests leave behind
	rm -rf $(VENV) .tools .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist
	find . -type d -name __pycache__ -prune -exec rm -rf {} +
