"""Files that appear whole, and a quick test of whether a file has changed."""

from __future__ import annotations

import os
from pathlib import Path

#: Size and time of the last change; if either differs, the file has changed.
FileState = tuple[int, int]


def file_state(path: Path) -> FileState:
    """Size and time of the last change; nothing is read."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def file_states(path: Path) -> tuple[tuple[str, FileState], ...]:
    """States of a file, or of every file in a folder; empty if nothing is there."""
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    return tuple((str(file), file_state(file)) for file in files if file.is_file())


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file so that nobody ever reads half of it, even if this process is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        beside.write_bytes(data)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
