"""Errors keep their promises: also scikit-learn's, and cheap to import."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from nocta.core.errors import NoctaError, NotFittedError


@pytest.mark.parametrize("caught", [NotFittedError, NoctaError, SklearnNotFittedError, ValueError])
def test_not_fitted_is_caught_as_ours_and_as_sklearns(caught: type[Exception]) -> None:
    with pytest.raises(caught, match="call fit"):
        raise NotFittedError("call fit")


def test_not_fitted_survives_a_worker_process() -> None:
    again = pickle.loads(pickle.dumps(NotFittedError("call fit")))
    assert isinstance(again, NotFittedError)
    assert isinstance(again, SklearnNotFittedError)
    assert again.args == ("call fit",)


def test_importing_the_errors_does_not_import_sklearn() -> None:
    code = "import sys, nocta.core.errors; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
