"""What a result was made with: versions of the project and of what it computes with."""

from __future__ import annotations

import platform
from importlib import metadata

PACKAGES = ("nocta", "numpy", "scipy", "scikit-learn", "pandas", "torch")


def versions() -> dict[str, str]:
    """Version of Python and of each package that can change a number.

    Example:
        >>> "torch" in versions()
        True
    """
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
