"""Fidelity: the same schedules in the simulator and on a real Kafka cluster, which must end in the same state.

Goal: what the simulator shows about the executor is worth as much as the simulator is like Kafka. So schedules are
played on both, with the same faults, and whatever differs in the end is a fault of the simulator, or of its rules.

Time differs: a broker that is killed is fenced seconds later, a JVM takes seconds to start. So faults do not strike at
a second but at a *moment* that both sides reach and stay at, until the fault has struck and was seen:

    before   topics and throttles are there, the run has not begun
    moving   the first moves are under way, and held there by a throttle so low that none of them ends
    paused   the first moves have ended, and a person has paused the run, so that the next ones wait
    after    the run is over, the next snapshot has not restored what it left

At each moment the strikes of that moment come one after the other. Each is followed by two checks of the executor; then
the throttle is lifted, or the run resumed, and it goes on to its end.

Algorithm (`play`). One function is the director of both: it makes requests through a client (`rebalance_lib.cluster` or
`simulator.client`, which have the same methods), sleeps by a clock, and asks a `Stage` for what only the world outside
can do: start and kill the process of the run, kill and start brokers, create topics, damage files. In the simulator the
director is a simulated process; on the cluster it is the process that holds the sandbox.

- `scenes`: what is played, drawn from a seed
- `stage`: what a stage can do; `simulated` and `real` are the two
- `director`: the play itself
- `end_state`: what is compared, and how
- `answers`: single requests, and whether both sides answer them alike
"""
