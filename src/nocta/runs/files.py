"""Files that appear whole, and a quick test of whether a file has changed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
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
    data = content.encode("utf-8") if isinstance(content, str) else content
    save_atomically(path, lambda beside: beside.write_bytes(data))


def save_atomically(path: Path, save: Callable[[Path], object]) -> None:
    """The same for a file or folder that `save` writes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    remove(beside)
    try:
        save(beside)
        if path.is_dir():
            shutil.rmtree(path)  # a folder cannot be replaced in one step
        os.replace(beside, path)
    finally:
        remove(beside)


def remove(path: Path) -> None:
    """Delete a file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
