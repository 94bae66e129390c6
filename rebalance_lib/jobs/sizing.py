"""How much memory an executor needs, by the partitions of a shard and the tasks that it runs at a time.

Spark gives an executor two kinds of memory: ``spark.executor.memory`` is the heap of its JVM, and
``spark.executor.memoryOverhead`` is what everything else in the same container may take. The planner runs in Python
workers, one for each core, which are all in the second kind; the JVM moves rows and takes little. So 4 GB of executor
are 1 GB of heap and 3 GB of overhead, with one core.

    memory_overhead(1_000_000, cores=1)     1536 MiB
    memory_overhead(1_000_000, cores=2)     2688 MiB
    partitions_of_a_shard(3072, cores=1)    2,759,317
"""

from __future__ import annotations

from math import ceil

MIB = 1024**2
# Resident memory over partitions of `kafka-rebalance plan` (docs/scaling.md, "Partitions"): 0.37 GB at 100,000 and
# 3.04 GB at 3,000,000 partitions, so 920 bytes for each, and 0.28 GB for Python, its libraries and the compiled loops.
BYTES_A_PARTITION = 920
BYTES_OF_A_WORKER = 280_000_000
MIB_OF_THE_JVM = 384  # threads, metaspace and buffers beside the heap: Spark's own least memoryOverhead
STEP_MIB = 128

EXECUTOR_CORES = 1
EXECUTOR_MEMORY = "1g"
EXECUTOR_MEMORY_OVERHEAD = "3g"


def memory_overhead(partitions: int, cores: int = EXECUTOR_CORES) -> int:
    """MiB of ``spark.executor.memoryOverhead`` for shards of so many partitions, one on each core.

    Args:
        partitions: Of the largest shard, or of the largest cluster that is not cut into shards.
        cores: Of an executor: as many Python workers run in it at a time.
    """
    workers = cores * (BYTES_OF_A_WORKER + partitions * BYTES_A_PARTITION)
    return STEP_MIB * ceil((MIB_OF_THE_JVM + workers / MIB) / STEP_MIB)


def partitions_of_a_shard(overhead: int, cores: int = EXECUTOR_CORES) -> int:
    """How many partitions a shard may have at most in executors with so many MiB of overhead; 0 if Python has no place.

    Args:
        overhead: ``spark.executor.memoryOverhead`` in MiB.
        cores: Of an executor.
    """
    of_a_worker = (overhead - MIB_OF_THE_JVM) * MIB / cores
    return max(0, int((of_a_worker - BYTES_OF_A_WORKER) / BYTES_A_PARTITION))
