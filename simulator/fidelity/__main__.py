"""``python -m simulator.fidelity --schedules 100 --seed 1``: play schedules in the simulator and on a real cluster."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from simulator.fidelity.answers import differing_answers
from simulator.fidelity.director import NotReachedError
from simulator.fidelity.end_state import EndState, differences
from simulator.fidelity.process import CONTEXT
from simulator.fidelity.real import RealCluster
from simulator.fidelity.scenes import Scene, draw_scene
from simulator.fidelity.simulated import play_simulated

EPILOG = """\
examples:
  python -m simulator.fidelity --schedules 100 --seed 1    seeds 1 to 100, about fifteen seconds each
  python -m simulator.fidelity --only 17                   one seed, and what happened on both sides in words
  python -m simulator.fidelity --only 17 --simulated       one seed in the simulator alone, without a cluster

A schedule is a small cluster, a plan, settings and at most two faults, drawn from its seed. It is played twice: in the
simulator, and on a sandbox of five brokers that is started for this. Faults strike at moments, not at seconds: before
the run, while its first moves are held by a low throttle, when they have ended and the run is paused, and after it. At
the end both sides are compared: replicas in order and in sync, reassignments under way, all throttles of topics and
brokers, how the run ended, what it set aside and why, and what it names as left. Single requests whose answers matter
are compared first. Exit code 1 says that something differed; it is printed with both sides.
"""


@dataclass(slots=True)
class Tally:
    """What came of all schedules so far."""

    played: int = 0
    seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)  # those that struck
    endings: Counter[str] = field(default_factory=Counter)
    differing: dict[int, list[str]] = field(default_factory=dict)

    def add(self, scene: Scene, real: EndState | None, found: list[str], seconds: float) -> None:
        """Count one schedule."""
        self.played += 1
        self.seconds += seconds
        self.faults.update((real.struck if real else {}) or ["none"])
        self.endings.update([" ".join((real.run if real else {"not": "reached"}).values())])
        if found:
            self.differing[scene.seed] = found

    def table(self) -> str:
        """The table at the end."""
        lines = ["", f"{'fault':<28}{'schedules':>10}"]
        lines += [f"{kind.replace('_', ' '):<28}{count:>10}" for kind, count in sorted(self.faults.items())]
        lines += ["", f"{'the run ended':<50}{'schedules':>10}"]
        lines += [f"{ending:<50}{count:>10}" for ending, count in self.endings.most_common()]
        lines += [
            "",
            f"{self.played} schedules played on both sides in {self.seconds / 60:.1f} minutes, "
            f"{len(self.differing)} with differences" + (f": seeds {sorted(self.differing)}" if self.differing else ""),
        ]
        return "\n".join(lines)


def main() -> int:
    """Play what was asked for."""
    options = _options()
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # a broker that was killed is no news here
    say = _timed() if options.only is not None else _silent
    if options.simulated:
        for seed in _seeds(options):
            scene = draw_scene(seed)
            print(f"{seed}: {scene}\n{play_simulated(scene, say, traced=options.only is not None)}")
        return 0
    CONTEXT.set_forkserver_preload(["simulator.fidelity.process"])
    tally, unlike = Tally(), []
    with RealCluster() as cluster:
        if options.only is None:
            unlike = differing_answers(cluster)
            print("\n".join(unlike) or "all single requests are answered alike", flush=True)
        for seed in _seeds(options):
            _play(cluster, draw_scene(seed), tally, say)
    print(tally.table())
    return 1 if tally.differing or unlike else 0


def _silent(_: str) -> None:
    pass


def _timed() -> Callable[[str], None]:
    """Print lines with the seconds since now."""
    begun = time.monotonic()
    return lambda text: print(f"{time.monotonic() - begun:>7.1f} {text}", flush=True)


def _play(cluster: RealCluster, scene: Scene, tally: Tally, say: Callable[[str], None]) -> None:
    begun = time.monotonic()
    real: EndState | None = None
    try:
        simulated = play_simulated(scene)
        real = cluster.play(scene, say)
        found = differences(simulated, real)
    except NotReachedError as error:
        found = [f"not played to its end: {error}"]
    seconds = time.monotonic() - begun
    tally.add(scene, real, found, seconds)
    verdict = "DIFFERENT" if found else "same"
    print(f"{tally.played:>4}  seed {scene.seed:<5} {seconds:>5.1f} s  {verdict:<9}  {scene}", flush=True)
    for line in found:
        print(f"        {line}", flush=True)


def _seeds(options: argparse.Namespace) -> list[int]:
    if options.only is not None:
        return [options.only]
    return list(range(options.seed, options.seed + options.schedules))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m simulator.fidelity",
        description="Play seeded schedules in the simulator and on a real Kafka cluster, and compare how they end.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--schedules", type=int, default=100, metavar="N", help="how many (default: 100)")
    parser.add_argument("--seed", type=int, default=1, metavar="SEED", help="the first seed (default: 1)")
    parser.add_argument("--only", type=int, metavar="SEED", help="this seed alone, with what happened in words")
    parser.add_argument("--simulated", action="store_true", help="in the simulator alone, without a cluster")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
