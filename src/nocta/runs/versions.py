"""Versions of the project and of the packages it computes with."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import get_args

from nocta.core.plugins import Group, plugins

PACKAGES = ("nocta", "numpy", "scipy", "scikit-learn", "pandas", "torch")
#: Packages that write files, which have to be equal byte for byte, or find neighbors.
MORE = ("pyarrow", "faiss-cpu")


@cache
def source_hash() -> str:
    """A short hash of the package's own code, which changes more often than its version."""
    root = Path(__file__).parents[1]
    found = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        found.update(path.relative_to(root).as_posix().encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:8]


def versions(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Version of Python and of each package that can change a number."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    for group in get_args(Group):  # packages that provide methods, predictors, ...
        found |= {p.dist.name: p.dist.version for p in plugins(group).values() if p.dist}
    if "nocta" in found:
        found["nocta"] += f" ({source_hash()})"
    return found


def all_versions() -> dict[str, str]:
    """The same with packages that can change a byte of a file, for machines that share work."""
    return versions((*PACKAGES, *MORE))
