"""Consumer assignors at 2,000 members and 100,000 partitions, and sticky answers on random groups, beside Kafka's Java.

    python -m bench.assignors [--members 2000] [--partitions 100000] [--topics 100] [--cases 5000]

Both sides get the same group and are timed several times over in one process; the best time counts. Answers for equal
subscriptions are compared before anything is timed. Java's sticky assignor takes very long for large groups with mixed
subscriptions: there both sides are also timed with a group that it can handle. Needs Java and Maven.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from rebalance_lib.assignors import Assignment, Subscription, assign
from tests.assignors.groups import RACKS, Case, answered, next_generation, random_case
from tests.assignors.judging import is_valid, judged
from tests.java.reference import ASSIGNORS, FIRST_STICKY_ASSIGNORS, JavaProgram

JAVA = replace(ASSIGNORS, options=("-Xmx4g", "-Dlog4j2.level=OFF"))
REPETITIONS = 3
SMALL = {"members": 100, "partitions": 2_000}
CLIENTS = {"2.4.1": FIRST_STICKY_ASSIGNORS, "4.3.1": ASSIGNORS}


def main() -> None:
    parser = argparse.ArgumentParser(description="Time assignors beside those of Kafka's clients.")
    parser.add_argument("--members", type=int, default=2_000)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--cases", type=int, default=5_000, help="random groups for the comparison of answers")
    options = parser.parse_args()
    assign(
        "sticky", {"a": 1, "b": 1}, {"m": Subscription(["a"], [("a", 0)]), "n": Subscription(["a", "b"])}
    )  # compiles

    print(f"{'seconds':58}{'ours':>8}{'Java':>10}{'ours/Java':>12}")
    large = group(options.members, options.partitions, options.topics)
    for strategy in ("range", "roundrobin", "sticky", "cooperative-sticky"):
        compare(f"{strategy}, equal subscriptions", strategy, large)
    compare("sticky, equal, after one member left", "sticky", left(large))
    racks = group(options.members, options.partitions, options.topics, racks=True)
    for strategy in ("range", "sticky"):
        compare(f"{strategy}, equal, members in three racks", strategy, racks)
    mixed = group(options.members, options.partitions, options.topics, mixed=True)
    for strategy in ("range", "roundrobin"):
        compare(f"{strategy}, mixed subscriptions", strategy, mixed)
    show("sticky, mixed subscriptions", seconds("sticky", mixed))
    show("sticky, mixed, after one member left", seconds("sticky", left(mixed)))
    small = group(SMALL["members"], SMALL["partitions"], options.topics, mixed=True)
    words = f"{SMALL['members']} members, {SMALL['partitions']:,} partitions"
    compare(f"sticky, mixed, {words}", "sticky", small, same=False)
    compare(f"sticky, mixed, {words}, one left", "sticky", left(small), same=False)

    print(f"\nsticky on {options.cases:,} random groups, three generations each")
    print(f"{'beside':10}{'answers':>10}{'identical':>12}{'more balanced':>16}{'fewer changes':>16}{'worse':>8}")
    for name, found in quality(options.cases).items():
        counts = [found[what] for what in ("answers", "identical", "balance", "changes", "worse")]
        print(f"{name:10}{counts[0]:>10,}{counts[1]:>12,}{counts[2]:>16,}{counts[3]:>16,}{counts[4]:>8,}")


def group(members: int, partitions: int, topics: int, *, mixed: bool = False, racks: bool = False) -> Case:
    """Members that subscribe to all topics, or each to some of them; with racks, partitions are in two of three."""
    draw = random.Random(1)
    counts = {f"topic-{n:05}": partitions // topics for n in range(topics)}

    def subscription() -> Subscription:
        some = draw.randint(max(1, topics // 10), topics) if mixed else topics
        return Subscription(sorted(draw.sample(list(counts), some)), rack=draw.choice(RACKS) if racks else None)

    people = {f"consumer-{draw.randrange(16**8):08x}": subscription() for _ in range(members)}
    placed = {topic: [tuple(draw.sample(RACKS, 2)) for _ in range(n)] for topic, n in counts.items()} if racks else {}
    return Case(counts, people, placed)


def left(case: Case) -> Case:
    """The group after its assignment, without its first member."""
    had = assign("sticky", case.partitions, case.members)
    stay = list(case.members)[1:]
    return replace(case, members={name: Subscription(case.members[name].topics, had[name], 1) for name in stay})


def compare(words: str, strategy: str, case: Case, *, same: bool = True) -> None:
    line = case.line(strategy)
    if same and assign(strategy, case.partitions, case.members, racks=case.racks) != answered(JAVA.ask([line])[0]):
        raise SystemExit(f"{words}: not what Kafka's class answers")
    show(words, seconds(strategy, case), int(JAVA.ask([line], "time", str(REPETITIONS))[0]) / 1e9)


def show(words: str, ours: float, java: float | None = None) -> None:
    beside = "" if java is None else f"{java:10.3f}{ours / java:12.2f}"
    print(f"{words:58}{ours:8.3f}{beside}", flush=True)


def seconds(strategy: str, case: Case) -> float:
    return min(
        took(lambda: assign(strategy, case.partitions, case.members, racks=case.racks)) for _ in range(REPETITIONS)
    )


def took(work: Callable[[], Assignment]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def quality(cases: int) -> dict[str, Counter[str]]:
    """How often our answer is Java's, or better."""
    found: dict[str, Counter[str]] = {name: Counter() for name in CLIENTS}
    groups = [random_case(seed) for seed in range(cases)]
    for generation in (1, 2, 3):
        ours = [assign("sticky", case.partitions, case.members) for case in groups]
        for name, client in CLIENTS.items():
            found[name] += judge(client, groups, ours)
        groups = [
            next_generation(case, one, n, generation) for n, (case, one) in enumerate(zip(groups, ours, strict=True))
        ]
    return found


def judge(client: JavaProgram, groups: list[Case], ours: list[Assignment]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for case, one, java in zip(groups, ours, client.ask(case.line("sticky") for case in groups), strict=True):
        theirs = answered(java)
        mine, other = judged(case, one), judged(case, theirs)
        counts["answers"] += 1
        counts["identical"] += one == theirs
        counts["balance"] += mine[0] < other[0]
        counts["changes"] += mine[0] == other[0] and mine[1] < other[1]
        counts["worse"] += mine > other or not is_valid(case, one)
    return counts


if __name__ == "__main__":
    main()
