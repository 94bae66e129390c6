"""Tables that are each sorted by topic and partition as one sorted table, while few rows of each are in memory.

Algorithm: some rows of each table are waiting. The one whose last waiting row comes first in the order has nothing more
up to there, and neither have the others: all rows up to that one are sorted and handed on, and tables of which none is
waiting then are read on.

Example: [a-0, b-0 | d-0] and [b-1, c-0 | e-0], read two rows at a time. Of the first b-0 and of the second c-0 is the
last one waiting: a-0 and b-0 are handed on. Then d-0 waits beside b-1 and c-0, which are handed on, then d-0, then e-0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rebalance_lib.plan.columns import partition_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def merge_sorted(tables: Iterable[Iterable[pa.Table]]) -> Iterator[pa.Table]:
    """Rows of tables that come some at a time, each sorted by topic and partition; all of a partition are in one."""
    sources = {number: iter(table) for number, table in enumerate(tables)}
    waiting: dict[int, pa.Table] = {}
    while True:
        for number, source in list(sources.items()):
            while number not in waiting and number in sources:
                some = next(source, None)
                if some is None:
                    del sources[number]
                elif some.num_rows:
                    waiting[number] = some
        if not waiting:
            return
        keys = dict(zip(waiting, partition_keys(*waiting.values()), strict=True))
        first = min(keys[number][-1] for number in waiting)
        ends = {number: int(np.searchsorted(keys[number], first, side="right")) for number in waiting}
        ready = pa.concat_tables([table.slice(0, ends[number]) for number, table in waiting.items()]).combine_chunks()
        order = np.argsort(np.concatenate([keys[number][:end] for number, end in ends.items()]), kind="stable")
        yield ready.take(pa.array(order))
        waiting = {
            number: table.slice(ends[number]) for number, table in waiting.items() if ends[number] < table.num_rows
        }
