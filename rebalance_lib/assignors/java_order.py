"""The order in which Java walks through strings.

Which of two equal members gets the odd partition depends on it: sorted strings compare by UTF-16 units, and a HashMap
hands its keys out by buckets. A bucket is the hash, its upper half folded into the lower one, modulo the size of the
table: 16, doubled while it is more than three quarters full. Keys of one bucket come as they were put in.

Example: the hashes of "a", "b" and "q" are 97, 98 and 113. In a table of 16 they fall into buckets 1, 2 and 1, so
that a HashMap gives back "a", "q", "b".
"""

from __future__ import annotations

from collections.abc import Collection


def sort_key(text: str) -> bytes:
    """Sorts as ``String.compareTo`` does."""
    return text.encode("utf-16-be", "surrogatepass")


def string_hash(text: str) -> int:
    """``String.hashCode``, without its sign."""
    value = 0
    units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    for unit in units:
        value = (31 * value + unit) & 0xFFFFFFFF
    return value


def hash_map_order(keys: Collection[str]) -> list[str]:
    """The keys as a HashMap gives them back that they were put into in the order given."""
    table = 16
    while len(keys) > table * 3 // 4:
        table *= 2

    def bucket(key: str) -> int:
        value = string_hash(key)
        return (value ^ value >> 16) & (table - 1)

    return sorted(keys, key=bucket)
