"""A saved object as a folder: `manifest.json` and `arrays.safetensors`, nothing pickled.

Reading checks the format, the kind and the hashes of both files, and runs nothing that comes from
the folder. Writing replaces a folder as a whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.errors import ModelError
from nocta.core.version import __version__
from nocta.model.files import save_atomically, write_atomically
from nocta.model.folders import MANIFEST, PARTIAL, REPLACEABLE_BY_MODEL, Folder, recognize
from nocta.model.manifest import check_arrays, check_manifest, check_sizes, read_text

#: Raised whenever a folder written by this version could not be read by an older one.
FORMAT = 1
ARRAYS = "arrays.safetensors"
CARD, LOG = "card.md", "log.json"
_OWN = (MANIFEST, ARRAYS, PARTIAL, CARD, LOG)
#: What a folder may hold, by `kind`.
KINDS = {"nocta-model": "a model", "nocta-method": "a method", "nocta-predictor": "a predictor"}
#: Errors of code that restores an object from a damaged configuration.
MISFITS = (
    LookupError,
    TypeError,
    ValueError,
    RuntimeError,
    AttributeError,
    ArithmeticError,
    MemoryError,
    AssertionError,
)


def write_folder(
    path: str | Path,
    kind: str,
    body: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    extra: Mapping[str, str] | None = None,
) -> None:
    """Write a folder, whole or not at all, with further text files (`extra`) by name.

    A saved object that is there already is replaced; anything else is not.
    """
    import torch
    from safetensors.numpy import save

    # A copy in C order: the format stores bytes as they lie in memory.
    data = save({name: np.array(array, order="C") for name, array in arrays.items()})
    manifest = {
        "format": FORMAT,
        "kind": kind,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "nocta": __version__,
            "torch": str(torch.__version__),
            "numpy": np.__version__,
        },
        "sha256": {ARRAYS: _hash(data)},
        **body,
    }
    text = _sealed(manifest)
    further = {name: content.encode() for name, content in (extra or {}).items()}
    files = {ARRAYS: data, MANIFEST: text.encode(), **further}

    def save_files(folder: Path) -> None:
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)

    target = Path(path).resolve()
    _check_replaceable(target)
    save_atomically(target, save_files, _OWN)


def read_folder(
    path: str | Path, kind: str = "nocta-model"
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The checked manifest and arrays of a folder."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    manifest = read_manifest(path, kind)
    file = Path(path) / ARRAYS
    if not file.is_file():
        raise ModelError(f"'{path}' is damaged: {ARRAYS} is missing.")
    check_sizes(file, manifest["config"])
    data = file.read_bytes()
    if _hash(data) != manifest.get("sha256", {}).get(ARRAYS):
        raise ModelError(
            f"'{file}' is damaged: its contents do not match the manifest. Copy the folder again, "
            f"or fit again."
        )
    try:
        arrays = load(data)
    except (SafetensorError, ValueError, KeyError) as error:
        raise ModelError(f"'{file}' is damaged: {error}.") from None
    check_arrays(arrays, file)
    # Networks share memory with some of them, so they must be writable.
    return manifest, {name: np.array(array) for name, array in arrays.items()}


def read_manifest(path: str | Path, kind: str | None = "nocta-model") -> dict[str, Any]:
    """The checked manifest of a folder, without its arrays; `kind=None` accepts any kind."""
    path = Path(path)
    expected = KINDS.get(kind or "", "a model or method")
    there = recognize(path)
    if there in (Folder.ABSENT, Folder.FILE):
        raise ModelError(f"'{path}' {there.value}; expected the folder of {expected}.")
    if not (path / MANIFEST).is_file():
        unfinished = there is Folder.UNFINISHED_FIT
        hint = " Its fit was not finished; continue it with --resume." if unfinished else ""
        raise ModelError(f"'{path}' is not a saved model: it has no {MANIFEST}.{hint}")
    try:
        manifest = json.loads(read_text(path / MANIFEST))
        format_, found_kind = manifest["format"], manifest["kind"]
        checksum = manifest.pop("checksum")
    except ModelError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ModelError(
            f"'{path / MANIFEST}' is damaged: it is not a manifest of nocta."
        ) from None
    if not isinstance(format_, int) or isinstance(format_, bool) or format_ > FORMAT:
        raise ModelError(
            f"'{path}' was written in format {format_} by nocta "
            f"{manifest.get('versions', {}).get('nocta', 'of a later version')}; this version "
            f"reads up to format {FORMAT}. Install a newer nocta, or fit again."
        )
    if checksum != _hash(_canonical(manifest)):
        raise ModelError(f"'{path / MANIFEST}' was changed after it was written; fit again.")
    check_manifest(manifest, path / MANIFEST)
    if kind is not None and found_kind != kind:
        held = KINDS.get(found_kind, repr(found_kind))
        held = f"the method '{manifest['method']}'" if "method" in manifest else held
        raise ModelError(f"'{path}' holds {held}; expected {expected}.")
    return dict(manifest)


def write_record(path: str | Path, record: Mapping[str, Any], extra: Mapping[str, str]) -> None:
    """Replace the record of a saved object, and its `extra` text files; arrays stay as they are."""
    manifest = read_manifest(path, None)
    manifest["record"] = dict(record)
    write_atomically(Path(path) / MANIFEST, _sealed(manifest))
    for name, content in extra.items():
        write_atomically(Path(path) / name, content)


def folder_hash(path: str | Path) -> str:
    """Hash of a saved object: of its manifest, which holds the hash of its arrays."""
    read_manifest(path, None)  # reports what is wrong with it
    return _hash((Path(path) / MANIFEST).read_bytes())


def damaged(path: str | Path, error: Exception) -> ModelError:
    """The error to raise if manifest and arrays are intact but do not fit together."""
    return ModelError(
        f"'{path}' is damaged: its configuration and its arrays do not fit together "
        f"({type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no details'})."
    )


def _check_replaceable(path: Path) -> None:
    there = recognize(path)
    if there is Folder.FILE:
        raise ModelError(f"'{path}' is a file; a model is a folder. Choose another name.")
    if there not in REPLACEABLE_BY_MODEL:
        raise ModelError(
            f"'{path}' exists and is not a saved model, so it is not replaced. Choose another "
            f"folder, or remove it yourself."
        )


def _sealed(manifest: Mapping[str, Any]) -> str:
    """The text of a manifest, with its own hash."""
    plain = json.loads(_canonical(manifest))
    plain["checksum"] = _hash(_canonical(plain))
    return json.dumps(plain, indent=1, ensure_ascii=False) + "\n"


def _canonical(data: Mapping[str, Any]) -> bytes:
    def plain(value: Any) -> Any:
        if isinstance(value, np.generic | np.ndarray):
            return value.tolist()
        raise TypeError(f"{type(value).__name__} cannot be written to {MANIFEST}: {value!r}")

    # Keys keep their order: the order of features matters.
    return json.dumps(data, separators=(",", ":"), default=plain).encode()


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
