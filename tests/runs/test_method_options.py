"""Options reach a method by name, whether they are its own or those of its preset."""

from __future__ import annotations

from typing import Any

import pytest

from nocta.core.errors import ConfigError
from nocta.model.presets.options import DefaultOptions
from nocta.runs.compare import make_jobs
from nocta.runs.method_options import make_method, option_defaults


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
        ({"kernel": "cubic"}, "kernel is 'cubic'; use 'uniform' or 'gaussian'"),
        ({"radius": "far"}, "radius is 'far'; use a number of at least 0 or null"),
        ({"options": {"kernel": "cubic"}}, "kernel is 'cubic'"),
    ],
)
def test_wrong_options_are_refused_before_a_fit(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_method("nocta-contrastive", options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("dime", {"order": "values"}, "order is 'values'"),
        ("dime", {"stop": "never"}, "stop is 'never'"),
        ("dime", {"hidden": 0}, "hidden is 0"),
        ("dime", {"epsilon": 7}, "epsilon is 7"),
        ("asac", {"gradient": "reinforce"}, "gradient is 'reinforce'"),
        ("asac", {"hidden": -4}, "hidden is -4"),
        ("ras", {"encoder": "lstm"}, "encoder is 'lstm'"),
        ("ras", {"tail_share": 3}, "tail_share is 3"),
        ("ras", {"learning_rate": "abc"}, "learning_rate is 'abc'"),
        ("as", {"hidden": 0.5}, "hidden is 0.5"),
        ("difa", {"hidden": 6.5}, "hidden is 6.5"),
        ("difa", {"grid": [-1]}, "grid is"),
    ],
)
def test_impossible_values_of_baselines_are_refused_before_a_fit(
    name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        make_method(name, options)


@pytest.mark.parametrize(
    ("name", "options"), [("ras", {"rounds": 40}), ("difa", {"epochs": 9, "dropouts": (0.1, 0.2)})]
)
def test_a_quick_run_keeps_what_is_given(name: str, options: dict[str, Any]) -> None:
    method: Any = make_method(name, options, quick=True)
    used = method._training() if name == "ras" else method._read_options()
    assert {option: getattr(used, option) for option in options} == options


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
