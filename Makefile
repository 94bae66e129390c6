# `make` lists what there is. Everything runs from .venv, which `make setup` makes and every other target makes sure of.
.DEFAULT_GOAL := help
.PHONY: help setup demo up down test lint unit proof lock clean

BIN := .venv/bin

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*  ## /\1	/p' $(MAKEFILE_LIST) | expand -t 10

setup:  ## .venv with the locked dependencies and the command kafka-rebalance; Kafka's jars; Prometheus for the tests
	@tools/setup.sh

demo: setup  ## rebalance a real Kafka cluster end to end, then stop everything
	@$(BIN)/python -m demo demo

up: setup  ## the same, left running: approve the plan in the browser
	@$(BIN)/python -m demo up

down:  ## stop what `make up` started
	@if [ -x $(BIN)/python ]; then $(BIN)/python -m demo down; fi

test: setup lint  ## everything that must hold: lint, format, types, tests
	$(BIN)/pytest --numprocesses 2 --dist loadscope --no-loadscope-reorder

lint: setup  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

unit: setup  ## the tests alone; make unit T="tests/plan -k digest" for some of them
	$(BIN)/pytest $(T)

proof: setup  ## 10,000 random placements and consumer groups against Kafka's own classes; make test runs fewer
	REFERENCE_CASES=10000 $(BIN)/pytest tests/placement tests/assignors/test_against_java.py

lock: setup  ## resolve the dependencies of pyproject.toml anew into requirements.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	    --upgrade pyproject.toml --extra spark --extra airflow --extra s3 --group dev -o requirements.lock

clean: down  ## remove everything that setup, demo and tests made
	find rebalance_lib -name '*.nb[ci]' -delete # compiled loops
	rm -rf .venv sandbox/libs sandbox/kafka.jsa sandbox/prometheus .local .mypy_cache .pytest_cache .ruff_cache .hypothesis spark-warehouse
