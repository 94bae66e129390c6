"""Work on large arrays side by side: numpy, Arrow and the compiled loops let other threads run meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Thread
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


def beside(function: Callable[[], Answer], partitions: int) -> Future[Answer]:
    """An answer that a thread works out while this one goes on; at once where there are few partitions.

    Where this thread fails meanwhile, neither its message nor the end of the process waits for the answer.
    """
    answer = Future[Answer]()

    def work_out() -> None:
        try:
            answer.set_result(function())
        except BaseException as error:  # it is raised where the answer is wanted
            answer.set_exception(error)

    if partitions > WORTH:
        Thread(target=work_out, daemon=True).start()
    else:
        answer.set_result(function())
    return answer
