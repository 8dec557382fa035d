"""Files are what they say, or the message says what they are."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import pytest

from nocta.tables.problems import Issues
from nocta.tables.source import open_source
from nocta.tables.understand import with_decimal


def problem_of(path: Path) -> str:
    issues = Issues()
    open_source(path, issues)
    assert len(issues.problems) == 1, issues.problems
    return str(issues.problems[0])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"PAR1" + bytes(40), "is a Parquet file. Name it .parquet"),
        ("t.csv", b"PK\x03\x04" + bytes(40), "an Excel workbook or zip archive"),
        ("t.csv", b"\xd0\xcf\x11\xe0" + bytes(40), "an old Excel workbook"),
        ("t.csv", gzip.compress(b"a,b\n1,2\n", mtime=0), "a gzip file. Name it .csv.gz"),
        ("t.csv", b"<!DOCTYPE html><html>", "a web page. Log in"),
        ("t.csv", b'{"a": [1, 2]}', "JSON"),
        ("t.csv", b"a,b\n1,\x00\x01\x02\n", "is binary"),
        ("t.csv", b"a,b\n1,\xc3\xa9\n3,caf\xe9\n", "line 3: byte 0xe9 is not UTF-8"),
        ("t.csv", b"a,b\n1,2\n3,caf\x81\n", "line 3: byte 0x81 is not UTF-8"),
        ("t.csv", b"", "it is empty"),
        ("t.csv", b"a,b\n1,2\n3\n\n4,5,6\n", "has 2 columns, but line 3 has 1, line 5 has 3"),
        ("t.csv", b"a,b,a\n1,2,3\n", "line 1: column 'a' occurs 2 times"),
        ("t.csv.gz", b"a,b\n1,2\n", "not a complete gzip file"),
        ("t.parquet", b"a,b\n1,2\n", "named Parquet but is not Parquet"),
        ("t.parquet", b"PAR1" + bytes(40), "named Parquet but is cut short or damaged"),
    ],
)
def test_a_file_that_is_not_what_it_says(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert message in problem_of(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert "there is no such file" in problem_of(tmp_path / "t.csv")


def test_lines_are_counted_as_an_editor_does(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfid, alt\r\na,1\r\n\r\nb,2\r\n,\r\nc,NA\r\n")
    source = open_source(path, Issues())
    assert source is not None
    assert source.columns == ["id", "alt"]
    assert [source.place(i) for i in range(len(source))] == ["line 2", "line 4", "line 6"]
    assert with_decimal(source, ".").frame["alt"].to_list() == [1, 2, None]


def test_text_columns_stay_as_written(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('id,note\n007,"a, b"\n')
    source = open_source(path, Issues())
    assert source is not None
    source = with_decimal(source, ".", text={"id"})
    assert source.frame["id"].to_list() == ["007"]
    assert source.frame["note"].to_list() == ["a, b"]


def test_a_frame_may_not_double_its_columns() -> None:
    issues = Issues()
    source = open_source(pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]), issues)
    assert source is not None
    assert source.columns == ["a", "b"]
    assert "column 'a' occurs 2 times" in str(issues.problems[0])


def test_a_header_alone_has_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,alt\n")
    source = open_source(path, Issues())
    assert source is not None
    assert (source.columns, len(source)) == (["id", "alt"], 0)
