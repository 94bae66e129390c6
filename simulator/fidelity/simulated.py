"""The simulated stage: the director is one more process of a `simulator.world.World`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rebalance_lib.artifacts import Artifacts
from simulator.cluster import NewPartition
from simulator.configs import MIN_ISR
from simulator.fidelity.director import NotReachedError, play
from simulator.fidelity.end_state import EndState
from simulator.fidelity.scenes import Scene
from simulator.fidelity.stage import DIRECTORY, RUNS, SNAPSHOT, Heard, Status, Task
from simulator.operator import Place
from simulator.processes import Process
from simulator.storage import SimulatedStorage
from simulator.world import BEGIN, World

SESSION_SECONDS = 3.0  # broker.session.timeout.ms of the sandbox
CONTROLLER_SECONDS = 4.0  # until a controller that was killed is active again
PATIENCE_SECONDS = 600.0


class SimulatedStage:
    """A stage in simulated time."""

    patience = PATIENCE_SECONDS

    def __init__(self, world: World, place: Place, director: Process) -> None:
        self.client = place.cluster
        self.clock = place.clock
        self.storage: Artifacts = SimulatedStorage(f"{world.uri}/{DIRECTORY}", world.disk, director)
        self._world = world
        self._process: Process | None = None
        self._heard = Heard()

    def start(self, what: str) -> None:
        """Start a process."""
        world = self._world
        heard = self._heard = Heard()
        task = Task(what, world.job, world.settings, world.schedule.interval)
        directory = RUNS if what == SNAPSHOT else DIRECTORY
        self._process = world.spawn(what, directory, lambda place: task.run(place, heard))

    def kill(self) -> None:
        """Kill the process."""
        if self._process is not None:
            self._process.kill()

    def status(self) -> Status:
        """What is known of it."""
        if self._process is None:
            return Status()
        return self._heard.status(self._process.alive, self._process.error)

    def kill_broker(self, broker: int) -> None:
        """Kill a broker; it is fenced."""
        self._world.cluster.kill_broker(broker)

    def start_broker(self, broker: int) -> None:
        """Start it again."""
        self._world.cluster.start_broker(broker, clean=False)

    def hang_broker(self, broker: int) -> None:
        """Let it hang."""
        self._world.cluster.hang_broker(broker)

    def expire_session(self, broker: int) -> None:
        """Fence it while it hangs, when its session is over."""
        self.clock.sleep(SESSION_SECONDS)
        self._world.cluster.expire_session(broker)

    def resume_broker(self, broker: int) -> None:
        """Let it go on."""
        self._world.cluster.resume_broker(broker)

    def fail_controller(self) -> None:
        """No controller is active for a while."""
        self._world.cluster.fail_controller(CONTROLLER_SECONDS)

    def create_topic(self, topic: str, replicas: Sequence[Sequence[int]], min_isr: int) -> None:
        """Create a topic."""
        partitions = [NewPartition(tuple(one)) for one in replicas]
        self._world.cluster.create_topic(topic, partitions, {MIN_ISR: str(min_isr)})

    def delete_topic(self, topic: str) -> None:
        """Delete a topic."""
        self._world.cluster.delete_topic(topic)

    def tear(self, name: str, part: float) -> bool:
        """Cut a file."""
        path = f"{self._world.uri}/{DIRECTORY}/{name}"
        if path not in self._world.disk.files:
            return False
        self._world.disk.tear(path, part)
        return True


def play_simulated(scene: Scene, say: Callable[[str], None] = lambda _: None, *, traced: bool = False) -> EndState:
    """Play a scene in the simulator; ``traced`` says everything that happens."""
    world = World(scene.schedule, traced=traced)
    world.cluster.metadata.lag.clear()  # brokers of a sandbox keep up
    processes: list[Process] = []

    def direct() -> None:
        def main(place: Place) -> EndState:
            return play(scene, SimulatedStage(world, place, processes[0]), place.say)

        processes.append(world.spawn("director", RUNS, main))

    world.scheduler.at(BEGIN, direct)
    world.scheduler.run(until=BEGIN + 10 * PATIENCE_SECONDS)
    [director] = processes
    world.scheduler.close()
    if world.trace is not None:
        for line in world.trace.lines:
            say(line)
    if director.error is not None:
        raise director.error
    end = director.result
    if not isinstance(end, EndState):
        raise NotReachedError("the simulated run did not end")
    return end
