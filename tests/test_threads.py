"""Work beside other work: answers, errors, and who waits for whom."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rebalance_lib.threads import WORTH, beside


@pytest.mark.parametrize("partitions", [WORTH, WORTH + 1])
def test_an_answer_is_there_once_it_is_wanted(partitions):
    assert beside(lambda: 7, partitions).result() == 7


def test_an_error_is_raised_where_the_answer_is_wanted():
    with pytest.raises(ZeroDivisionError):
        beside(lambda: 1 // 0, WORTH + 1).result()


def test_a_process_that_fails_does_not_wait_for_what_is_worked_out_beside():
    program = "import time; from rebalance_lib.threads import WORTH, beside; beside(lambda: time.sleep(60), WORTH + 1)"
    done = subprocess.run([sys.executable, "-c", f"{program}; raise SystemExit(3)"], timeout=30, check=False)
    assert done.returncode == 3
