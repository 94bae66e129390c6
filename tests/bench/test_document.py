"""A rerun replaces the generated part of a document and leaves the rest alone."""

from __future__ import annotations

import pytest

from bench.document import replace_part, seconds, table

TEXT = "# Title\n\n<!-- figures: begin -->\nold\n<!-- figures: end -->\n\nThe end.\n"


def test_only_what_stands_between_the_markers_is_replaced(tmp_path):
    document = tmp_path / "document.md"
    document.write_text(TEXT)
    for text in ("new", "newer"):
        replace_part(document, "figures", text)
        expected = f"# Title\n\n<!-- figures: begin -->\n\n{text}\n\n<!-- figures: end -->\n\nThe end.\n"
        assert document.read_text() == expected


@pytest.mark.parametrize("text", ["", TEXT.replace("begin", "start"), TEXT + TEXT, TEXT.replace("end -->", "-->")])
def test_a_document_without_its_markers_is_left_alone(tmp_path, text):
    document = tmp_path / "document.md"
    document.write_text(text)
    with pytest.raises(ValueError, match="markers of 'figures'"):
        replace_part(document, "figures", "new")
    assert document.read_text() == text


def test_a_table_has_words_to_the_left_and_figures_to_the_right():
    assert table(("name", "value"), [("a", "1")]) == "| name | value |\n| --- | ---: |\n| a | 1 |"


@pytest.mark.parametrize(
    ("value", "text"), [(0.00123, "1.2 ms"), (0.0123, "0.012 s"), (1.25, "1.2 s"), (5000.4, "5,000 s")]
)
def test_seconds_keep_the_digits_that_mean_something(value, text):
    assert seconds(value) == text
