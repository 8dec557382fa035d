"""A fitted model as a folder: `manifest.json` and `arrays.safetensors`, nothing pickled.

Loading checks the format, the kind and the hashes of both files, builds the classes this package
knows from plain configuration, and runs nothing that comes from the folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.catalog import Catalog
from nocta.core.errors import ModelError, NotFittedError
from nocta.model.folders import MANIFEST, PARTIAL, REPLACEABLE_BY_MODEL, Folder, recognize

if TYPE_CHECKING:
    from nocta.core.predictor import Predictor
    from nocta.model.nocta import NOCTA

#: Raised whenever a folder written by this version could not be read by an older one.
FORMAT = 1
ARRAYS = "arrays.safetensors"
CARD, LOG = "card.md", "log.json"
_OWN = (MANIFEST, ARRAYS, PARTIAL, CARD, LOG)
_KINDS = {"nocta-model": "a model", "nocta-predictor": "a predictor"}


def save_model(model: NOCTA, path: str | Path, *, extra: Mapping[str, str] | None = None) -> None:
    """Write a fitted model as a folder, whole or not at all.

    An amortized model of many subjects holds no subject's data. With retrieval (`contrastive`,
    `ensemble`), or where subjects are few and averages are counted over them, the training
    subjects' values, labels, visits and context are in the folder, without their names.

    Args:
        model: Fitted. Plain data in its `record_`, where it has one, is kept with it.
        path: The folder. A model that is there already is replaced; anything else is not.
        extra: Further text files for the folder, by name.
    """
    if not hasattr(model, "planner_"):
        raise NotFittedError("This model is not fitted yet; call `fit(train, val)` first.")
    config, arrays = model.planner_.state()
    body = {
        "estimator": model.estimator,
        "preset": model.preset,
        "seed": model.seed,
        "options": model.options,
        "classes": list(model.classes_),
        "catalog": model.catalog_.to_dict(),
        "schema": model.schema_,
        "record": getattr(model, "record_", {}),
        "config": config,
    }
    _write(Path(path), "nocta-model", body, arrays, extra or {})


def load(path: str | Path) -> NOCTA:
    """Read a model that `NOCTA.save` or `nocta fit` wrote; it decides as it did, to the bit.

    Args:
        path: The folder.

    Raises:
        ModelError: The folder is damaged, from a newer version, or holds something else.
    """
    from nocta.model.nocta import NOCTA, planner_class

    body, arrays = _read(Path(path), "nocta-model")
    try:
        model = NOCTA(body["estimator"], body["preset"], body["seed"], body["options"])
        model.planner_ = planner_class(body["preset"]).from_state(body["config"], arrays)
        model.catalog_ = Catalog.from_dict(body["catalog"])
        model.classes_, model.schema_ = tuple(body["classes"]), body["schema"]
        model.record_ = body["record"]
    except ModelError:
        raise
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise _does_not_fit(path, error) from error
    return model


def save_predictor(predictor: Predictor, path: str | Path) -> None:
    """Write a fitted predictor as a folder.

    Args:
        predictor: Fitted; one of ours, or of an installed plug-in that has a `state`.
        path: The folder. A predictor that is there already is replaced; anything else is not.

    Raises:
        ModelError: The predictor cannot be saved.
    """
    from nocta.predictors.registry import predictor_state

    config, arrays = predictor_state(predictor)
    _write(Path(path), "nocta-predictor", {"config": config}, arrays, {})


def load_predictor(path: str | Path) -> Predictor:
    """Read what `save_predictor` wrote.

    Args:
        path: The folder.

    Raises:
        ModelError: The folder is damaged, from a newer version, or holds something else.
    """
    from nocta.predictors.registry import restore_predictor

    body, arrays = _read(Path(path), "nocta-predictor")
    try:
        return restore_predictor(body["config"], arrays)
    except ModelError:
        raise
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise _does_not_fit(path, error) from error


def read_manifest(path: str | Path, kind: str = "nocta-model") -> dict[str, Any]:
    """The checked manifest of a saved folder, without loading its arrays."""
    path = Path(path)
    there = recognize(path)
    if there in (Folder.ABSENT, Folder.FILE):
        raise ModelError(f"'{path}' {there.value}; expected the folder of {_KINDS[kind]}.")
    if not (path / MANIFEST).is_file():
        unfinished = there is Folder.UNFINISHED_FIT
        hint = " Its fit was not finished; continue it with --resume." if unfinished else ""
        raise ModelError(f"'{path}' is not a saved model: it has no {MANIFEST}.{hint}")
    try:
        manifest = json.loads((path / MANIFEST).read_text("utf-8"))
        format_, found_kind = manifest["format"], manifest["kind"]
        checksum = manifest.pop("checksum")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ModelError(f"'{path / MANIFEST}' is damaged: it is not a manifest of ours.") from None
    if not isinstance(format_, int) or format_ > FORMAT:
        raise ModelError(
            f"'{path}' was written in format {format_} by nocta "
            f"{manifest.get('versions', {}).get('nocta', 'of a later version')}; this version "
            f"reads up to format {FORMAT}. Install a newer nocta, or fit again."
        )
    if checksum != _digest(_canonical(manifest)):
        raise ModelError(f"'{path / MANIFEST}' was changed after it was written; fit again.")
    if found_kind != kind:
        held = _KINDS.get(found_kind, repr(found_kind))
        raise ModelError(f"'{path}' holds {held}; expected {_KINDS[kind]}.")
    return dict(manifest)


# -- the folder -----------------------------------------------------------------------------


def checksum(path: str | Path) -> str:
    """Hash of a saved model: of its manifest, which holds that of its arrays."""
    read_manifest(path)  # says what is wrong with it
    return _digest((Path(path) / MANIFEST).read_bytes())


def _write(
    path: Path,
    kind: str,
    body: dict[str, Any],
    arrays: dict[str, NDArray[Any]],
    extra: Mapping[str, str],
) -> None:
    import torch
    from safetensors.numpy import save

    from nocta.core.version import __version__

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
        "sha256": {ARRAYS: _digest(data)},
        **body,
    }
    manifest = json.loads(_canonical(manifest))
    manifest["checksum"] = _digest(_canonical(manifest))
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    files = {ARRAYS: data, MANIFEST: text.encode(), **{k: v.encode() for k, v in extra.items()}}
    _replace_folder(path.resolve(), files)


def _read(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load as load_arrays

    manifest = read_manifest(path, kind)
    file = path / ARRAYS
    if not file.is_file():
        raise ModelError(f"'{path}' is damaged: {ARRAYS} is missing.")
    data = file.read_bytes()
    if _digest(data) != manifest.get("sha256", {}).get(ARRAYS):
        raise ModelError(
            f"'{file}' is damaged: its contents are not those the manifest was written for. "
            f"Copy the folder again, or fit again."
        )
    try:
        arrays = load_arrays(data)
    except (SafetensorError, ValueError, KeyError) as error:
        raise ModelError(f"'{file}' is damaged: {error}.") from None
    # Networks share memory with some of them, so they must be writable.
    return manifest, {name: np.array(array) for name, array in arrays.items()}


def _replace_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a new folder, then put it in the place of the old one."""
    _check_replaceable(path)
    beside = path.parent / f".{path.name}.{os.getpid()}.part"
    old = path.parent / f".{path.name}.{os.getpid()}.old"
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    try:
        for name, content in files.items():
            (beside / name).write_bytes(content)
        if path.exists():
            path.rename(old)
        beside.rename(path)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    if old.exists():
        # What others keep in the folder (results, figures) stays.
        for entry in old.iterdir():
            if entry.name not in _OWN and not (path / entry.name).exists():
                entry.rename(path / entry.name)
        shutil.rmtree(old)


def _check_replaceable(path: Path) -> None:
    there = recognize(path)
    if there is Folder.FILE:
        raise ModelError(f"'{path}' is a file; a model is a folder. Choose another name.")
    if there not in REPLACEABLE_BY_MODEL:
        raise ModelError(
            f"'{path}' exists and is not a saved model, so it is not replaced. Choose another "
            f"folder, or remove it yourself."
        )


def _does_not_fit(path: str | Path, error: Exception) -> ModelError:
    return ModelError(
        f"'{path}' is damaged: its configuration and its arrays do not fit together "
        f"({type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no details'})."
    )


def _canonical(data: Mapping[str, Any]) -> bytes:
    def plain(value: Any) -> Any:
        if isinstance(value, np.generic | np.ndarray):
            return value.tolist()
        raise TypeError(f"{type(value).__name__} cannot be written to {MANIFEST}: {value!r}")

    # Keys stay in their order: that of the features means something.
    return json.dumps(data, separators=(",", ":"), default=plain).encode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
