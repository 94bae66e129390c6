"""Simulated time, and processes that run in it one at a time.

Goal: code that was written to sleep, wait and make requests runs unchanged, thousands of times faster than real time,
and in the same order each time.

A process is a greenlet: it runs until it sleeps. Sleeping puts its wake-up into a queue, ordered by time and, for the
same time, by the order in which the entries were made. The scheduler takes the first entry, lets time advance to it,
runs it, and tells whoever wants to know. Nothing else ever advances time, no thread is involved, and no clock is read.

A process makes *calls*: requests to the cluster, operations of storage, sleeps. Each is counted, and it is there that
a process can be killed: `Killed` is raised at the call it is in, and again at every later call, so that no clean-up
code of a dead process reaches anything. ``kill_at_call(7)`` kills it at its seventh call, before that call has any
effect, or after it, when the answer is on its way.

Example: two processes, one of which sleeps for 2 s and the other for 1 s.

>>> scheduler, order = Scheduler(), []
>>> def sleeper(name, seconds):
...     scheduler.sleep(processes[name], seconds)
...     order.append((scheduler.now, name))
>>> processes = {
...     name: scheduler.spawn(name, lambda name=name, seconds=seconds: sleeper(name, seconds))
...     for name, seconds in (("slow", 2.0), ("fast", 1.0))
... }
>>> scheduler.run(until=60.0)
>>> order
[(1.0, 'fast'), (2.0, 'slow')]
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]

Answer = TypeVar("Answer")


class Killed(BaseException):
    """This process was killed: no `Exception`, so that no code takes it for an error it can handle."""


class Process:
    """A simulated process.

    Attributes:
        name: For traces.
        alive: Whether it can still make calls: neither killed nor finished.
        finished: Whether its function returned or raised by itself.
        result: What its function returned.
        error: What its function raised, other than `Killed`.
        calls: How many calls it has made.
    """

    __slots__ = (
        "_after",
        "_greenlet",
        "_hung_until",
        "_kill_at",
        "_scheduler",
        "_wakeup",
        "alive",
        "calls",
        "error",
        "finished",
        "name",
        "result",
    )

    def __init__(self, scheduler: Scheduler, name: str, function: Callable[[], Any]) -> None:
        self.name = name
        self.alive = True
        self.finished = False
        self.result: Any = None
        self.error: BaseException | None = None
        self.calls = 0
        self._scheduler = scheduler
        self._greenlet = greenlet(lambda: self._run(function))
        self._hung_until = 0.0
        self._kill_at = 0
        self._after = False
        self._wakeup = 0  # number of the wake-up that is valid: a killed process has older ones in the queue

    def kill(self) -> None:
        """Kill it: at the call it is in, if it sleeps there; at its next call, if it kills itself."""
        if not self.alive:
            return
        self.alive = False
        if getcurrent() is not self._greenlet:
            self._scheduler.at(self._scheduler.now, self._end)

    def kill_at_call(self, number: int, *, after: bool = False) -> None:
        """Kill it at the call of this number, before it has an effect, or after that.

        Args:
            number: Counted from 1 for the first call of the process.
            after: Let the request be applied; its answer never arrives.
        """
        self._kill_at, self._after = number, after

    def hang(self, until: float) -> None:
        """Stop it (as SIGSTOP does) until this time: it wakes up from no sleep before."""
        self._hung_until = max(self._hung_until, until)

    @property
    def now(self) -> float:
        """Simulated seconds since the start."""
        return self._scheduler.now

    def call(self, seconds: float, action: Callable[[], Answer], *, act_first: bool = False) -> Answer:
        """Make a call that takes this long.

        Args:
            seconds: How long until the answer is there.
            action: What the call does, and its answer.
            act_first: Do it at once, so that the answer may be out of date when it arrives; else at the end.

        Raises:
            Killed: The process was killed, here or before.
        """
        self.begin_call()
        if act_first:
            answer = action()
            self.sleep(seconds)
        else:
            self.sleep(seconds)
            answer = action()
        self.end_call()
        return answer

    def begin_call(self) -> None:
        """Count a call; raises `Killed` if the process is not to make it."""
        if not self.alive:
            raise Killed(self.name)
        self.calls += 1
        if self.calls == self._kill_at and not self._after:
            self.alive = False
            raise Killed(self.name)

    def end_call(self) -> None:
        """The request of the last call was applied; raises `Killed` if the process is not to see its answer."""
        if self._after and self.calls == self._kill_at:
            self.alive = False
        if not self.alive:
            raise Killed(self.name)

    def sleep(self, seconds: float) -> None:
        """Let time pass within a call; from inside the process only."""
        self._scheduler.sleep(self, seconds)

    def _run(self, function: Callable[[], Any]) -> None:
        try:
            if self.alive:
                self.result = function()
            self.finished = self.alive
        except Killed:
            pass
        except BaseException as error:
            # What clean-up code of a killed process raises in the place of `Killed` is nobody's error.
            self.error = error if self.alive else None
            self.finished = self.alive
        self.alive = False

    def _resume(self, wakeup: int) -> None:
        if wakeup != self._wakeup or self._greenlet.dead:
            return
        if self.alive and self._hung_until > self._scheduler.now:
            self._scheduler.at(self._hung_until, lambda: self._resume(wakeup))
            return
        self._switch()

    def _end(self) -> None:
        self.alive = False
        if self._greenlet and not self._greenlet.dead:
            self._wakeup += 1
            self._switch()  # its sleep sees that it is no longer alive

    def _switch(self) -> None:
        self._greenlet.parent = getcurrent()  # where a sleep, or the end of the process, returns to
        self._greenlet.switch()


class Scheduler:
    """The queue of all that is to happen, and simulated time.

    Attributes:
        now: Simulated seconds since the start.
        on_advance: Called as ``(t0, t1)`` before time advances from t0 to t1.
        on_event: Called after every event.
        events: How many events have happened.
    """

    __slots__ = ("_processes", "_queue", "_sequence", "_stopped", "events", "now", "on_advance", "on_event")

    def __init__(self) -> None:
        self.now = 0.0
        self.events = 0
        self.on_advance: list[Callable[[float, float], None]] = []
        self.on_event: list[Callable[[], None]] = []
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._processes: list[Process] = []
        self._sequence = 0
        self._stopped = False

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Have this happen at a time; a time that has passed is now."""
        self._sequence += 1
        heappush(self._queue, (max(time, self.now), self._sequence, action))

    def spawn(self, name: str, function: Callable[[], Any]) -> Process:
        """Start a process now; it first runs when the scheduler comes to it."""
        process = Process(self, name, function)
        self._processes.append(process)
        self.at(self.now, lambda: process._resume(0))  # noqa: SLF001 - the two classes are one mechanism
        return process

    def sleep(self, process: Process, seconds: float) -> None:
        """Let a process sleep; called from inside it.

        Raises:
            Killed: It was killed meanwhile, or before.
        """
        if not process.alive:
            raise Killed(process.name)
        process._wakeup = wakeup = process._wakeup + 1  # noqa: SLF001
        self.at(self.now + max(seconds, 0.0), lambda: process._resume(wakeup))  # noqa: SLF001
        process._greenlet.parent.switch()  # noqa: SLF001
        if not process.alive:
            raise Killed(process.name)

    def stop(self) -> None:
        """Return from `run` after this event."""
        self._stopped = True

    def run(self, until: float) -> None:
        """Let events happen until there are none, the time is reached, or `stop` is called."""
        queue = self._queue
        self._stopped = False
        while queue and not self._stopped:
            time, _, action = queue[0]
            if time > until:
                self._advance(until)
                return
            heappop(queue)
            if time > self.now:
                self._advance(time)
            action()
            self.events += 1
            for on_event in self.on_event:
                on_event()

    def close(self) -> None:
        """End all processes that are left: a greenlet that is only dropped would run its clean-up at any later time."""
        for process in self._processes:
            process._end()  # noqa: SLF001
        self._queue.clear()

    def _advance(self, time: float) -> None:
        if time > self.now:
            for on_advance in self.on_advance:
                on_advance(self.now, time)
            self.now = time
