"""The play: the same function for both stages; see the package for the moments.

A run that was killed is started again at once. One that fails is tried three times, as a person does; one that fails
after somebody cancelled it is cleaned up by ``cancel``. In the end the next snapshot restores what was left.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rebalance_lib.cluster import Entries
from rebalance_lib.cluster.requests import SILENT_SECONDS
from rebalance_lib.errors import ClusterError, RebalanceError
from rebalance_lib.execution.throttles.config import ALL_RATES, RATES, REPLICA_LISTS
from rebalance_lib.topology import TopicPartition
from simulator import operator
from simulator.configs import MIN_ISR
from simulator.fidelity.end_state import EndState, reason
from simulator.fidelity.scenes import AFTER, BEFORE, BROKERS, MOVING, PAUSED, Scene, Strike
from simulator.fidelity.stage import CANCEL, RUN, SNAPSHOT, Stage, Status

TRIES = 3
POLL_SECONDS = 0.1
RETRY_SECONDS = 0.5
SHORT_HANG_SECONDS = 1.0  # the session of a broker is three seconds
FAST = 100_000_000  # bytes/s: no limit for some hundred kilobytes
SETTLED_READS = 3  # what so many reads in a row show is so


class NotReachedError(Exception):
    """A moment, or the end, did not come in time."""


class Director:
    """Plays one scene on one stage."""

    def __init__(self, scene: Scene, stage: Stage, say: Callable[[str], None] = lambda _: None) -> None:
        self._scene = scene
        self._stage = stage
        self._say = say
        self._client = stage.client
        self._planned = {one.topic_partition for one in scene.schedule.plan}
        self._topics = [topic.name for topic in scene.schedule.shape.topics]
        self._late: list[int] = []
        self._errors: list[str] = []
        self._asked_to_cancel = False
        self._what = RUN
        self._over = False
        self._moving: dict[str, str] = {}
        self._struck: dict[str, str] = {}

    def play(self) -> EndState:
        """Play the scene to its end, and read the end."""
        self._strike_all(BEFORE)
        self._say("the run begins")
        self._stage.start(RUN)
        self._until_held()
        self._say("the first moves are held")
        if not self._over:
            self._moving = {str(tp): "under way" for tp in self._client.reassignments() if tp in self._planned}
        self._strike_all(MOVING)
        if self._scene.at(PAUSED) and not self._over:
            self._ask("pause")
            self._checks(2)
            self._ask("throttle", FAST)
            self._wait("the first moves end", lambda: self._over or not self._own_moves())
            self._checks(2)
            self._strike_all(PAUSED)
            self._ask("resume")
        elif not self._over:
            self._ask("throttle", FAST)
        self._wait("the run is over", lambda: self._over)
        run = self._stage.status()
        self._say(f"the run is over: {run}")
        self._strike_all(AFTER)
        self._stage.start(SNAPSHOT)
        self._wait("the snapshot is over", lambda: not self._stage.status().alive)
        self._say("the next snapshot is over")
        stale = self._stage.status()
        end = self._read_settled(run, stale)
        for broker in self._late:
            self._stage.start_broker(broker)
        return end

    # The run and its process

    def _supervise(self) -> None:
        """Notice that the process has ended, and start it again where a person would."""
        status = self._stage.status()
        if status.alive or self._over:
            return
        if not status.error:
            self._over = True
            return
        self._say(f"{self._what} failed: {status.error}")
        self._errors.append(status.error)
        if self._what == RUN and self._asked_to_cancel:
            self._what, self._errors = CANCEL, []
        elif len(self._errors) >= TRIES:
            self._over = True
            return
        self._stage.clock.sleep(RETRY_SECONDS)
        self._stage.start(self._what)

    def _wait(self, what: str, condition: Callable[[], bool]) -> None:
        clock = self._stage.clock
        deadline = clock.monotonic() + self._stage.patience
        while True:
            self._supervise()
            with suppress(ClusterError):  # of a broker, or a controller, that is just gone
                if condition():
                    return
            if clock.monotonic() > deadline:
                raise NotReachedError(f"after {self._stage.patience:.0f} s, not yet: {what}; {self._stage.status()}")
            clock.sleep(POLL_SECONDS)

    def _checks(self, count: int) -> None:
        """Wait until the executor has made so many checks from now on."""
        if self._over:
            return
        begun = self._stage.status()
        target = begun.reports + count

        def made() -> bool:
            now = self._stage.status()
            return self._over or now.reports >= target or (now.reports < begun.reports and now.reports >= count)

        self._wait(f"{count} checks of the executor", made)

    def _until_held(self) -> None:
        """Wait until what may begin has begun: two checks in a row show the same moves under way."""
        self._checks(1)
        for _ in range(20):
            before = self._own_moves()
            self._checks(1)
            if self._over or before == self._own_moves():
                return

    def _own_moves(self) -> set[TopicPartition]:
        return {tp for tp in self._client.reassignments() if tp in self._planned}

    def _ask(self, kind: str, value: object = None) -> None:
        operator.ask(self._stage.storage, self._stage.clock, kind, value)

    # The strikes

    def _strike_all(self, moment: str) -> None:
        for strike in self._scene.at(moment):
            if self._over and moment in (MOVING, PAUSED):
                return
            self._say(f"strikes: {strike}")
            self._strike(strike)
            self._struck[strike.kind] = moment
            if moment in (MOVING, PAUSED):
                self._checks(2)

    def _strike(self, strike: Strike) -> None:
        getattr(self, f"_{strike.kind}")(strike.moment, **strike.args)

    def _broker_dies(self, _: str, broker: int, returns: str) -> None:
        self._stage.kill_broker(broker)
        self._until_alive(set(BROKERS) - {broker})
        if returns == "late":
            self._late.append(broker)
            return
        self._checks(2)
        self._stage.start_broker(broker)
        self._until_alive(set(BROKERS))
        self._until_in_sync()
        self._until_asked_again()

    def _broker_hangs(self, _: str, broker: int, fenced: bool) -> None:
        self._stage.hang_broker(broker)
        if fenced:
            self._stage.expire_session(broker)
            self._until_alive(set(BROKERS) - {broker})
        else:
            self._stage.clock.sleep(SHORT_HANG_SECONDS)
        self._stage.resume_broker(broker)
        self._until_alive(set(BROKERS))
        self._until_in_sync()
        if fenced:
            self._until_asked_again()

    def _until_asked_again(self) -> None:
        """Wait as long as the executor asks nothing of a broker that did not answer.

        Whether it missed an answer is chance: a real broker is down for seconds before it is fenced, a simulated one is
        fenced when it dies.
        """
        self._stage.clock.sleep(SILENT_SECONDS)

    def _until_alive(self, brokers: set[int]) -> None:
        self._wait(f"brokers {sorted(brokers)} are alive", lambda: self._client.alive_brokers().keys() == brokers)

    def _until_in_sync(self) -> None:
        """Wait until every replica that is not on its way is in sync again."""

        def in_sync() -> bool:
            moving = self._client.reassignments()
            return all(
                state.in_sync >= set(state.replicas) - set(moving[tp].adding if tp in moving else ())
                for tp, state in self._client.partitions(self._topics).items()
            )

        self._wait("all replicas are in sync", in_sync)

    def _controller_dies(self, _: str) -> None:
        self._stage.fail_controller()
        self._wait("a controller is active", lambda: self._client.reassignments() is not None)
        self._until_alive(set(BROKERS))

    def _process_killed(self, _: str) -> None:
        self._stage.kill()
        self._stage.start(self._what)

    def _file_torn(self, moment: str, name: str, how: str) -> None:
        if moment != AFTER:
            self._stage.kill()
        self._stage.tear(name, 0.6 if how == "cut" else 0.0)
        if moment != AFTER:
            self._stage.start(self._what)

    def _topic_deleted(self, _: str, topic: str) -> None:
        self._stage.delete_topic(topic)
        self._wait(f"{topic} is gone", lambda: not self._client.partitions([topic]))

    def _topic_recreated(self, moment: str, topic: str, same: bool) -> None:
        self._topic_deleted(moment, topic)
        shape = self._scene.schedule.shape.topic(topic)
        replicas = [one.replicas if same else tuple(reversed(one.replicas)) for one in shape.partitions]
        self._stage.create_topic(topic, replicas, shape.min_isr)
        self._wait(f"{topic} is there", lambda: len(self._client.partitions([topic])) == len(replicas))

    def _partitions_added(self, _: str, topic: str) -> None:
        live = self._client.partitions([topic])
        if live:
            self._client.create_partitions(topic, len(live) + 1, [sorted(live[TopicPartition(topic, 0)].replicas)])

    def _min_isr_changed(self, _: str, topic: str, min_isr: int) -> None:
        with suppress(ClusterError):  # refused: it is gone
            self._client.alter_topic_config(topic, {MIN_ISR: str(min_isr)})

    def _foreign_reassignment(self, _: str, topic: str, partition: int, replicas: list[int]) -> None:
        with suppress(ClusterError):  # refused: its topic is gone
            self._client.reassign({TopicPartition(topic, partition): replicas})

    def _foreign_cancel(self, _: str, topic: str, partition: int) -> None:
        wanted, moving = TopicPartition(topic, partition), sorted(self._own_moves())
        if moving:
            tp = wanted if wanted in moving else moving[0]
            self._client.reassign({tp: None})
            self._say(f"{tp} was cancelled, it is on {self._client.partitions([tp.topic])[tp].replicas}")

    def _foreign_verify(self, _: str, topics: list[str]) -> None:
        existing = {tp.topic for tp in self._client.partitions(topics)}
        self._client.alter_topic_configs({topic: dict.fromkeys(REPLICA_LISTS) for topic in sorted(existing)})
        self._client.alter_broker_configs({broker: dict.fromkeys(RATES) for broker in self._client.alive_brokers()})

    def _foreign_throttle_set(self, _: str, broker: int = 0, rate: int = 0, topic: str = "", entry: str = "") -> None:
        with suppress(ClusterError):  # refused: the list is *, or the topic is gone
            if topic:
                self._client.alter_topic_config(topic, dict.fromkeys(REPLICA_LISTS, Entries((entry,))))
            else:
                self._client.alter_broker_config(broker, dict.fromkeys(RATES, str(rate)))

    def _foreign_throttle_deleted(self, _: str, broker: int = 0, topic: str = "") -> None:
        with suppress(ClusterError):
            if topic:
                self._client.alter_topic_config(topic, dict.fromkeys(REPLICA_LISTS))
            else:
                self._client.alter_broker_config(broker, dict.fromkeys(RATES))

    def _request_cancel(self, _: str) -> None:
        self._asked_to_cancel = True
        self._ask("cancel")

    def _request_pause(self, moment: str) -> None:
        self._ask("pause")
        self._checks(2)
        if moment != PAUSED:
            self._ask("resume")

    def _request_throttle(self, _: str, rate: int) -> None:
        self._ask("throttle", rate)

    def _request_caps(self, _: str, cap: str, value: int) -> None:
        self._ask(cap, value)

    def _request_exclude_topics(self, _: str, topic: str) -> None:
        self._ask("exclude_topics", [topic])

    # The end

    def _read_settled(self, run: Status, stale: Status) -> EndState:
        """Read the end until it does not change any more."""
        found: list[EndState] = []

        def settled() -> bool:
            found.append(self._read(run, stale))
            last = found[-SETTLED_READS:]
            if last[0].reassignments and len(found) < 10 * SETTLED_READS:
                return False
            return len(last) == SETTLED_READS and all(one == last[0] for one in last)

        self._stage.clock.sleep(RETRY_SECONDS)
        self._wait("the end does not change any more", settled)
        return found[-1]

    def _read(self, run: Status, stale: Status) -> EndState:
        live = self._client.partitions(self._topics)
        partitions: dict[str, str] = {}
        for tp, state in live.items():
            missing = sorted(set(state.replicas) - state.in_sync)
            partitions[str(tp)] = f"{list(state.replicas)}" + (f", not in sync on {missing}" if missing else "")
        lists = {
            f"{topic} {key}": ",".join(sorted(value.value.split(",")))
            for topic, values in self._client.topic_configs({tp.topic for tp in live}, REPLICA_LISTS).items()
            for key, value in values.items()
        }
        rates = {
            f"broker {broker} {key}": value.value
            for broker, values in self._client.broker_configs(self._client.alive_brokers(), ALL_RATES).items()
            for key, value in values.items()
            if value.dynamic
        }
        moving = {str(tp): str(list(one.target)) for tp, one in self._client.reassignments().items()}
        return EndState(
            struck=self._struck,
            moving=self._moving,
            partitions=partitions,
            reassignments=moving,
            lists=lists,
            rates=rates,
            run=self._outcome(run),
            set_aside={str(tp): reason(text) for tp, text in run.set_aside.items()},
            left=_left("run", run) | _left("snapshot", stale),
        )

    def _outcome(self, run: Status) -> dict[str, str]:
        if run.error:
            return {"failed": reason(run.error)}
        if self._what == CANCEL:
            return {"ended": "cancelled by the cancel command"}
        return {"ended": run.state, "completed": str(run.completed)}


def _left(when: str, status: Status) -> dict[str, str]:
    return {f"{when} {where}": reason(text) for where, text in status.left.items()}


def play(scene: Scene, stage: Stage, say: Callable[[str], Any] = lambda _: None) -> EndState:
    """Play a scene on a stage.

    Raises:
        NotReachedError: A moment, or the end, did not come in time.
        RebalanceError: The cluster did not answer the director.
    """
    try:
        return Director(scene, stage, say).play()
    except RebalanceError as error:
        raise NotReachedError(f"{type(error).__name__}: {error}") from error
