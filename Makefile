# The verbs of the project. Each makes what it needs; a fresh machine with Python 3.11 and make is enough.
PYTHON ?= python3.11
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help paper silence test lint serve bench bench-growth bench-service bench-scale bench-peers verify clean

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv/made: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

paper: .venv/made ## reproduce the paper into out/paper
	$(BIN)/belated paper

silence: .venv/made ## what reading the silence is worth, into out/silence
	$(BIN)/belated silence

test: .venv/made ## lint, types, import contract and the whole suite
	$(MAKE) lint
	$(BIN)/pytest --numprocesses auto --quiet -rs

lint: .venv/made ## style, types, import contract
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

serve: .venv/made ## serve live experiments on port 8000, from belated.db
	$(BIN)/belated serve --ledger sqlite:///belated.db --port 8000

bench: .venv/made ## time the simulator beside a C program, and the live engine beside the bare disk
	$(BIN)/python benchmarks/thompson.py
	$(BIN)/python benchmarks/policies.py
	$(BIN)/python benchmarks/live.py
	$(BIN)/python benchmarks/startup.py

bench-growth: .venv/made ## draw how time and memory grow with arms, rounds and delay, into out/
	$(BIN)/python benchmarks/growth.py

bench-service: .venv/made ## time the service with wrk, beside an echo of the same stack
	$(BIN)/python benchmarks/service.py

bench-scale: .venv/made ## what one decision needs: bytes, commits, processor
	$(BIN)/python benchmarks/scale.py

bench-peers: .venv/made ## time the same policy in other libraries, installed into out/peers (1.5 GB)
	$(BIN)/python benchmarks/peers.py

verify: .venv/made ## slow statistical evidence, with figures, into out/verify
	$(BIN)/python verification/lemmas.py
	$(BIN)/python verification/certified.py
	$(BIN)/python verification/arms.py
	$(BIN)/python verification/oracle.py
	$(BIN)/python verification/lazy.py
	$(BIN)/python verification/silence.py
	$(BIN)/python verification/staleness.py

clean: ## remove what the verbs made
	rm -rf .venv out
