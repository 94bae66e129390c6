"""Work on large arrays side by side: numpy, Arrow and the compiled loops let other threads run meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

WORTH = 10_000  # partitions from which on threads spare more than they cost
MOST = 4  # threads: as many as a choice has candidates


def side_by_side(function: Callable[[Item], Answer], items: Iterable[Item], partitions: int) -> list[Answer]:
    """The answer for each item, in their order; one after the other where there are few partitions."""
    if partitions <= WORTH:
        return [function(item) for item in items]
    with ThreadPoolExecutor(min(os.cpu_count() or 1, MOST)) as pool:
        return list(pool.map(function, items))


def beside(pool: ThreadPoolExecutor, function: Callable[[], Answer], partitions: int) -> Future[Answer]:
    """An answer that a pool works out while this thread goes on; at once where there are few partitions."""
    if partitions > WORTH:
        return pool.submit(function)
    answer = Future[Answer]()
    answer.set_result(function())
    return answer
