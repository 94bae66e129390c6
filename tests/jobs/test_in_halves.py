"""Where Spark gives up, the piece at fault fails alone, and what fails for all is not tried for each."""

from __future__ import annotations

from rebalance_lib.jobs.isolation import DEATH, in_halves


def test_one_piece_at_fault_costs_few_rounds_and_no_other_piece():
    rounds = []

    def work(some):
        rounds.append(some)
        if 37 in some:
            raise RuntimeError("Job aborted due to stage failure: Python worker exited unexpectedly (crashed)")
        return some

    answers, reasons = in_halves(work, range(100))
    assert sorted(one for some in answers for one in some) == [n for n in range(100) if n != 37]
    assert {n: reason for n, reason in enumerate(reasons) if reason} == {37: DEATH}
    assert len(rounds) < 16


def test_what_fails_for_every_piece_is_not_tried_for_each():
    rounds = []

    def work(some):
        rounds.append(some)
        raise RuntimeError("\n  ModuleNotFoundError: No module named 'pyarrow'\n at line 1")

    assert in_halves(work, range(300)) == (
        [],
        ["Spark failed: ModuleNotFoundError: No module named 'pyarrow'"] * 300,
    )
    assert len(rounds) < 16


def test_without_pieces_there_is_no_work():
    assert in_halves(len, []) == ([], [])
