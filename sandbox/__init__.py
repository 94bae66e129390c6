"""A real Apache Kafka cluster on loopback, for trying things out and for tests.

    from sandbox import Sandbox

    with Sandbox(brokers=3, racks=3) as kafka:
        kafka.add_brokers(1)
        kafka.kill(1)
        print(kafka.bootstrap_servers)

Brokers and controllers are the ordinary JVM processes of Kafka, in KRaft mode, started from the jars that Maven
resolves through the ``pom.xml`` beside this file. Nothing is left behind when the block ends, on Ctrl-C, or when the
Python process itself is killed.
"""

from sandbox.cluster import Sandbox, SandboxError

__all__ = ["Sandbox", "SandboxError"]
