from __future__ import annotations

from rebalance_lib.assignors.java_order import hash_map_order, sort_key, string_hash


def test_the_example_of_the_module():
    assert [string_hash(text) for text in "abq"] == [97, 98, 113]
    assert hash_map_order(["a", "b", "q"]) == ["a", "q", "b"]
    assert hash_map_order(["q", "b", "a"]) == ["q", "a", "b"]


def test_a_table_that_is_three_quarters_full_grows():
    assert hash_map_order(["q", *"bcdefghijkl"]) == [*"qbcdefghijkl"]
    assert hash_map_order(["q", *"bcdefghijklm"]) == [*"bcdefghijklmq"]


def test_the_hash_is_that_of_java_for_long_texts_and_for_any_character():
    assert string_hash("hello") == 99_162_322
    assert string_hash("polygenelubricants") == 2**31  # the smallest int, which has no positive counterpart
    assert string_hash("😀") == (31 * 0xD83D + 0xDE00) & 0xFFFFFFFF


def test_names_sort_by_utf_16_units():
    assert sorted(["\uff5e", "😀", "a"], key=sort_key) == ["a", "😀", "\uff5e"]
