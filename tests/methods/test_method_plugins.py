"""Methods and estimators of other packages are found by name, here and in other processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nocta
from foreign_predictors import PrevalencePredictor
from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, ModelError
from nocta.core.plugins import plugins
from nocta.methods import registry
from nocta.methods.registry import is_local, method_class, method_names, parse_methods
from nocta.methods.saving import check_savable
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.testing import check_policy

STRANGERS = '''
import numpy as np
import nocta
from nocta.methods.fixed import FixedPlanPolicy


class Early(nocta.Method):
    """Acquires everything at the first slot."""

    name = "early"
    shares_predictor = True

    def fit(self, train, val, *, seed, predictor=None, progress=False):
        self.plan_, self.predictor_ = train.catalog.open_slots.copy(), predictor
        self.plan_[1:] = False
        return self

    def settings(self, val, n_points):
        return [{}]

    def policy(self, setting):
        return FixedPlanPolicy(self.plan_, self.predictor_)


class Frugal(nocta.NoctEstimator):
    """Each slot saves a little."""

    def fit(self, train, val, predictor, *, seed, progress=False):
        self.gain_ = 0.1
        return self

    def score_plans(self, observation, plans):
        saved = self.gain_ * np.log1p(plans.sum(axis=(-2, -1)))
        return np.broadcast_to(2.0 - saved, (len(observation), plans.shape[-3]))

    def state(self):
        return {"gain": self.gain_}, {}

    @classmethod
    def from_state(cls, config, arrays):
        out = cls()
        out.gain_ = config["gain"]
        return out


class Broken(Frugal):
    """Gives one score too few."""

    def score_plans(self, observation, plans):
        return super().score_plans(observation, plans)[:, 1:]


class NotOurs:
    pass
'''
ENTRY_POINTS = """
[nocta.methods]
early = strangers:Early
wrong = strangers:NotOurs
[nocta.estimators]
frugal = strangers:Frugal
broken = strangers:Broken
"""


def install(folder: Path, points: str) -> None:
    info = folder / "strangers-0.1.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strangers\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(points)
    (folder / "strangers.py").write_text(STRANGERS)
    forget()


def forget() -> None:
    plugins.cache_clear()
    registry._installed_class.cache_clear()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "strangers", raising=False)
    install(folder, ENTRY_POINTS)
    yield folder
    forget()


def test_installed_names_are_known_and_not_part_of_all(site: Path) -> None:
    assert {"early", "nocta-frugal"} <= set(method_names())
    assert parse_methods("early,nocta-frugal") == ["early", "nocta-frugal"]
    assert "early" not in parse_methods("all")
    assert method_class("early").name == "early"
    assert not is_local("early")
    with pytest.raises(ConfigError, match=r"no method 'nocta-frugl'\. Did you mean 'nocta-frugal'"):
        method_class("nocta-frugl")


def test_other_processes_find_them(site: Path) -> None:
    code = (
        "from nocta.methods.registry import method_class as m; print(m('nocta-frugal').estimator)"
    )
    path = [str(site), *sys.path]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}; {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "frugal"


def test_an_installed_estimator_plans_explains_and_is_saved(
    site: Path, clinic: list[Cohort], predictor: CrossFittedPredictor, tmp_path: Path
) -> None:
    train, val, test = clinic
    options = {"n_candidates": 50}
    model = nocta.NOCTA("frugal", options=options).fit(train, val, predictor=predictor)
    done = model.rollout(test, cost_weight=0.01)
    assert 0 < done.cost < model.rollout(test, cost_weight=0.0).cost
    check_policy(lambda _: model.policy(0.01), test, n_cuts=2, n_alone=1)
    found = model.decide(nocta.History.empty(test.catalog, test.context[:1]), 0.01)
    assert found.stopping.expected_loss == pytest.approx(2.0)
    model.save(tmp_path / "m")
    again = nocta.load(tmp_path / "m").rollout(test, cost_weight=0.01)
    assert np.array_equal(done.history.requested, again.history.requested)
    install(site, "")
    with pytest.raises(
        ModelError, match=r"^The model .* estimator 'frugal', which is not installed"
    ):
        nocta.load(tmp_path / "m")


def test_an_installed_estimator_is_a_method(
    site: Path, clinic: list[Cohort], predictor: CrossFittedPredictor
) -> None:
    cls = method_class("nocta-frugal")
    assert cls.__doc__ == "Each slot saves a little."
    method = cls(options={"n_candidates": 20}, quick=True)  # type: ignore[call-arg]
    method.check_options()
    method.fit(clinic[0], clinic[1], seed=0, predictor=predictor)
    assert 1 <= len(method.settings(clinic[1], 2)) <= 2
    check_savable("nocta-frugal")
    with pytest.raises(ConfigError, match="'early' cannot be saved"):
        check_savable("early")


def test_scores_of_the_wrong_shape_are_named(
    site: Path, clinic: list[Cohort], predictor: CrossFittedPredictor
) -> None:
    model = nocta.NOCTA("broken").fit(clinic[0], clinic[1], predictor=predictor)
    with pytest.raises(ConfigError, match="estimator 'broken' gave shape"):
        model.rollout(clinic[2])


def test_what_does_not_keep_the_contract_is_named(site: Path) -> None:
    with pytest.raises(ConfigError, match=r"'wrong' of 'nocta\.methods' .* expected a"):
        method_class("wrong")
    with pytest.raises(ConfigError, match=r"no estimator 'amortised'\. Did you mean 'amortized'"):
        nocta.NOCTA("amortised").fit(None, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("group", "point", "method", "message"),
    [
        ("methods", "static", "static", "provides the method 'static'"),
        ("estimators", "amortized", "nocta-amortized", "provides the method 'nocta-amort"),
        ("methods", "late", "late", "expected a class whose `name` is 'late'"),
    ],
)
def test_a_wrong_name_is_refused_only_when_it_is_used(
    site: Path, group: str, point: str, method: str, message: str
) -> None:
    install(site, f"[nocta.{group}]\n{point} = strangers:Early")
    assert parse_methods("nothing") == ["nothing"]
    assert method_class("nothing").name == "nothing"
    with pytest.raises(ConfigError, match=message):
        method_class(method)


def test_an_estimator_with_a_built_in_name_is_refused_only_when_it_is_used(site: Path) -> None:
    install(site, "[nocta.estimators]\namortized = strangers:Frugal\nfrugal = strangers:Frugal")
    assert method_class("nocta-frugal").name == "nocta-frugal"
    with pytest.raises(ConfigError, match="provides the estimator 'amortized'"):
        nocta.NOCTA("amortized").fit(None, None)  # type: ignore[arg-type]


def test_two_packages_with_one_name_are_refused_only_when_it_is_used(site: Path) -> None:
    second = site / "others-0.1.dist-info"
    second.mkdir()
    (second / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 0.1\n")
    (second / "entry_points.txt").write_text("[nocta.methods]\nearly = others:Early\n")
    forget()
    assert method_class("static").name == "static"
    with pytest.raises(ConfigError, match="Two installed packages provide 'early'"):
        method_class("early")


def test_an_installed_estimator_gets_a_cross_fitted_predictor(
    site: Path, clinic: list[Cohort]
) -> None:
    class Sized(PrevalencePredictor):
        def __len__(self) -> int:
            return 0

    given = Sized()
    cls: Any = method_class("nocta-frugal")
    cls("paper").check_predictor(given)  # needs no network
    model = nocta.NOCTA("frugal", "paper").fit(*clinic[:2], predictor=given)
    assert isinstance(model.planner_.predictor, CrossFittedPredictor)
    assert {type(member) for member in model.planner_.predictor.members} == {Sized}
