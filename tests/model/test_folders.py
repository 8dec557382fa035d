"""One test says what a folder holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from nocta.model.folders import CHECKPOINT, MANIFEST, PARTIAL, SETUP, Folder, recognize


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], Folder.EMPTY),
        ([MANIFEST, "results.csv"], Folder.MODEL),
        ([PARTIAL], Folder.UNFINISHED_FIT),
        ([PARTIAL, MANIFEST], Folder.UNFINISHED_FIT),
        ([SETUP, "results.csv"], Folder.COMPARISON),
        ([CHECKPOINT, "part-0.parquet"], Folder.SCORES),
        (["part-0.parquet"], Folder.OTHER),
    ],
)
def test_a_folder_is_recognized_by_its_files(
    names: list[str], expected: Folder, tmp_path: Path
) -> None:
    for name in names:
        (tmp_path / name).write_text('{"kind": "nocta-model"}')
    assert recognize(tmp_path) is expected


@pytest.mark.parametrize("text", ["", "[]", '{"name": "a web page"}', '{"kind": "other"}'])
def test_a_manifest_of_another_program_is_not_a_model(text: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(text)
    assert recognize(tmp_path) is Folder.OTHER


def test_what_is_no_folder_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    assert recognize(tmp_path / "a") is Folder.FILE
    assert recognize(tmp_path / "b") is Folder.ABSENT
