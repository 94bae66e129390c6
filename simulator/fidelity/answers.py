"""Single requests, and whether the simulator answers them as Kafka does: what is refused, and by which error.

Each is made of both sides, in the same order, on a topic with two partitions. What is compared is the answer, or the
name of Kafka's error, and the settings of the topic after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

from rebalance_lib.cluster import Entries, Replica
from rebalance_lib.errors import ClusterError
from rebalance_lib.topology import TopicPartition
from simulator.client import SimulatedClient
from simulator.cluster import NewPartition, SimulatedCluster
from simulator.configs import FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, MIN_ISR
from simulator.fidelity.scenes import BROKERS, DISK
from simulator.processes import Scheduler

if TYPE_CHECKING:
    from simulator.fidelity.real import RealCluster

TOPIC, UNKNOWN = "answers", "nobody-made-this"
REPLICAS = ((1, 2), (2, 3))
KEYS = (LEADER_REPLICAS, FOLLOWER_REPLICAS, MIN_ISR)
SEEN_SECONDS = 0.5

Ask = Callable[[Any], Any]


def _config(change: Any, key: str = LEADER_REPLICAS, topic: str = TOPIC) -> Ask:
    return lambda client: client.alter_topic_config(topic, {key: change})


def _rate(value: str | None) -> Ask:
    return lambda client: client.alter_broker_config(1, {LEADER_RATE: value})


def _reassign(replicas: list[int] | None, topic: str = TOPIC, partition: int = 0) -> Ask:
    return lambda client: client.reassign({TopicPartition(topic, partition): replicas})


def _log_dir(topic: str, broker: int, which: int | None) -> Ask:
    def ask(client: Any) -> Any:
        path = "/nowhere" if which is None else client.log_dirs(broker)[which].path
        return client.alter_replica_log_dirs({Replica(topic, 0, broker): path})

    return ask


def _elect(topic: str) -> Ask:
    return lambda client: client.elect_preferred_leaders([TopicPartition(topic, 0)])


REQUESTS: dict[str, Ask] = {
    "set a list to *": _config("*"),
    "append to *": _config(Entries(("0:1",))),
    "subtract from *": _config(Entries(("0:1",), out=True)),
    "append * to *": _config(Entries(("*",))),
    "set a list": _config("0:1"),
    "append * to a list": _config(Entries(("*",))),
    "append what is there": _config(Entries(("0:1", "1:2", "1:2"))),
    "subtract what is not there": _config(Entries(("5:5",), out=True)),
    "subtract all": _config(Entries(("0:1", "1:2"), out=True)),
    "delete a list that is empty": _config(None),
    "delete a list that is not set": _config(None),
    "subtract from a list that is not set": _config(Entries(("0:1",), out=True), FOLLOWER_REPLICAS),
    "append to a list that is not set": _config(Entries(("0:1",)), FOLLOWER_REPLICAS),
    "set a list that is none": _config("0:1,*"),
    "set a list to nothing": _config(""),
    "change one list of two wrongly": lambda client: client.alter_topic_config(
        TOPIC, {FOLLOWER_REPLICAS: None, LEADER_REPLICAS: "x"}
    ),
    "set min ISR above the replication factor": _config("3", MIN_ISR),
    "set a list of an unknown topic": _config("*", topic=UNKNOWN),
    "delete a rate that is not set": _rate(None),
    "set a rate that is no number": _rate("fast"),
    "set a negative rate": _rate("-1"),
    "set a rate": _rate("1000"),
    "delete a rate": _rate(None),
    "cancel what is not under way": _reassign(None),
    "cancel a move of an unknown topic": _reassign(None, UNKNOWN),
    "cancel a move of an unknown partition": _reassign(None, partition=7),
    "reassign an unknown topic": _reassign([1, 2], UNKNOWN),
    "reassign an unknown partition": _reassign([1, 2], partition=7),
    "reassign to a broker that is not registered": _reassign([1, 99]),
    "reassign to one broker twice": _reassign([1, 1]),
    "reassign to where it is": _reassign([1, 2]),
    "reassign one of two wrongly": lambda client: client.reassign(
        {TopicPartition(TOPIC, 0): [1, 99], TopicPartition(TOPIC, 1): [3, 2]}
    ),
    "log dir of a replica that is not there yet": _log_dir(TOPIC, 4, 1),
    "log dir of a replica of an unknown topic": _log_dir(UNKNOWN, 4, 1),
    "log dir that is not there": _log_dir(TOPIC, 1, None),
    "log dir that is not there, of a replica that is not there yet": _log_dir(TOPIC, 4, None),
    "reassign to the broker of the log dir": _reassign([1, 4]),
    "elect the preferred leader where it leads": _elect(TOPIC),
    "elect a leader of an unknown topic": _elect(UNKNOWN),
    "add no partition": lambda client: client.create_partitions(TOPIC, 2, [[1]]),
    "add partitions to an unknown topic": lambda client: client.create_partitions(UNKNOWN, 2, [[1]]),
}


def answers(client: Any) -> dict[str, str]:
    """What a cluster with the topic answers to each request, and how the topic is after it."""
    found = {}
    for name, ask in REQUESTS.items():
        try:
            answer = f"answers {ask(client)}"
        except ClusterError as error:
            names = re.findall(r"\b\w+Error\b", str(error))
            answer = f"refuses: {names[0] if names else error}"
        client.clock.sleep(SEEN_SECONDS)
        settings = {key: value.value for key, value in client.topic_config(TOPIC, KEYS).items()}
        replicas = [list(one.replicas) for _, one in sorted(client.partitions([TOPIC]).items())]
        found[name] = f"{answer}; then {settings}, {replicas}"
    return found


def simulated_answers() -> dict[str, str]:
    """What the simulated cluster answers."""
    scheduler, cluster = Scheduler(), SimulatedCluster()
    scheduler.on_advance.append(cluster.advance)
    for broker in BROKERS:
        cluster.add_broker(broker, log_dirs={"/d0": DISK, "/d1": DISK})
    cluster.create_topic(TOPIC, [NewPartition(one) for one in REPLICAS])
    process = scheduler.spawn("answers", lambda: answers(SimulatedClient(cluster, process, Random(1))))
    scheduler.run(until=3600.0)
    scheduler.close()
    if process.error is not None:
        raise process.error
    return dict(process.result)


def real_answers(cluster: RealCluster) -> dict[str, str]:
    """What Kafka answers."""
    cluster.create_topic(TOPIC, REPLICAS, 1)
    cluster.wait("the topic is there", lambda: len(cluster.client.partitions([TOPIC])) == len(REPLICAS))
    try:
        return answers(cluster.client)
    finally:
        cluster.delete_topics([TOPIC])


def differing_answers(cluster: RealCluster) -> list[str]:
    """The requests that are not answered alike, with both answers."""
    simulated, real = simulated_answers(), real_answers(cluster)
    return [
        f"{name}: simulated {simulated[name]}; real {real[name]}" for name in REQUESTS if simulated[name] != real[name]
    ]
