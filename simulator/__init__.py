"""The real executor against a simulated Kafka cluster, under seeded faults: the same seed gives the same run.

- `processes`: simulated time, and the processes that run in it
- `clock`, `storage`: the clock of a process, and the directory of a run on a disk that all processes share
- `cluster`: the truth: controller, brokers, log dirs, replicas, configurations
- `client`: what a process sees of the cluster, with latency, metadata lag and lost answers
"""
