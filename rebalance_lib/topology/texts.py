"""Columns of text that repeat, such as the topic of each replica, as codes and back.

A text column of Arrow counts its bytes in 32 bits, so that one array holds at most 2 GiB: 30 million replicas of topics
with names of 75 characters are more. Whoever makes or reads such a column therefore does it in chunks.

Example: the codes ``0 0 1`` of the texts ``orders``, ``users`` are 17 bytes; with at most 12 bytes a chunk, they become
the chunks ``orders orders`` and ``users``.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

MOST_BYTES = 2**31 - 1  # what Arrow's offsets of 32 bits can count


def encode_texts(column: pa.ChunkedArray | pa.Array[Any]) -> tuple[NDArray[np.int32], pa.Array[Any]]:
    """By row the code of its text, and the texts, each once, in the order of their first rows."""
    encoded = column.dictionary_encode()
    if isinstance(encoded, pa.DictionaryArray):
        return encoded.indices.to_numpy(zero_copy_only=False), encoded.dictionary
    if not encoded.num_chunks:
        return np.empty(0, np.int32), pa.array([], column.type)
    # All chunks share the dictionary that the last of them has.
    codes = np.concatenate([chunk.indices.to_numpy(zero_copy_only=False) for chunk in encoded.chunks])
    return codes, encoded.chunk(encoded.num_chunks - 1).dictionary


def decode_texts(codes: NDArray[Any], texts: pa.Array[Any], most_bytes: int = MOST_BYTES) -> pa.ChunkedArray:
    """The text of each code, in chunks of so many bytes at most."""
    lengths = pc.binary_length(texts).to_numpy() if len(texts) else np.zeros(0, np.int32)
    if len(codes) * int(lengths.max(initial=0)) <= most_bytes:
        return pa.chunked_array([texts.take(pa.array(codes))], texts.type)
    ends = np.cumsum(lengths[codes], dtype=np.int64)
    cuts = [0]
    while cuts[-1] < len(codes):
        before = ends[cuts[-1] - 1] if cuts[-1] else 0
        cuts.append(max(cuts[-1] + 1, int(np.searchsorted(ends, before + most_bytes, "right"))))
    parts = (codes[begin:end] for begin, end in pairwise(cuts))
    return pa.chunked_array([texts.take(pa.array(part)) for part in parts], texts.type)
