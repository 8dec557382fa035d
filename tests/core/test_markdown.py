"""Names of a user's data stay text in Markdown, whatever they contain."""

from __future__ import annotations

import re

import pytest

from nocta.core.markdown import code, escaped, table

EVIL = "<script>alert(1)</script>"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (EVIL, "&lt;script>alert(1)&lt;/script>"),
        ("a|b", r"a\|b"),
        ("[x](javascript:y)", r"\[x\](javascript:y)"),
        ("drinks_per_week", "drinks_per_week"),
        ("_x_", r"\_x\_"),
        ("two\n\nlines", "two lines"),
        ("# title", r"\# title"),
        ("1. one", r"1\. one"),
        ("- 3", r"\- 3"),
        ("-3.5", "-3.5"),
        ("2.5 mg", "2.5 mg"),
        ("---", r"\---"),
        ("&lt;b", "&amp;lt;b"),
        ("A & B", "A & B"),
        ("C:\\x", r"C:\\x"),
    ],
)
def test_names_are_shown_as_they_are(name: str, shown: str) -> None:
    assert escaped(name) == shown


def test_tables_keep_their_columns() -> None:
    for aligned in (False, True):
        lines = table(["a", "b|c"], [[EVIL, "x\ny"]], aligned=aligned).splitlines()
        assert len(lines) == 3
        assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {3}
        assert "<script" not in "\n".join(lines)


def test_code_spans_cannot_be_closed_from_inside() -> None:
    assert code("a`b``c") == "``` a`b``c ```"
    assert code("x\n<b>") == "`x <b>`"
