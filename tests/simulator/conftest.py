"""A schedule that is run for what is left in its world, where no invariant judges that."""

import gc

import pytest

from simulator import running
from simulator.running import run_schedule
from simulator.world import World


@pytest.fixture(scope="module", autouse=True)
def _no_process_is_left():
    """One that is collected within ``ast.parse`` of a later test makes Python 3.11 raise SystemError."""
    yield
    gc.collect()


@pytest.fixture
def play(monkeypatch):
    """Runs a schedule without a violation, and gives back its world."""

    def run(schedule):
        worlds = []
        monkeypatch.setattr(
            running, "World", lambda *args, **options: worlds.append(World(*args, **options)) or worlds[-1]
        )
        assert run_schedule(schedule).violations == []
        return worlds[0]

    return run
