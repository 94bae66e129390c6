"""Run schedules: ``python -m simulator --schedules 1000 --seed 1``, or ``make faults N=1000 SEED=1``."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from simulator.running import Outcome, run_schedule
from simulator.schedule import Schedule, generate
from simulator.shrink import shrink

KEPT = Path(__file__).parent.parent / "tests" / "simulator" / "schedules"
CHUNK = 10  # schedules that a worker is given at a time: some half a second
PROGRESS_SECONDS = 2.0

EPILOG = """\
examples:
  python -m simulator --schedules 1000 --seed 1          seeds 1 to 1000, on two processors
  python -m simulator --only 4711                        one seed; for a failure, the shortened schedule and its trace
  python -m simulator --only 4711 --trace                one seed with its whole trace, whether it fails or not
  python -m simulator --schedules 1000 --seed 1 --keep   keep a shortened schedule for each invariant that is violated

A schedule is a cluster, a plan, settings and faults, drawn from its seed. The executor carries the plan out in
simulated time while the faults strike, and the invariants of simulator/invariants.py are checked after every event.
The same seed on the same commit gives the same trace, byte for byte. Exit code 1 says that an invariant was violated.
"""


class Line(NamedTuple):
    """What a worker hands back of one schedule."""

    seed: int
    violated: tuple[str, ...]
    faults: Counter[str]
    seconds: float
    error: str


@dataclass(slots=True)
class Tally:
    """What came of all schedules so far."""

    begun: float = field(default_factory=time.monotonic)
    schedules: int = 0
    seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    failures: dict[str, list[int]] = field(default_factory=dict)

    def add(self, line: Line) -> None:
        """Count one schedule."""
        self.schedules += 1
        self.seconds += line.seconds
        self.faults.update(line.faults)
        for name in line.violated:
            self.failures.setdefault(name, []).append(line.seed)

    def progress(self, total: int) -> str:
        """One line for people who wait."""
        elapsed = max(time.monotonic() - self.begun, 1e-3)
        failed = len({seed for seeds in self.failures.values() for seed in seeds})
        return (
            f"{self.schedules} of {total} schedules, {self.schedules / elapsed * 60:.0f} a minute, "
            f"{self.seconds / 3600:.1f} simulated hours, {sum(self.faults.values())} faults, {failed} failed"
        )


def main() -> int:
    """Run what was asked for."""
    options = _options()
    seeds = [options.only] if options.only is not None else list(range(options.seed, options.seed + options.schedules))
    if options.only is not None and options.trace:
        outcome = run_schedule(generate(options.only), traced=True, reads=options.reads)
        print("\n".join(outcome.trace))
        return _tell(outcome)
    tally = Tally()
    shown = time.monotonic()
    for line in _lines(seeds, options.processes):
        tally.add(line)
        if time.monotonic() - shown >= PROGRESS_SECONDS:
            shown = time.monotonic()
            print(tally.progress(len(seeds)), file=sys.stderr, flush=True)
        if options.stop and line.violated:
            break
    print(tally.progress(len(seeds)), file=sys.stderr, flush=True)
    _table(tally)
    for name, failed in sorted(tally.failures.items()):
        _explain(name, min(failed), keep=options.keep, trace=not options.no_trace)
    return 1 if tally.failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m simulator",
        description="Run the real executor against a simulated Kafka cluster under seeded faults.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--schedules", type=int, default=1000, metavar="N", help="how many (default 1000)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="the seed of the first (default 1)")
    parser.add_argument("--processes", type=int, default=2, metavar="P", help="worker processes (default 2)")
    parser.add_argument("--only", type=int, metavar="SEED", help="run this one seed")
    parser.add_argument("--trace", action="store_true", help="with --only: print the trace, failure or not")
    parser.add_argument("--reads", action="store_true", help="with --trace: also what was only read")
    parser.add_argument("--no-trace", action="store_true", help="print shortened schedules without their traces")
    parser.add_argument("--stop", action="store_true", help="stop at the first failure")
    parser.add_argument(
        "--keep", action="store_true", help=f"keep shortened schedules in {KEPT.name}/ as regression tests"
    )
    return parser.parse_args()


def _lines(seeds: list[int], processes: int) -> Iterator[Line]:
    if processes < 2 or len(seeds) < CHUNK:
        yield from map(run_seed, seeds)
        return
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        yield from pool.imap_unordered(run_seed, seeds, chunksize=CHUNK)


def run_seed(seed: int) -> Line:
    """Run one seed, in a worker."""
    outcome = run_schedule(generate(seed))
    return Line(seed, tuple(sorted({one.name for one in outcome.violations})), outcome.faults, outcome.seconds, "")


def _table(tally: Tally) -> None:
    print("\nfaults injected")
    for kind, count in sorted(tally.faults.items()):
        print(f"  {kind.replace('_', ' '):<28} {count:>8}")
    print(f"  {'altogether':<28} {sum(tally.faults.values()):>8}")
    if not tally.failures:
        print("\nno invariant was violated")
        return
    print("\ninvariants violated")
    for name, seeds in sorted(tally.failures.items()):
        print(f"  {name:<28} {len(seeds):>8}   seeds {', '.join(map(str, sorted(seeds)[:8]))}")


def _explain(name: str, seed: int, *, keep: bool, trace: bool) -> None:
    """Shorten a failing schedule, and show it with its trace."""

    def fails(candidate: Schedule) -> bool:
        return any(one.name == name for one in run_schedule(candidate).violations)

    schedule = shrink(generate(seed), fails)
    outcome = run_schedule(schedule, traced=True)
    print(f"\n{name}: seed {seed}, shortened to {len(schedule.faults)} faults and {len(schedule.plan)} partitions")
    print(json.dumps(schedule.as_dict(), sort_keys=True))
    if trace:
        print("\n".join(outcome.trace))
    _tell(outcome)
    if keep:
        KEPT.mkdir(parents=True, exist_ok=True)
        path = KEPT / f"{name}-{seed}.json"
        words = next((one.words for one in outcome.violations if one.name == name), "")
        kept = {"about": f"seed {seed}", "invariant": name, "violation": words, "schedule": schedule.as_dict()}
        path.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
        print(f"kept as {path}")


def _tell(outcome: Outcome) -> int:
    for violation in outcome.violations:
        print(violation)
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
