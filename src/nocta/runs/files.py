"""Files that are either whole or not there, written beside their place and moved into it; and
what tells that a file has changed."""

from __future__ import annotations

import os
from pathlib import Path

#: Size and time of change of a file: another one, and it is another file.
Stamp = tuple[int, int]


def file_stamp(path: Path) -> Stamp:
    """What tells a file that was changed from the one it was, without reading it."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def file_stamps(path: Path) -> tuple[tuple[str, Stamp], ...]:
    """Those of a file, or of every file in a folder, by name; none where nothing is there."""
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    return tuple((str(file), file_stamp(file)) for file in files if file.is_file())


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader, or a killed process, never meets half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        beside.write_bytes(data)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
