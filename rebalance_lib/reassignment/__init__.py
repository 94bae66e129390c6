"""What Kafka's controller does with a reassignment, step by step and without a cluster.

``kraft.KRAFT`` are the rules of Kafka 4.3, held against a real controller's log; ``zookeeper.KIP_455`` and
``zookeeper.BEFORE_KIP_455`` those of older ones. ``Controller`` drives partitions through them, ``phases``
and ``describe`` show a run. ``simulate`` adds sizes, throttles and caps: the forecast of a plan.
"""

from rebalance_lib.reassignment.conditions import Conditions
from rebalance_lib.reassignment.controller import Controller, DeleteTopic, Transition
from rebalance_lib.reassignment.describe import phase_lines, timeline
from rebalance_lib.reassignment.events import SkipReason
from rebalance_lib.reassignment.forecast import Forecast
from rebalance_lib.reassignment.kraft import KRAFT
from rebalance_lib.reassignment.phases import OldStep, Phase, PhaseStep, phases, twelve_steps
from rebalance_lib.reassignment.rules import Outcome, Rules
from rebalance_lib.reassignment.simulation import simulate
from rebalance_lib.reassignment.state import Assignment, Brokers, PartitionState, TopicSettings
from rebalance_lib.reassignment.zookeeper import BEFORE_KIP_455, KIP_455

__all__ = [
    "BEFORE_KIP_455",
    "KIP_455",
    "KRAFT",
    "Assignment",
    "Brokers",
    "Conditions",
    "Controller",
    "DeleteTopic",
    "Forecast",
    "OldStep",
    "Outcome",
    "PartitionState",
    "Phase",
    "PhaseStep",
    "Rules",
    "SkipReason",
    "TopicSettings",
    "Transition",
    "phase_lines",
    "phases",
    "simulate",
    "timeline",
    "twelve_steps",
]
