"""Finds downloaded files, and explains where to get them if they are missing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from nocta.core.errors import DataError, DataFileMissing
from nocta.core.progress import progress_bar
from nocta.datasets._card import Card
from nocta.datasets._load_log import LoadLog

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
DATA_VARIABLE = "NOCTA_DATA"
DATA_FOLDER = "data"
_ARCHIVES = ("*.zip", "*.tar.gz", "*.tgz")


def locate(card: Card, path: str | Path | None, find: Callable[[Path], T | None]) -> T:
    """What `find` returns for the first existing folder or file that has what is needed.

    Searches the user's path, else `$NOCTA_DATA`, then `data/`.
    """
    if path is not None:
        looked = [Path(path).expanduser()]
    else:
        roots = [os.environ.get(DATA_VARIABLE), DATA_FOLDER]
        folders = [Path(root).expanduser() for root in roots if root]
        looked = [place for root in folders for place in (root / card.home, root)]
    for place in looked:
        found = find(place) if place.exists() else None
        if found is not None:
            return found
    raise missing(card, looked)


def missing(card: Card, looked: Sequence[Path], what: str = "") -> DataFileMissing:
    """The error for missing files: which, where to get them, and where to put them."""
    absent = "" if any(p.exists() for p in looked) else " (no such file or folder)"
    needed = "\n".join(f"  - {line}" for line in card.files)
    packed = [a for p in looked if p.is_dir() for e in _ARCHIVES for a in sorted(p.glob(e))]
    hint = f" Found the archive '{packed[0]}': unpack it first." if packed else ""
    return DataFileMissing(
        f"{what or f'The files of {card.name!r} were not found'}. "
        f"Looked in: {', '.join(str(p) for p in looked)}{absent}.{hint}\n"
        f"Needed:\n{needed}\n"
        f"How to get them: {card.get} ({card.url})\n"
        f"Then put them in {DATA_FOLDER}/{card.home}/, or give their folder: --path FOLDER on the "
        f"command line, path=FOLDER in Python, or the environment variable {DATA_VARIABLE}."
    )


def _batches(
    paths: Sequence[Path], header: str, log: LoadLog, batch_size: int
) -> Iterator[tuple[bytes, NDArray[np.int64]]]:
    """Concatenated bodies of a batch of files, and the position of each line's file."""
    bodies: list[bytes] = []
    tracked = progress_bar(paths, desc="files", total=len(paths), show=log.progress)
    for i, path in enumerate(tracked):
        bodies.append(_body(path, header))
        if len(bodies) == batch_size or i == len(paths) - 1:
            positions = np.arange(i + 1 - len(bodies), i + 1)
            yield b"".join(bodies), np.repeat(positions, [b.count(b"\n") for b in bodies])
            bodies = []


def read_stacked(
    paths: Sequence[Path],
    header: str,
    log: LoadLog,
    parse: Callable[[bytes, NDArray[np.int64]], pd.DataFrame],
    batch_size: int = 4000,
) -> pd.DataFrame:
    """Read many small tables that all begin with the line `header`, a batch at a time.

    `parse` takes the bytes of a batch without header lines, and the position in `paths` of each
    line.
    """
    import pandas as pd

    try:
        tables = [parse(*batch) for batch in _batches(paths, header, log, batch_size)]
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"A file under '{paths[0].parent}' is damaged: {error}") from error
    return pd.concat(tables, ignore_index=True)


def _body(path: Path, header: str) -> bytes:
    """A table without its header line; its last line ends with a newline."""
    first, _, body = path.read_bytes().replace(b"\r\n", b"\n").partition(b"\n")
    found = first.decode("utf-8-sig", errors="replace").strip()
    if not found:
        raise DataError(f"'{path}' is empty or begins with an empty line. Download it again.")
    if found != header:
        raise DataError(
            f"'{path}' begins with '{found[:60]}'; expected the header '{header[:60]}'. "
            f"Check that it belongs to this data set."
        )
    return body if body.endswith(b"\n") or not body else body + b"\n"
