"""A schedule that is run for what is left in its world, where no invariant judges that."""

import pytest

from simulator import running
from simulator.running import run_schedule
from simulator.world import World


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
