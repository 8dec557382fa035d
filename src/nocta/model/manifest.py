"""What a manifest and its arrays may hold: a folder of a stranger is checked as a whole.

Everything is checked before anything is restored, and sizes before memory is taken. `record` is
open for notes of later versions (how the model was fitted, operating points); the entries that
commands rely on have checked types. Nothing else may be added.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from nocta.core.errors import ModelError
from nocta.core.options import Preset, Seed

#: Largest manifest and largest arrays that are read.
MAX_MANIFEST, MAX_ARRAYS = 1 << 26, 1 << 33
_DTYPES = {"F64", "F32", "F16", "I64", "I32", "I16", "I8", "U8", "BOOL"}
#: Arrays of subjects, in which NaN means missing.
_RECORDED = re.compile(r"(^|\.)(values|context)$")
#: Widths of layers; each is also the length of some array.
_WIDTH = re.compile(r"hidden|embed|latent|width|(^|_)dim")
_SMALL_WIDTH, _SMALL_NUMBER = 2048, 1_000_000
Name = Annotated[str, Field(min_length=1, max_length=200)]
NonNegative = Annotated[FiniteFloat, Field(ge=0)]
Range = Annotated[list[FiniteFloat], Field(min_length=2, max_length=2)]


class _Checked(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", protected_namespaces=())


class _Default(_Checked):
    """The operating point that acts if none is given."""

    model_config = ConfigDict(extra="allow")

    setting: dict[str, Any]
    reason: str


class _Weight(_Checked):
    model_config = ConfigDict(extra="allow")

    cost_weight: NonNegative


class _WeightDefault(_Default):
    setting: _Weight  # type: ignore[assignment]


class _Training(_Checked):
    """Summary of the training subjects, to say whether a model still fits."""

    n_subjects: Annotated[int, Field(ge=1)]
    columns: list[dict[str, Any]]


class _Record(_Checked):
    """Notes on the fit; entries that are not listed here are kept as they are."""

    model_config = ConfigDict(extra="allow")

    dataset: str | None = None
    request: dict[str, Any] | None = None
    n_train: Annotated[int, Field(ge=0)] | None = None
    n_val: Annotated[int, Field(ge=0)] | None = None
    n_test: Annotated[int, Field(ge=0)] | None = None
    cost_of_everything: NonNegative | None = None
    fit_seconds: NonNegative | None = None
    cost_weights: list[NonNegative] | None = None
    settings: list[dict[str, Any]] | None = None
    validation: list[dict[str, Any]] | None = None
    references: list[dict[str, Any]] | None = None
    default: _Default | None = None
    threshold: float | None = None  # NaN if there are more than two classes
    training: _Training | None = None
    subgroups: dict[str, Any] | None = None
    slot_times: list[FiniteFloat] | None = None
    time_unit: str | None = None


class _ModelRecord(_Record):
    default: _WeightDefault | None = None


class _Predictor(_Checked):
    """A folder of kind `nocta-predictor`."""

    format: Annotated[int, Field(ge=1)]
    kind: Literal["nocta-model", "nocta-method", "nocta-predictor"]
    created: str
    versions: dict[str, str]
    sha256: dict[str, Annotated[str, Field(pattern="^[0-9a-f]{64}$")]]
    config: dict[str, Any]


class _Fitted(_Predictor):
    seed: Seed
    classes: Annotated[list[Name], Field(min_length=1)]
    catalog: dict[str, Any]
    schema_: Annotated[dict[str, Any], Field(alias="schema")]
    record: _Record


class _Model(_Fitted):
    """A folder of kind `nocta-model`."""

    record: _ModelRecord
    estimator: Name
    preset: Preset
    options: dict[str, Any] | None
    ranges: dict[Name, Range] = {}  # absent in models of older versions


class _Method(_Fitted):
    """A folder of kind `nocta-method`."""

    method: Name
    preset: Name


_KINDS: dict[str, type[_Predictor]] = {
    "nocta-model": _Model,
    "nocta-method": _Method,
    "nocta-predictor": _Predictor,
}


def read_text(path: Path) -> str:
    """The text of a manifest; raises `ModelError` if it is far too large to be one."""
    size = path.stat().st_size
    if size > MAX_MANIFEST:
        raise ModelError(f"'{path}' has {size:,} bytes; at most {MAX_MANIFEST:,} are read.")
    return path.read_text("utf-8")


def check_manifest(manifest: Mapping[str, Any], path: Path) -> None:
    """Raise `ModelError` unless every entry is known and of its type."""
    try:
        _KINDS.get(str(manifest["kind"]), _Predictor).model_validate(dict(manifest))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        what = {"missing": "is missing", "extra_forbidden": "is not known"}.get(
            first["type"], f"is {_short(first['input'])}: {first['msg']}"
        )
        raise ModelError(
            f"'{path}' is not a manifest that nocta writes: '{place}' {what}. Load only models "
            f"from people you trust, or fit again."
        ) from None


def check_sizes(file: Path, config: Mapping[str, Any]) -> None:
    """Raise `ModelError` if arrays, or what the configuration would build, are too large.

    Only the header of the file is read.
    """
    size = file.stat().st_size
    if size > MAX_ARRAYS:
        raise ModelError(f"'{file}' has {size:,} bytes; at most {MAX_ARRAYS:,} are read.")
    shapes = _shapes(file, size)
    longest = max((n for shape in shapes for n in shape), default=0)
    total = sum(int(np.prod(shape, dtype=object)) for shape in shapes)
    for name, number in _numbers(config):
        key = name.rpartition(".")[2]
        if isinstance(number, float):  # an amount, such as a price; never a size
            if not np.isfinite(number):
                raise ModelError(f"'{file.parent}' is damaged: {name} is {number:g}.")
            continue
        limit = max(_SMALL_WIDTH, longest) if _WIDTH.search(key) else max(_SMALL_NUMBER, total)
        if "seed" not in key and not abs(number) <= limit:
            raise ModelError(
                f"'{file.parent}' is damaged: its configuration has {name} = {number:g}, but the "
                f"arrays are too small for that (at most {limit:,})."
            )


def check_arrays(arrays: Mapping[str, NDArray[Any]], file: Path) -> None:
    """Raise `ModelError` if a number is infinite, or NaN where nothing can be missing."""
    for name, array in arrays.items():
        if array.dtype.kind != "f":
            continue
        wrong = np.isinf(array) if _RECORDED.search(name) else ~np.isfinite(array)
        if wrong.any():
            raise ModelError(
                f"'{file}' is damaged: array '{name}' has {int(wrong.sum())} values that are not "
                f"finite numbers. Fit again, or ask whoever made the model."
            )


def check_restored(
    given: Mapping[str, NDArray[Any]], restored: Mapping[str, NDArray[Any]], path: str | Path
) -> None:
    """Raise `ModelError` unless a restored object has the arrays it was restored from."""
    odd = sorted(given.keys() ^ restored.keys())
    odd += [
        name
        for name in sorted(given.keys() & restored.keys())
        if (given[name].shape, given[name].dtype) != (restored[name].shape, restored[name].dtype)
    ]
    if odd:
        raise ModelError(
            f"'{path}' is damaged: its configuration and its arrays do not fit together (array "
            f"'{odd[0]}')."
        )


def _shapes(file: Path, size: int) -> list[list[int]]:
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        header = stream.read(length) if length <= min(size, MAX_MANIFEST) else b""
    try:
        entries = {k: v for k, v in json.loads(header).items() if k != "__metadata__"}
        unknown = {str(entry["dtype"]) for entry in entries.values()} - _DTYPES
        shapes = [[int(n) for n in entry["shape"]] for entry in entries.values()]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ModelError(f"'{file}' is damaged: its header cannot be read.") from None
    if unknown:
        raise ModelError(f"'{file}' is damaged: it holds numbers of type {sorted(unknown)[0]}.")
    return shapes


def _numbers(value: Any, name: str = "config") -> Iterator[tuple[str, float]]:
    """Every number in a configuration, with its place."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _numbers(inner, f"{name}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _numbers(inner, name)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
