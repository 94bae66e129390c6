"""The options that say how fast a plan may go; the same for every command that forecasts or executes one."""

from __future__ import annotations

import functools
from dataclasses import fields
from typing import Any

import click

from rebalance_lib.cli.options import Command, with_options
from rebalance_lib.plan.pace import MOVES_IN_CLUSTER, MOVES_OF_A_BROKER, Order, Pace

NO_LIMIT = -1  # Kafka's way to say that none is given
SMALL = ", those under 10 MB counted by their part of that"
OPTION_OF = {"replica_alter_log_dirs_throttle": "log_dir_throttle"}


def pace_options(function: Command) -> Command:
    """Add an option for each field of a pace, and hand the function a `Pace`."""
    options = [
        click.option(
            "--throttle",
            type=int,
            default=NO_LIMIT,
            help="Bytes per second between brokers, on each of them; -1 for no throttle.",
        ),
        click.option(
            "--replica-alter-log-dirs-throttle",
            type=int,
            default=NO_LIMIT,
            help="Bytes per second between the log dirs of a broker; -1 for no throttle.",
        ),
        _limit("--moves-in", f"Replicas coming to a broker at the same time{SMALL}", MOVES_OF_A_BROKER),
        _limit("--moves-out", f"Replicas copied from a broker at the same time{SMALL}", MOVES_OF_A_BROKER),
        _limit("--moves-in-cluster", "Replicas under way in the whole cluster", MOVES_IN_CLUSTER),
        _limit("--bytes-in-flight", "Bytes that the moves under way have altogether", 0),
        click.option(
            "--order",
            type=click.Choice([str(order) for order in Order]),
            default=str(Order.LARGEST_FIRST),
            show_default=True,
            help="Which begin first; partitions at risk come before all others.",
        ),
        click.option(
            "--one-replica-at-a-time", is_flag=True, help="Give a partition its new replicas one after the other."
        ),
    ]
    names = [_option(one.name) for one in fields(Pace)]

    @functools.wraps(function)
    def wrapped(*arguments: Any, **values: Any) -> Any:
        given = {OPTION_OF.get(name, name): values.pop(name) for name in names}
        return function(*arguments, pace=_pace(given), **values)

    return with_options(wrapped, options)


def _limit(name: str, words: str, default: int) -> Command:
    return click.option(
        name, type=click.IntRange(min=0), default=default, show_default=True, help=f"{words}; 0 for no limit."
    )


def _option(field: str) -> str:
    return next((option for option, name in OPTION_OF.items() if name == field), field)


def _pace(given: dict[str, Any]) -> Pace:
    for name in ("throttle", "log_dir_throttle"):
        given[name] = None if given[name] == NO_LIMIT else given[name]
    for name in ("moves_in", "moves_out", "moves_in_cluster", "bytes_in_flight"):
        given[name] = given[name] or None
    return Pace.from_dict(given)
