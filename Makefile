# `make` lists what there is. Everything runs from .venv, which `make setup` makes and every other target makes sure of.
.DEFAULT_GOAL := help
.PHONY: help setup demo up down test test-long faults unit coverage lint lock clean

BIN := .venv/bin
unexport PYTHONDONTWRITEBYTECODE # hundreds of short-lived Pythons would each compile Airflow anew

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*  ## /\1	/p' $(MAKEFILE_LIST) | expand -t 12

setup:  ## .venv with the locked dependencies and the command kafka-rebalance; Kafka's jars; Prometheus for the tests
	@tools/setup.sh

demo: setup  ## rebalance a real Kafka cluster end to end, then stop everything
	@$(BIN)/python -m demo demo

up: setup  ## the same, left running: approve the plan in the browser
	@$(BIN)/python -m demo up

down:  ## stop what `make up` started
	@if [ -x $(BIN)/python ]; then $(BIN)/python -m demo down; fi

PARALLEL := --numprocesses 2 --dist loadscope --no-loadscope-reorder
PYTEST := $(BIN)/pytest $(PARALLEL)

test: setup lint  ## everything that must hold, in about fifteen minutes: lint, format, types, tests; T="--shuffle 1" to shuffle
	@echo "test: all tests on a real Kafka, Spark and Airflow; about fifteen minutes on two cores, progress below"
	$(PYTEST) $(T)

test-long: setup lint  ## the same, and what only a long run shows: every chaos case, 25 times the random cases and more
	@echo "test-long: every chaos case, every task cleared, 10,000 cases of each comparison with Kafka; progress below"
	$(PYTEST) --long --durations=20 $(T)

N ?= 10000
SEED ?= 1
faults: setup  ## the executor in a simulated cluster under N=10000 schedules of faults, from SEED=1 on
	$(BIN)/python -m simulator --schedules $(N) --seed $(SEED)

unit: setup  ## the tests that need no cluster, in under a minute; make unit T="tests/plan -k digest" for some of them
	$(PYTEST) -m "not programs" $(T)

coverage: setup  ## lines and branches of rebalance_lib and plugins that the tests run, in subprocesses and threads too
	@$(BIN)/coverage erase
	$(BIN)/coverage run --data-file=$(CURDIR)/.coverage -m pytest $(PARALLEL) $(T)
	@$(BIN)/coverage combine -q
	$(BIN)/coverage report --skip-covered --precision=2

lint: setup  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lock: setup  ## resolve the dependencies of pyproject.toml anew into requirements.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	    --upgrade pyproject.toml --extra spark --extra airflow --extra s3 --group dev -o requirements.lock

clean: down  ## remove everything that setup, demo and tests made
	find rebalance_lib \( -name '*.nb[ci]' -o -name '*.jsa' -o -path '*/loops-*/complete' \) -delete # made by compile
	rm -rf .venv .coverage .coverage.* sandbox/libs sandbox/kafka.jsa sandbox/prometheus .local .mypy_cache .pytest_cache .ruff_cache .hypothesis spark-warehouse
