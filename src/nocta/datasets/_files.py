"""Finding downloaded files, and saying kindly where to get them when they are not there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nocta.core.errors import DataError, DataFileMissing
from nocta.datasets._card import Card
from nocta.datasets._load_log import LoadLog

T = TypeVar("T")
DATA_VARIABLE = "NOCTA_DATA"
DATA_FOLDER = "data"
_ARCHIVES = ("*.zip", "*.tar.gz", "*.tgz")


def places(card: Card, path: str | Path | None) -> list[Path]:
    """Where files are looked for: the path given, else `$NOCTA_DATA`, then `data/`."""
    if path is not None:
        return [Path(path).expanduser()]
    roots = [Path(DATA_FOLDER)]
    if os.environ.get(DATA_VARIABLE):
        roots.insert(0, Path(os.environ[DATA_VARIABLE]).expanduser())
    return [place for root in roots for place in (root / card.home, root)]


def locate(card: Card, path: str | Path | None, find: Callable[[Path], T | None]) -> T:
    """What `find` makes of the first place that has the files.

    Args:
        card: Explains how to get the files when there are none.
        path: The user's path, if any; then nothing else is searched.
        find: Given an existing folder or file, what is needed from it, or `None`.
    """
    looked = places(card, path)
    for place in looked:
        found = find(place) if place.exists() else None
        if found is not None:
            return found
    raise missing(card, looked)


def missing(card: Card, looked: Sequence[Path], what: str = "") -> DataFileMissing:
    """The error for files that are not there: what, where, how to get them, where to put them."""
    absent = "" if any(p.exists() for p in looked) else " (no such file or folder)"
    needed = "\n".join(f"  - {line}" for line in card.files)
    packed = [a for p in looked if p.is_dir() for e in _ARCHIVES for a in sorted(p.glob(e))]
    hint = f" There is an archive '{packed[0]}': unpack it first." if packed else ""
    return DataFileMissing(
        f"{what or f'The files of {card.name!r} were not found'}. "
        f"Looked in: {', '.join(str(p) for p in looked)}{absent}.{hint}\n"
        f"Needed:\n{needed}\n"
        f"How to get them: {card.get} ({card.url})\n"
        f"Then put them into {DATA_FOLDER}/{card.home}/, or name their folder: --path FOLDER on "
        f"the command line, path=FOLDER in Python, or the environment variable {DATA_VARIABLE}."
    )


def stacked(
    paths: Sequence[Path], header: str, log: LoadLog, batch_size: int = 4000
) -> Iterator[tuple[bytes, NDArray[np.int64]]]:
    """The bodies of many small tables, stacked, so that each batch is parsed in one go.

    Args:
        paths: One file per subject, all with the same header line.
        header: What that line must be.
        log: Shows the progress.
        batch_size: Files per batch; bounds the memory.

    Yields:
        The bytes of a batch without header lines, and the position in `paths` of each line.
    """
    bodies: list[bytes] = []
    for i, path in enumerate(log.track(paths, "files", len(paths))):
        bodies.append(_body(path, header))
        if len(bodies) == batch_size or i == len(paths) - 1:
            positions = np.arange(i + 1 - len(bodies), i + 1)
            yield b"".join(bodies), np.repeat(positions, [b.count(b"\n") for b in bodies])
            bodies = []


def _body(path: Path, header: str) -> bytes:
    """A table without its header line, every line ended."""
    first, _, body = path.read_bytes().replace(b"\r\n", b"\n").partition(b"\n")
    found = first.decode("utf-8-sig", errors="replace").strip()
    if not found:
        raise DataError(f"'{path}' is empty or begins with an empty line. Download it again.")
    if found != header:
        raise DataError(
            f"'{path}' begins with '{found[:60]}'; expected the header '{header[:60]}'. "
            f"Is it a file of this data set?"
        )
    return body if body.endswith(b"\n") or not body else body + b"\n"
