"""What loads read of the history: the columns, partitions and days that they need, and nothing else."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.history import HISTORY, Share, append_sample, compact_day, day_file, files_between, read_loads
from rebalance_lib.topology import TopicPartition
from tests.history.samples import Row, moment, sample, window, write
from tests.history.watched import telling, watched

DAY = 24 * 3600
NEEDED = {"taken_at", "topic", "partition", "leader", "size_bytes", "start_offset", "end_offset", "committed"}
FOOTER = 64 * 1024  # what is read at once from the end of a file
GAPS = 1_000  # bytes of tiny columns between others, which are read with them in one go


@pytest.fixture
def history(tmp_path):
    return Artifacts.at(tmp_path / "history")


def test_of_a_day_file_the_needed_columns_of_the_needed_row_groups_are_read(history, monkeypatch):
    monkeypatch.setattr(day_file, "ROWS_OF_A_GROUP", 1_000)
    chance = random.Random(1)
    rows = [
        Row(topic, partition, 1, True, chance.randrange(2**50), 0, chance.randrange(2**50))
        for topic in ("a", "b", "c", "d")
        for partition in range(1000)
    ]
    log_dirs = pa.array([f"/{chance.randrange(2**200):x}" for _ in rows])  # too long to be read for want of a gap
    for at in (0, 100):
        table = sample(rows, at)
        table = table.set_column(HISTORY.names.index("log_dir"), HISTORY.field("log_dir"), log_dirs)
        append_sample(history, "c", table, moment(at))
    compact_day(history, "cluster=c/day=2026-01-01")
    files = tuple(files_between(history, "c", *window(DAY)))
    size = (history.path / files[0].name).stat().st_size
    read = set()
    with telling(read=lambda path, begin, length: read.update(range(begin, begin + length))):
        share = Share("c", files, TopicPartition("b", 0), TopicPartition("c", 0))
        assert read_loads(watched(history), share).num_rows == 1000
    read -= set(range(size - FOOTER, size))
    wanted, unwanted = chunks(history, files[0].name)
    assert wanted <= read
    assert len(read - wanted) < GAPS
    assert len(unwanted - read) > size / 2


def chunks(history, name):
    """The bytes of the needed columns of topic b, and those of all other columns and topics."""
    wanted, unwanted = set(), set()
    with history.open_parquet(name) as parquet:
        groups = [parquet.metadata.row_group(n) for n in range(parquet.num_row_groups)]
    for group in groups:
        for chunk in map(group.column, range(group.num_columns)):
            begin = chunk.dictionary_page_offset or chunk.data_page_offset
            needed = chunk.path_in_schema.split(".")[0] in NEEDED and group.column(1).statistics.min == "b"
            (wanted if needed else unwanted).update(range(begin, begin + chunk.total_compressed_size))
    return wanted, unwanted


def test_a_day_outside_the_window_is_not_opened(history):
    rows = [Row("t", 0, 1, True, 1, 0, 1)]
    write(history, "c", {day * DAY + at: rows for day in range(3) for at in (0, 3600)})
    for day in range(1, 4):
        compact_day(history, f"cluster=c/day=2026-01-0{day}")
    opened = set()

    def note(operation, path):
        if operation == "open rb":
            opened.add(path.split("/")[-2])

    with telling(note):
        files = files_between(watched(history), "c", *window(DAY + 7200, start=DAY))
        assert read_loads(watched(history), Share("c", tuple(files))).num_rows == 1
    assert opened == {"day=2026-01-02"}
