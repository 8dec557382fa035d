"""What a folder holds, recognized by its files: the one test behind every "may I write here?"."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path

from nocta.core.errors import ConfigError

#: Marks a saved model or predictor.
MANIFEST = "manifest.json"
#: Folder inside a model's folder that holds the checkpoint of an unfinished fit.
PARTIAL = ".partial"
#: Marks a comparison.
SETUP = "setup.json"
#: Marks any other checkpoint, such as a folder of scored parts.
CHECKPOINT = ".checkpoint.json"

#: Marks a folder of `nocta reproduce`.
REPRODUCED = ".reproduced"


class Folder(Enum):
    """What a path is; the value completes the sentence "'PATH' ..."."""

    ABSENT = "does not exist"
    FILE = "is a file"
    EMPTY = "is empty"
    UNFINISHED_FIT = "holds an unfinished fit"
    MODEL = "holds a saved model"
    COMPARISON = "holds a comparison"
    SCORES = "holds scored parts"
    REPRODUCED = "holds reproduced results"
    OTHER = "holds other files"


#: What `nocta fit` may write into; anything else stays untouched.
REPLACEABLE_BY_MODEL = (Folder.ABSENT, Folder.EMPTY, Folder.UNFINISHED_FIT, Folder.MODEL)
_MARKS = {
    PARTIAL: Folder.UNFINISHED_FIT,  # first: a model may be there, about to be replaced
    MANIFEST: Folder.MODEL,
    SETUP: Folder.COMPARISON,
    CHECKPOINT: Folder.SCORES,
    REPRODUCED: Folder.REPRODUCED,
}


def refuse_other(path: Path, *own: Folder) -> None:
    """Raise `ConfigError` if a command that writes folders of these kinds may not write here."""
    there = recognize(path)
    if there not in (Folder.ABSENT, Folder.EMPTY, *own):
        raise ConfigError(f"'{path}' {there.value}; choose another --out.")


def recognize(path: Path) -> Folder:
    """Say what a path is."""
    if not path.exists():
        return Folder.ABSENT
    if not path.is_dir():
        return Folder.FILE
    inside = {entry.name for entry in path.iterdir()}
    if not any(name in _MARKS or not name.startswith(".") for name in inside):
        return Folder.EMPTY  # notes of file managers do not count
    if MANIFEST in inside and not _is_ours(path / MANIFEST):
        inside.remove(MANIFEST)
    return next((kind for mark, kind in _MARKS.items() if mark in inside), Folder.OTHER)


def _is_ours(manifest: Path) -> bool:
    """Whether a manifest is one of this package; other programs write files of that name too."""
    try:
        return str(json.loads(manifest.read_text("utf-8"))["kind"]).startswith("nocta-")
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
