"""The pages agree with the code: layers, the picture of imports, paths, names and links."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ARCHITECTURE = ROOT / "docs" / "architecture.md"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_picture_of_imports_is_drawn_from_the_code() -> None:
    spec = spec_from_file_location("draw_imports", ROOT / "docs" / "draw_imports.py")
    assert spec is not None
    assert spec.loader is not None
    draw_imports = module_from_spec(spec)
    spec.loader.exec_module(draw_imports)
    page = ARCHITECTURE.read_text("utf-8")
    assert "flowchart" in page
    assert draw_imports.redrawn(page) == page, "Run: python docs/draw_imports.py"


def test_the_page_lists_the_layers_that_are_checked() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    page = ARCHITECTURE.read_text("utf-8")
    assert "```text\n" + "\n".join(layers) + "\n```" in page
    described = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", page, flags=re.MULTILINE)
    assert set(described) == set(" | ".join(layers).split(" | "))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_paths_in_the_pages_exist(page: Path) -> None:
    """`src/nocta/a.py`, `nocta/a.py` and `planning/a.py` are files of the package."""
    package = ROOT / "src" / "nocta"
    packages = "|".join(sorted(p.name for p in package.iterdir() if p.is_dir()))
    pattern = rf"`(?:(?:src/)?nocta/([\w/]+\.\w+)|((?:{packages})/[\w/]+\.(?:py|toml)))`"
    missing = [
        full or short
        for full, short in re.findall(pattern, page.read_text("utf-8"))
        if not (package / (full or short)).exists()
    ]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_names_in_the_pages_can_be_imported(page: Path) -> None:
    text = page.read_text("utf-8")
    for dotted in re.findall(r"`(nocta(?:\.(?!py\b)\w+)+)(?:\([^`]*\))?`", text):
        if dotted in ("nocta.methods", "nocta.predictors", "nocta.estimators", "nocta.datasets"):
            continue  # entry points
        module, _, last = dotted.rpartition(".")
        try:
            import_module(dotted)
        except ModuleNotFoundError:
            assert hasattr(import_module(module), last), dotted
    for module, names in re.findall(r"^from (nocta[\w.]*) import ([\w, ]+)", text, re.MULTILINE):
        for wanted in names.split(","):
            assert hasattr(import_module(module), wanted.strip()), (module, wanted)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_between_the_pages_work(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)\s#]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    missing = [link for link in links if not (page.parent / link).exists()]
    assert not missing
