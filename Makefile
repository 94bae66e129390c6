# `make` lists what there is. Everything runs from .venv, which `make setup` makes and every other target makes sure of.
.DEFAULT_GOAL := help
.PHONY: help setup demo up down test lint unit proof lock clean

BIN := .venv/bin

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*  ## /\1	/p' $(MAKEFILE_LIST) | expand -t 10

setup:  ## .venv with the locked dependencies and the command kafka-rebalance; Kafka's jars
	@tools/setup.sh

demo: setup  ## rebalance a real Kafka cluster end to end, then stop everything
	@$(BIN)/python -m demo demo

up: setup  ## the same, left running: approve the plan in the browser
	@$(BIN)/python -m demo up

down:  ## stop what `make up` started
	@if [ -x $(BIN)/python ]; then $(BIN)/python -m demo down; fi

test: setup lint  ## everything that must hold: lint, format, types, tests
	$(BIN)/pytest --numprocesses 2 --dist loadgroup

lint: setup  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

unit: setup  ## the tests alone; make unit T="tests/plan -k digest" for some of them
	$(BIN)/pytest $(T)

proof: setup  ## 10,000 random placements against Kafka's own classes; make test runs 1,000
	REFERENCE_CASES=10000 $(BIN)/pytest tests/placement

lock: setup  ## resolve the dependencies of pyproject.toml anew into requirements.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	    --upgrade pyproject.toml --extra spark --extra airflow --group dev -o requirements.lock

clean: down  ## remove everything that setup, demo and tests made
	rm -rf .venv sandbox/libs .local .mypy_cache .pytest_cache .ruff_cache .hypothesis spark-warehouse
