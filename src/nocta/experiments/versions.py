"""What a result was made with: versions of the project and of what it computes with."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib import metadata

PACKAGES = ("nocta", "numpy", "scipy", "scikit-learn", "pandas", "torch")
#: Write the files that have to be the same to the bit, or find neighbours where installed.
MORE = ("pyarrow", "faiss-cpu")


def versions(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Version of Python and of each package that can change a number.

    Example:
        >>> "torch" in versions()
        True
    """
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def all_versions() -> dict[str, str]:
    """The same with what can change a byte of a file, for machines that share their work."""
    return versions((*PACKAGES, *MORE))
