"""`nocta protocol`: the policy as a document, from a saved model."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from nocta.cli.app import app
from nocta.methods.distilled.tree import Tree


def invoke(*args: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, [str(a) for a in args])
    return found.exit_code, " ".join(found.output.split())


def test_three_files_say_the_same(fitted_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "p"
    given = ["--constraint", "never platelets", "--depth", 2, "--cost-weight", "0.002"]
    status, shown = invoke("protocol", fitted_model, "--out", out, *given)
    assert status == 0, shown
    assert "Trees: $" in shown
    assert "subjects that were kept aside when the model was fitted" in shown
    found = json.loads((out / "protocol.json").read_text("utf-8"))
    trees = [Tree.from_dict(tree) for tree in found["trees"]]
    assert len(trees) == 5
    assert max(tree.depth for tree in trees) <= 2
    assert found["constraints"] == {"never": {"platelets": True}}
    assert [c["name"] for c in found["candidates"]] == ["adaptive", "trees", "schedule"]
    text = (out / "protocol.md").read_text("utf-8")
    page = (out / "protocol.html").read_text("utf-8")
    for content in (text, page):
        assert "cost weight 0.002 (as given)" in content
        assert "Visit 2 (0.5 years)" in content
        assert "platelets" in content
    assert "'platelets' is never acquired." in text
    assert "<strong>" in page
    assert "http" not in page.replace("https://", "http://").split("<body>")[1]
    assert all("platelets" not in visit for visit in found["schedule"])
    assert all("platelets" not in leaf.acquire for tree in trees for leaf in tree.leaves())


def test_mistakes_are_told(fitted_model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    status, shown = invoke("protocol", fitted_model, "--out", tmp_path / "file")
    assert status == 2
    assert "is a file; --out names a folder" in shown
    status, shown = invoke("protocol", fitted_model, tmp_path / "none.csv", "--out", tmp_path / "p")
    assert status == 2
    assert "none.csv" in shown
