"""What a Spark job is given: how large its executors are, how many, and any property of Spark.

The same block can stand in four places; what is said in an earlier one goes first, property by property:

1. the factory's argument ``spark``, or the operator's;
2. ``spark`` of a cluster in the file of clusters;
3. ``spark`` of that file, for all clusters;
4. ``spark`` in the extra of the Spark connection;
5. `DEFAULTS`, which suit executors of 4 GB (`rebalance_lib.jobs.sizing`).

    spark:
      spark_conn_id: spark_large        # which Spark connection; not in a connection itself
      executor_cores: 1
      executor_memory: 1g               # the JVM's heap
      executor_memory_overhead: 3g      # the Python worker and all else
      num_executors: 8
      driver_memory: 1g
      conf:
        spark.kubernetes.container.image: registry/kafka-rebalance

A property that is null is not given at all: spark-defaults.conf or Spark itself decides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rebalance_lib.jobs.sizing import EXECUTOR_CORES, EXECUTOR_MEMORY, EXECUTOR_MEMORY_OVERHEAD

CONNECTION = "spark_conn_id"
CONF = "conf"
MEMORY = re.compile(r"[1-9][0-9]*[kmgt]b?", re.IGNORECASE)
NUMBERS = {"executor_cores": "spark.executor.cores", "num_executors": "spark.executor.instances"}
SIZES = {
    "executor_memory": "spark.executor.memory",
    "executor_memory_overhead": "spark.executor.memoryOverhead",
    "driver_memory": "spark.driver.memory",
}
DEFAULTS: Mapping[str, Any] = {
    "spark.log.level": "WARN",
    "spark.ui.enabled": "false",
    "spark.executor.cores": str(EXECUTOR_CORES),
    "spark.executor.memory": EXECUTOR_MEMORY,
    "spark.executor.memoryOverhead": EXECUTOR_MEMORY_OVERHEAD,
}


def spark_properties(block: object) -> dict[str, str | None]:
    """The Spark properties that a block stands for; ``spark_conn_id`` is left out.

    Raises:
        ValueError: Something in it is unknown, or cannot be what it is.
    """
    if block is None:
        return {}
    if not isinstance(block, Mapping):
        raise ValueError(f"spark is {block!r}: give an object such as {{'executor_memory': '1g'}}")
    known = (CONNECTION, *NUMBERS, *SIZES, CONF)
    if unknown := sorted(str(name) for name in block if name not in known):
        raise ValueError(f"spark: there is no {unknown[0]!r}: use {', '.join(known)}")
    connection_of(block)
    conf = block.get(CONF) or {}
    if not isinstance(conf, Mapping):
        raise ValueError(f"spark: conf is {conf!r}: give an object with properties of Spark")
    found = {str(name): _value(str(name), value) for name, value in conf.items()}
    for field, name in (*NUMBERS.items(), *SIZES.items()):
        if field in block:
            if name in found:
                raise ValueError(f"spark: {field} and conf have {name} both: keep one")
            found[name] = _number(field, block[field]) if field in NUMBERS else _size(field, block[field])
    return found


def connection_of(block: Mapping[str, Any] | None) -> str | None:
    """The Spark connection that a block names, if it does.

    Raises:
        ValueError: It is no name.
    """
    name = (block or {}).get(CONNECTION)
    if name is not None and (not isinstance(name, str) or not name):
        raise ValueError(f"spark: spark_conn_id cannot be {name!r}: give the name of an Airflow connection")
    return name


def checked(block: object) -> dict[str, Any]:
    """A block, checked and as JSON can hold it."""
    spark_properties(block)
    return {} if block is None else {**block}  # type: ignore[dict-item]


def submitted(*blocks: Mapping[str, Any] | None) -> dict[str, str]:
    """What spark-submit is given, from blocks with those first that go first, over the defaults.

    A standalone master knows no number of executors but cores in all: where one is given, both are told.

    Raises:
        ValueError: Something in a block is wrong.
    """
    found = dict(DEFAULTS)
    for block in reversed(blocks):
        found.update(spark_properties(block))
    instances, cores = found.get("spark.executor.instances"), found.get("spark.executor.cores")
    if instances and cores:
        found.setdefault("spark.cores.max", str(int(instances) * int(cores)))
    return {name: value for name, value in found.items() if value is not None}


def of_connection(extra: Mapping[str, Any]) -> dict[str, Any]:
    """The block in the extra of a Spark connection.

    Raises:
        ValueError: It names a connection itself.
    """
    block = checked(extra.get("spark"))
    if connection_of(block):
        raise ValueError("spark: spark_conn_id has no meaning in a connection: remove it")
    return block


def _value(name: str, value: object) -> str | None:
    if not name.startswith("spark."):
        raise ValueError(f"spark: conf cannot have {name!r}: a property of Spark begins with 'spark.'")
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or isinstance(value, str | int | float):
        return None if value is None else str(value)
    raise ValueError(f"spark: {name} cannot be {value!r}: give text, a number, true or false")


def _number(field: str, value: object) -> str | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise ValueError(f"spark: {field} cannot be {value!r}: give a number from 1 on")
    return None if value is None else str(value)


def _size(field: str, value: object) -> str | None:
    if value is not None and (not isinstance(value, str) or not MEMORY.fullmatch(value)):
        raise ValueError(f"spark: {field} cannot be {value!r}: give an amount with its unit, such as 3g or 1536m")
    return value
