"""What partitions are written and read, as a table with one declared schema.

Each row is a partition with at least one known rate: ``write_rate`` is what producers write to its leader,
``read_rate`` what consumers read from its leader, in bytes per second. Null means that the rate is not known.

Example: ``orders 0`` with 1,000 bytes written each second, and nothing known of its consumers, is the row
``orders 0 1000.0 null``.
"""

from __future__ import annotations

import pyarrow as pa

LOADS = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("write_rate", pa.float64()),
        pa.field("read_rate", pa.float64()),
    ]
)
RATES = ("write_rate", "read_rate")
