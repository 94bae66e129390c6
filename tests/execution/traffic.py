"""Producers with ``acks=all`` and a consumer that run while partitions move, and what they saw."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from itertools import pairwise
from typing import Self

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

MARK = b"numbered record "  # what was in the topic before is random


class Traffic:
    """Writes numbered records to every partition of a topic, and reads them, until it is closed.

    ``acknowledged`` has, by partition, the numbers that the cluster acknowledged; ``read`` the numbers that the
    consumer got, by offset. A batch whose acknowledgement was lost is sent again, and may be there twice.
    """

    def __init__(self, servers: str, topic: str, partitions: int, *, rate: int = 10, size: int = 200) -> None:
        self._servers, self._topic, self._partitions = servers.split(","), topic, partitions
        self._pause, self._padding = 1 / rate, b"." * size
        self.acknowledged: dict[int, list[int]] = defaultdict(list)
        self.read: dict[int, dict[int, int]] = defaultdict(dict)
        self._stop = threading.Event()
        self._written = threading.Event()
        self._threads = [threading.Thread(target=self._write), threading.Thread(target=self._read)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def check(self) -> None:
        """Every acknowledged record was read, and in order."""
        assert sum(map(len, self.acknowledged.values())) > 0
        for partition in range(self._partitions):
            read = list(dict.fromkeys(number for _, number in sorted(self.read[partition].items())))
            wrong = [pair for pair in pairwise(read) if pair[0] > pair[1]]
            assert not wrong, f"partition {partition} is out of order: {wrong[:10]}"
            lost = set(self.acknowledged[partition]) - set(read)
            assert not lost, f"partition {partition} lost {sorted(lost)[:10]}"

    def _write(self) -> None:
        producer = KafkaProducer(
            bootstrap_servers=self._servers,
            acks="all",
            max_in_flight_requests_per_connection=1,
            delivery_timeout_ms=120_000,
        )
        number = 0
        try:
            while not self._stop.is_set():
                for partition in range(self._partitions):
                    record = MARK + b"%d:" % number + self._padding
                    sent = producer.send(self._topic, record, partition=partition)
                    sent.add_callback(self._note, partition, number)
                number += 1
                time.sleep(self._pause)
            producer.flush(timeout=180)
        finally:
            producer.close(timeout=10)
            self._written.set()

    def _note(self, partition: int, number: int, _: object) -> None:
        self.acknowledged[partition].append(number)

    def _read(self) -> None:
        consumer = KafkaConsumer(bootstrap_servers=self._servers, auto_offset_reset="earliest", group_id=None)
        consumer.assign([TopicPartition(self._topic, number) for number in range(self._partitions)])
        deadline = None
        while deadline is None or time.monotonic() < deadline:
            try:
                polled = consumer.poll(timeout_ms=500)
            except KafkaError:
                continue
            for records in polled.values():
                for record in records:
                    if record.value.startswith(MARK):
                        number = record.value.removeprefix(MARK).partition(b":")[0]
                        self.read[record.partition][record.offset] = int(number)
            if self._written.is_set():
                missing = any(set(self.acknowledged[p]) - set(self.read[p].values()) for p in range(self._partitions))
                if not missing:
                    break
                deadline = deadline or time.monotonic() + 180
        consumer.close()
