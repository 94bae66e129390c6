"""The scenarios of ``tests/planner/scenarios``: small clusters, what is expected, and the figures of every planner.

    python -m bench.scenarios                   plan all anew, and say which files are not true any more
    python -m bench.scenarios --write           and write this planner's figures into them
    python -m bench.scenarios --peers           run the peers too, where they can be asked the same, and record them
    python -m bench.scenarios --write four      only those whose name has this in it

A change of behaviour is a diff of these files. ``tests/planner/test_scenarios.py`` holds them against the planner,
digit by digit; no time is in them. Peers' figures are recorded by ``--peers`` alone: some peers start at random.

``scenario_file`` has the format. Figures of a planner:

    ``goal``      what each goal says: before, after, up to where it is met, and the best that any plan could reach
    ``copied``    bytes, as a part of all, and over the least for the loads that the plan ends with; replicas; between
                  log dirs of a broker
    ``leaders``   preferred leaders that change, and lists of which only the order does
    ``bound``     what any plan must copy for all tolerances, where there is a certificate
    ``unknown``   brokers whose capacity is not known, while that of others is
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import measure
from bench.peers import KafkaGenerate, KafkaUtils, PeerUnavailableError, Rebalancer, Task
from bench.scenario_file import OURS, read_scenario
from rebalance_lib.errors import RebalanceError
from rebalance_lib.plan import parse_plan
from rebalance_lib.planner import Choice, Mode, Scope
from rebalance_lib.planner.candidates import FULL, candidate
from rebalance_lib.planner.resources import unknown_capacities
from rebalance_lib.report.summary import certificate_figures
from tests.java.reference import ROOT

if TYPE_CHECKING:
    from bench.peers import Planner
    from bench.scenario_file import Scenario
    from rebalance_lib.planner import Candidate, ClusterModel, Request

DIRECTORY = ROOT / "tests" / "planner" / "scenarios"
PEERS: tuple[Planner, ...] = (KafkaGenerate(), KafkaUtils("count"), Rebalancer("fast"))
SCENARIO_OF_MODE = {Mode.BALANCE: "steady", Mode.EXPAND: "expand", Mode.DRAIN: "decommission"}
SECONDS_A_PEER = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(description="Plan the scenarios anew.")
    parser.add_argument("names", nargs="*", help="only those whose name has one of these words")
    parser.add_argument("--write", action="store_true", help="write this planner's figures into the files")
    parser.add_argument("--peers", action="store_true", help="run the peers and write their figures too")
    chosen = parser.parse_args()
    for file in files():
        if chosen.names and not any(word in file.stem for word in chosen.names):
            continue
        scenario = read_scenario(file)
        figures = {**scenario.figures, OURS: our_figures(scenario)}
        if chosen.peers:
            figures |= peer_figures(scenario)
        now = replace(scenario, figures=figures).text()
        same = now == file.read_text(encoding="utf-8")
        print(f"{file.stem:24}{'as it was' if same else 'differs'}", flush=True)
        if chosen.write or chosen.peers:
            file.write_text(now, encoding="utf-8")


def files() -> list[Path]:
    return sorted(DIRECTORY.glob("*.txt"))


def our_figures(scenario: Scenario) -> list[str]:
    """What this planner makes of it."""
    model = scenario.hosts.model()
    found = candidate(model, Scope.of(model, scenario.request), scenario.request, FULL)
    return figures_of(model, scenario.request, found)


def figures_of(model: ClusterModel, request: Request, found: Candidate) -> list[str]:
    """The lines of a plan, whoever made it."""
    certificate = certificate_figures(Choice(model, request, [found]))
    lines = [f"{'goal':16}{'before':>10}{'after':>10}{'limit':>10}{'best':>10}"]
    for one in found.outcome.verdicts(request, (certificate or {}).get("best", {})):
        best = "" if one.best is None else f"{one.best:.4f}"
        row = f"{one.goal:16}{one.before:10.4f}{one.after:10.4f}{one.limit:10.4f}{best:>10}"
        lines.append(row.rstrip() + ("" if one.met else "  not met"))
    figures = found.figures
    part = figures.bytes_moved / max(1, int(model.bytes.sum()))
    copied = f"{figures.bytes_moved} bytes, {part:.2%} of all, {figures.bytes_over_least:.4f} of the least"
    dirs = f", {figures.log_dir_moves} between log dirs" if figures.log_dir_moves else ""
    lines.append(f"copied   {copied}; {figures.replicas_moved} replicas{dirs}")
    lines.append(f"leaders  {figures.leaders_moved} change; {figures.order_only} lists change in order only")
    if certificate is not None:
        least = certificate["least_bytes"]
        bound = "none is within all tolerances" if least is None else f"at least {least} bytes for all tolerances"
        lines.append(f"bound    {bound}")
    for resource, brokers in unknown_capacities(model).items():
        lines.append(f"unknown  {resource} of {', '.join(map(str, brokers))}")
    return lines


def peer_figures(scenario: Scenario) -> dict[str, list[str]]:
    """What the peers make of it; nothing where it cannot be put to them."""
    if not can_be_put_to_peers(scenario):
        return {}
    found = {}
    for peer in PEERS:
        try:
            peer.install()
            found[peer.name] = plan_of_peer(peer, scenario)
        except (PeerUnavailableError, RebalanceError, OSError) as error:
            found[peer.name] = [f"no plan: {error}"]
    return found


def can_be_put_to_peers(scenario: Scenario) -> bool:
    """Peers know brokers and partitions of one factor, and no more of a request than its mode."""
    hosts, request = scenario.hosts, scenario.request
    about = {"mode", "brokers"} if request.mode in {Mode.EXPAND, Mode.DRAIN} else {"mode"}
    plain = set(request.as_dict()) <= about and request.mode in SCENARIO_OF_MODE
    factors = {len(entry["replicas"]) for entry in hosts.partitions}
    odd = hosts.dead or hosts.log_dirs or any("cordoned" in broker for broker in hosts.brokers)
    return plain and len(factors) == 1 and not odd and all("rack" in broker for broker in hosts.brokers)


def plan_of_peer(peer: Planner, scenario: Scenario) -> list[str]:
    with tempfile.TemporaryDirectory() as directory:
        file, kind = Path(directory) / "cluster.json", SCENARIO_OF_MODE[scenario.request.mode]
        file.write_bytes(scenario.hosts.document(kind))
        measured = measure(peer.command(Task(file, kind, Path(directory), SECONDS_A_PEER)), limit=SECONDS_A_PEER)
        if measured.error:
            raise PeerUnavailableError(measured.error)
        plan = parse_plan((Path(directory) / "plan.json").read_bytes())
    model = scenario.hosts.model()
    given = Choice.given(model, plan).recommended
    # The goals look at the brokers that stay, which the request says and a plan from elsewhere does not.
    outcome = replace(given.outcome, scope=Scope.of(model, scenario.request))
    return figures_of(model, scenario.request, replace(given, outcome=outcome))


if __name__ == "__main__":
    main()
