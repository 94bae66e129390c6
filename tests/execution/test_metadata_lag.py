"""What a broker that lags shows is not taken for what is so."""

from __future__ import annotations

import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import PartitionMetadata, Reassignment
from rebalance_lib.execution import Job
from rebalance_lib.execution.metadata_lag import LAG_SECONDS, MetadataLag
from rebalance_lib.execution.next_moves import Step
from rebalance_lib.execution.plan_status import Status
from rebalance_lib.execution.records.journal import CANCELLED, ENDED, Journal, read_journal
from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition
from tests.execution.running import StoppedClock

TP = TopicPartition("foo", 0)


def live(*replicas):
    return PartitionMetadata(replicas, frozenset(replicas), replicas[0], internal=False)


class Shown:
    """``foo-0`` as brokers show it, to a process that executes its plan from [1, 2]."""

    def __init__(self, artifacts, target):
        job = Job(Plan.from_assignment({TP: target}), Plan.from_assignment({TP: [1, 2]}), "c", artifacts)
        self.clock = StoppedClock()
        self.journal = Journal(artifacts, self.clock)
        self.lag = MetadataLag(job, self.journal, lambda _: 7, self.clock)
        self._artifacts = artifacts

    def begin(self, *replicas, accepted=True, here=(1, 2)):
        step = Step(TP, 1, (3,), 1, replicas=replicas)
        self.lag.begin([step], {TP: live(*here)}, accepted=accepted)

    def debounce(self, status, *replicas, reassignment=None):
        return self.lag.debounce(TP, status, live(*replicas) if replicas else None, reassignment)

    def events(self):
        self.journal.flush()
        return [event["event"] for event in read_journal(self._artifacts)]


@pytest.fixture
def shown(tmp_path):
    """Of a plan to [3, 2]."""
    return Shown(Artifacts.at(tmp_path), [3, 2])


def test_a_move_that_has_just_ended_does_not_begin_again(shown):
    shown.begin(3, 2)
    assert shown.debounce(Status.DONE, 3, 2) is Status.DONE
    shown.clock.advance(LAG_SECONDS - 1)
    assert shown.debounce(Status.PENDING, 1, 2) is Status.DONE  # by a broker that lags
    shown.clock.advance(2)
    assert shown.debounce(Status.PENDING, 1, 2) is Status.PENDING
    assert shown.events().count(ENDED) == 1


def test_a_stage_that_has_just_ended_does_not_begin_again(tmp_path):
    shown = Shown(Artifacts.at(tmp_path), [3, 4])
    shown.begin(3, 2)
    assert shown.debounce(Status.PENDING, 3, 2) is Status.PENDING  # for the next stage
    assert shown.debounce(Status.PENDING, 1, 2) is Status.MOVING
    assert shown.debounce(Status.PENDING, 3, 2) is Status.PENDING


def test_a_stage_that_an_earlier_process_has_just_brought_to_its_end_does_not_begin_again(tmp_path):
    shown = Shown(Artifacts.at(tmp_path), [3, 4, 5])
    shown.begin(4, 3, here=(1, 3))  # brokers showed the end of the first stage to this process
    assert shown.debounce(Status.PENDING, 1, 2) is Status.MOVING, "a broker lags behind both stages"
    assert shown.debounce(Status.PENDING, 4, 3) is Status.PENDING
    assert shown.debounce(Status.PENDING, 1, 2) is Status.MOVING
    assert shown.debounce(Status.PENDING, 1, 3) is Status.MOVING
    shown.clock.advance(LAG_SECONDS + 1)
    assert shown.debounce(Status.PENDING, 1, 2) is Status.PENDING, "somebody else moved it back"
    assert shown.lag.cancelled == []


def test_an_accepted_move_that_rests_where_it_was_is_cancelled_only_after_the_lag(shown):
    shown.begin(3, 2)
    assert shown.debounce(Status.PENDING, 1, 2) is Status.MOVING
    shown.clock.advance(LAG_SECONDS - 1)
    assert shown.debounce(Status.PENDING, 1, 2) is Status.MOVING
    assert shown.lag.cancelled == []
    shown.clock.advance(2)
    assert shown.debounce(Status.PENDING, 1, 2) is Status.PENDING
    assert shown.lag.cancelled == [TP]
    assert CANCELLED in shown.events()


def test_a_request_that_was_lost_can_be_made_again_after_the_lag_and_nobody_cancelled_it(shown):
    shown.begin(3, 2, accepted=False)
    assert shown.debounce(Status.PENDING, 1, 2) is Status.MOVING
    shown.clock.advance(LAG_SECONDS + 1)
    assert shown.debounce(Status.PENDING, 1, 2) is Status.PENDING
    assert shown.lag.cancelled == []


def test_a_move_that_seems_to_rest_and_is_listed_again_was_never_cancelled(shown):
    shown.begin(3, 2)
    shown.debounce(Status.PENDING, 1, 2)
    shown.clock.advance(LAG_SECONDS - 1)
    assert shown.debounce(Status.MOVING, 3, 2, 1, reassignment=Reassignment((3, 2, 1), (3,), (1,))) is Status.MOVING
    shown.clock.advance(2)
    assert shown.debounce(Status.PENDING, 1, 2) is Status.MOVING, "the lag counts from when it is shown again"
    assert shown.lag.cancelled == []


@pytest.mark.parametrize("doubtful", [Status.DRIFTED, Status.RECREATED, Status.MISSING])
def test_what_seems_to_be_elsewhere_recreated_or_gone_counts_only_after_the_lag(shown, doubtful):
    assert shown.debounce(doubtful, 8, 9) is Status.MOVING
    shown.clock.advance(LAG_SECONDS - 1)
    assert shown.debounce(doubtful, 8, 9) is Status.MOVING
    shown.clock.advance(2)
    assert shown.debounce(doubtful, 8, 9) is doubtful


def test_what_the_controller_lists_as_moving_elsewhere_is_drifted_at_once(shown):
    elsewhere = Reassignment((9, 1, 2), (9,), (1, 2))
    assert shown.debounce(Status.DRIFTED, 9, 1, 2, reassignment=elsewhere) is Status.DRIFTED


def test_a_move_that_the_executor_cancels_is_not_one_that_somebody_else_cancelled(shown):
    shown.begin(3, 2)
    shown.lag.cancel(TP, "it did not advance")
    assert shown.debounce(Status.PENDING, 1, 2) is Status.PENDING
    assert shown.lag.cancelled == []
