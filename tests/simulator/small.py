"""A small schedule to begin from, and a world in which a test makes requests itself."""

from dataclasses import replace

from rebalance_lib.topology import TopicPartition
from simulator.cluster import Request
from simulator.invariants import Invariants
from simulator.schedule import Schedule
from simulator.shape import BrokerShape, PartitionShape, Planned, Shape, TopicShape
from simulator.supervisor import Run
from simulator.world import World

MB = 1_000_000
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
SMALL = Schedule(
    seed=1,
    shape=Shape(
        tuple(BrokerShape(broker, f"rack{broker % 2}", (1000 * MB,)) for broker in range(1, 7)),
        (TopicShape("t", 2, tuple(PartitionShape((1, 2, 3), 100 * MB, 0) for _ in range(2))),),
    ),
    plan=(Planned("t", 0, (4, 5, 6)), Planned("t", 1, (1, 2, 4))),
    settings={"throttle": 10 * MB, "give_up_after": 60},
    interval=5.0,
)


class Bench:
    """A world without an executor: the test makes the requests of one, and the invariants judge them."""

    def __init__(self, schedule: Schedule = SMALL, **settings: object) -> None:
        schedule = replace(schedule, settings={**schedule.settings, **settings})
        self.world = World(schedule)
        self.invariants = Invariants(self.world)
        self.cluster = self.world.cluster
        self.world.scheduler.on_event.append(self.invariants.on_event)
        self.world.supervisor.runs.append(Run("run", self.world.job, "runs/plan.state", ["run"]))
        self.wait(20.0)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        scheduler = self.world.scheduler
        scheduler.at(scheduler.now + seconds, lambda: None)
        scheduler.run(until=scheduler.now + seconds)

    def request(self, name: str, changes: dict, *, answered: bool = True, process: str = "run#1") -> None:
        """Make a request that is applied."""
        cluster = self.cluster

        def apply() -> None:
            request = Request(self.world.scheduler.now, process, name, changes)
            cluster.requests.append(request)
            if name == "reassign":
                request.refused = dict(cluster.alter_reassignments(changes))
            elif name == "alter_topic_configs":
                for topic, values in changes.items():
                    cluster.alter_topic_config(topic, values)
            elif name == "elect_preferred_leaders":
                for tp in changes:
                    cluster.elect_preferred_leader(tp)
            else:
                for broker, values in changes.items():
                    cluster.alter_broker_config(broker, values)
            request.applied, request.answered = True, answered

        self.world.scheduler.at(self.world.scheduler.now, apply)
        self.world.scheduler.run(until=self.world.scheduler.now)

    def throttle(self) -> None:
        """Set the throttle of the whole plan."""
        lists = {
            f"{side}.replication.throttled.replicas": ",".join(
                f"{partition}:{broker}" for partition in (0, 1) for broker in range(1, 7)
            )
            for side in ("leader", "follower")
        }
        rates = {f"{side}.replication.throttled.rate": str(10 * MB) for side in ("leader", "follower")}
        self.request("alter_topic_configs", {"t": lists})
        self.request("alter_broker_configs", dict.fromkeys(range(1, 7), rates))

    @property
    def violated(self) -> list[str]:
        """The names of the invariants that did not hold."""
        return [violation.name for violation in self.invariants.violations]
