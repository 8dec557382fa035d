"""Files that appear whole, and a quick test of whether a file has changed."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from nocta.core.errors import ConfigError

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

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


def save_atomically(
    path: Path, save: Callable[[Path], object], own: Collection[str] | None = None
) -> None:
    """The same for a file or folder that `save` writes.

    A folder that is there is replaced as a whole, or only its entries in `own`: others stay.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _tidy(path, own)
    part, old = (path.with_name(f".{path.name}.{os.getpid()}.{end}") for end in ("part", "old"))
    try:
        save(part)
        if path.is_dir():
            path.rename(old)  # a folder cannot be replaced in one step
        os.replace(part, path)
    finally:
        _tidy(path, own)


def _tidy(path: Path, own: Collection[str] | None) -> None:
    """Remove what this process, or one that was killed, left beside a path.

    A folder that was set aside comes back if nothing took its place.
    """
    name = re.compile(rf"\.{re.escape(path.name)}\.(\d+)\.(part|old)")
    for entry in sorted(path.parent.iterdir()):
        found = name.fullmatch(entry.name)
        if found is None or _is_another_running(int(found[1])):
            continue
        if found[2] == "old" and not path.exists():
            entry.rename(path)
            continue
        if found[2] == "old" and own is not None:
            for kept in entry.iterdir():
                if kept.name not in own and not (path / kept.name).exists():
                    kept.rename(path / kept.name)
        remove(entry)


def _is_another_running(pid: int) -> bool:
    if pid == os.getpid() or os.name != "posix":  # elsewhere signal 0 would end the process
        return pid != os.getpid()
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


@contextmanager
def only_process(folder: Path) -> Iterator[None]:
    """Keep other processes from writing into a folder; it is made if it is not there.

    Raises:
        ConfigError: Another process is writing into it.
    """
    made = not folder.exists()
    if fcntl is None or not (made or folder.is_dir()):
        yield  # whoever writes says that a file is in the way
        return
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        raise ConfigError(
            f"Another process is writing into '{folder}'. Wait until it has finished, or choose "
            f"another --out."
        ) from None
    try:
        yield
    finally:
        os.close(handle)
        if made:
            with suppress(OSError):  # something is in it
                folder.rmdir()


def remove(path: Path) -> None:
    """Delete a file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
