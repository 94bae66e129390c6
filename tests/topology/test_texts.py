"""Text columns as codes and back, in chunks that Arrow can count."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.topology.texts import decode_texts, encode_texts


def test_the_example_of_the_design():
    found = decode_texts(np.array([0, 0, 1]), pa.array(["orders", "users"]), most_bytes=12)
    assert [chunk.to_pylist() for chunk in found.chunks] == [["orders", "orders"], ["users"]]


def test_a_text_longer_than_a_chunk_has_one_of_its_own():
    found = decode_texts(np.array([1, 0, 0]), pa.array(["a", "orders"]), most_bytes=3)
    assert [chunk.to_pylist() for chunk in found.chunks] == [["orders"], ["a", "a"]]


def test_nothing_is_an_empty_column():
    assert decode_texts(np.empty(0, np.int32), pa.array([], pa.string())).to_pylist() == []
    codes, texts = encode_texts(pa.chunked_array([], pa.string()))
    assert (len(codes), texts.type) == (0, pa.string())


@given(st.lists(st.lists(st.text("abä", max_size=4))), st.integers(1, 30))
def test_what_was_encoded_is_decoded_again_in_chunks_within_the_limit(chunks, most_bytes):
    column = pa.chunked_array([pa.array(chunk, pa.string()) for chunk in chunks], pa.string())
    codes, texts = encode_texts(column)
    again = decode_texts(codes, texts, most_bytes)
    assert again.to_pylist() == column.to_pylist()
    assert texts.to_pylist() == list(dict.fromkeys(column.to_pylist()))
    for chunk in again.chunks:
        assert len(chunk) <= 1 or sum(len(text.encode()) for text in chunk.to_pylist()) <= most_bytes
