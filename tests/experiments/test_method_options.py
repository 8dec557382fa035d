"""Options reach a method by name, whether they are its own or those of its preset."""

from __future__ import annotations

from typing import Any

import pytest

from nocta.exceptions import ConfigError
from nocta.experiments.compare import make_jobs
from nocta.experiments.method_options import make_method, option_defaults
from nocta.presets.options import DefaultOptions


def test_options_of_the_preset_are_bundled() -> None:
    method: Any = make_method("nocta-ensemble", {"hidden": 32, "options": {"width": 4}}, quick=True)
    assert method.options == {"width": 4, "hidden": 32}
    assert (method.preset, method.quick) == ("default", True)


def test_without_options_a_method_has_its_defaults() -> None:
    method: Any = make_method("nocta-contrastive", {}, preset="paper")
    assert method.options is None
    assert method.preset == "paper"


def test_the_preset_decides_which_options_there_are() -> None:
    paper: Any = make_method("nocta-contrastive", {"n_top_plans": 3}, preset="paper")
    assert paper.options == {"n_top_plans": 3}
    with pytest.raises(ConfigError, match="no option 'n_top_plans'"):
        make_method("nocta-contrastive", {"n_top_plans": 3})
    own: Any = make_method("nocta-contrastive", {"n_top_plans": 3, "preset": "paper"})
    assert own.options == {"n_top_plans": 3}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernal": "uniform"}, r"no option 'kernal'\. Did you mean 'kernel'"),
        ({"kernel": "cubic"}, "kernel is 'cubic'; use one of 'uniform', 'gaussian'"),
        ({"radius": "far"}, "cannot use radius = 'far'"),
        ({"options": {"kernel": "cubic"}}, "kernel is 'cubic'"),
    ],
)
def test_wrong_options_are_refused_before_a_fit(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_method("nocta-contrastive", options)


def test_defaults_are_those_of_constructor_and_preset() -> None:
    assert option_defaults("fake-honest")["n_visits"] == 2
    found = option_defaults("nocta-amortized")
    assert found["n_rounds"] == DefaultOptions().n_rounds
    assert "quick" not in found


def test_every_seed_of_a_method_has_its_options() -> None:
    jobs = make_jobs(["static", "fake-honest"], [0, 1], {"fake-honest": {"n_visits": 1}})
    assert [(job.method, dict(job.options)) for job in jobs] == [
        ("static", {}),
        ("static", {}),
        ("fake-honest", {"n_visits": 1}),
        ("fake-honest", {"n_visits": 1}),
    ]
