"""How much memory an executor needs, by the partitions of a shard and the tasks that it runs at a time.

Spark gives an executor two kinds of memory: ``spark.executor.memory`` is the heap of its JVM, and
``spark.executor.memoryOverhead`` is what everything else in the same container may take. The planner runs in Python
workers, one for each core, which are all in the second kind; the JVM moves rows and takes little. So 4 GB of executor
are 1 GB of heap and 3 GB of overhead, with one core.

    memory_overhead(1_000_000, cores=1)     2816 MiB
    memory_overhead(1_000_000, cores=2)     5248 MiB
    partitions_of_a_shard(3072, cores=1)    1,137,078
"""

from __future__ import annotations

from math import ceil

MIB = 1024**2
# As in `planner.shards` (docs/scaling.md, "Shards"; `python -m bench.shards --memory 50000:1000,250000:1000`):
# 1.4 KB a partition to plan it, 0.8 KB for its rows in Arrow and on their way, 317 MB for Python with its libraries.
BYTES_A_PARTITION = 2_200
BYTES_OF_A_WORKER = 317_000_000
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
