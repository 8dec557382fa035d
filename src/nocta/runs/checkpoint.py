"""A folder of finished pieces of work that belong to one request, to continue a stopped command.

A piece is a JSON file, or a file or folder that a function writes. It appears in one step, so a
piece that is there is finished. A piece that cannot be read counts as missing and is made again.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from nocta.core.errors import ConfigError
from nocta.model.files import remove, save_atomically, write_atomically
from nocta.model.folders import CHECKPOINT
from nocta.runs.results import plain

T = TypeVar("T")
#: What reading a damaged file raises; errors of `nocta` and pyarrow are ValueErrors.
_DAMAGED = (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile)
#: Entries of a request whose own entries are compared one by one.
_NESTED = ("setup", "source")


class Checkpoint:
    """Finished pieces of one request.

    Args:
        folder: Made with the first piece.
        request: Plain data that decides the pieces; written beside them in `file`, if there is any.
            Hashes of files and data have names that end in `_hash` or `_sha256`.
        own: Whether the folder holds nothing else, so that it may be removed.
        defaults: Entries that an older version did not write, and the value they had then.
    """

    def __init__(
        self,
        folder: Path,
        request: Mapping[str, Any] | None = None,
        *,
        file: str = CHECKPOINT,
        own: bool = True,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.folder = folder
        self.request: dict[str, Any] = plain(request or {})
        self.file = folder / file
        self.own = own
        self.defaults = defaults or {}

    def open(self, *, discard: bool = False, remedy: str = "") -> None:
        """Continue with the pieces that are there; discard or refuse those of another request.

        `remedy` ends the error and says what the user can do.
        """
        found = read_json(self.file)
        if not isinstance(found, dict):
            if self.own:
                self.clear()  # pieces of an unknown request
            elif self.file.exists():
                raise ConfigError(f"'{self.file}' is damaged; delete it, or choose another --out.")
            return
        differing = differences(found, self.request, self.defaults)
        if differing and not discard:
            raise ConfigError(
                f"'{self.folder}' was made with other settings: {'; '.join(differing)}. {remedy}"
            )
        if differing:
            self.clear()

    def begin(self) -> None:
        """Write down the request, if it is not written yet."""
        if self.request and not self.file.is_file():
            write_atomically(self.file, json.dumps(self.request, indent=2) + "\n")

    def path(self, name: str) -> Path:
        """Where a piece is, or will be."""
        return self.folder / name

    def get(self, name: str) -> Any | None:
        """A JSON piece; `None` if it is missing or damaged."""
        return read_json(self.path(name))

    def put(self, name: str, data: Any) -> None:
        self.begin()
        write_atomically(self.path(name), json.dumps(plain(data), allow_nan=False))

    def read(self, name: str, load: Callable[[Path], T]) -> T | None:
        """What `load` makes of a piece; `None` if it is missing or damaged."""
        try:
            return load(self.path(name)) if self.path(name).exists() else None
        except _DAMAGED:
            return None

    def write(self, name: str, save: Callable[[Path], object]) -> None:
        """Keep the file or folder that `save` writes."""
        self.begin()
        save_atomically(self.path(name), save)

    def names(self, pattern: str) -> list[str]:
        """Names of the pieces that match a pattern, in alphabetical order."""
        found = self.folder.glob(pattern)
        return sorted(path.relative_to(self.folder).as_posix() for path in found)

    def drop(self, names: Iterable[str]) -> None:
        for name in names:
            remove(self.path(name))

    def clear(self) -> None:
        """Remove the whole folder, or the request alone if others keep files there."""
        remove(self.folder if self.own else self.file)


def differences(
    there: Mapping[str, Any], here: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
) -> list[str]:
    """How two requests differ, in words.

    Example:
        >>> differences({"seed": 0, "data_hash": "a"}, {"seed": 1, "data_hash": "b"})
        ['seed is 0 there and 1 here']
        >>> differences({"seed": 0, "data_hash": "a"}, {"seed": 0, "data_hash": "b"})
        ['the data changed']
    """
    flat = [{**_flat(defaults or {}), **_flat(plain(request))} for request in (there, here)]
    names = [n for n in sorted(flat[0].keys() | flat[1].keys()) if flat[0].get(n) != flat[1].get(n)]
    hashes = [name for name in names if name.endswith(("_hash", "_sha256"))]
    options = [
        f"{name} is {flat[0].get(name)!r} there and {flat[1].get(name)!r} here"
        for name in names
        if name not in hashes
    ]
    # Other options usually read other data, so a hash says something only if it is alone.
    return options or [f"the {name.rpartition('_')[0]} changed" for name in hashes]


def _flat(request: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in request.items():
        found |= _flat(value) if name in _NESTED and isinstance(value, Mapping) else {name: value}
    return found


def read_json(path: Path) -> Any | None:
    """The contents of a JSON file; `None` if it is missing or damaged."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
