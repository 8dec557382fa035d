"""Options are typed bundles; what is wrong is said in one sentence."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from sklearn.base import clone

import nocta
from nocta.core.errors import ConfigError
from nocta.core.options import (
    allowed,
    call_options,
    check_arguments,
    constructor_options,
    read_options,
)
from nocta.methods.dime.method import Dime
from nocta.model.nocta import NOCTA


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, r"width is 0; use a whole number of at least 1\.$"),
        ({"width": 2.5}, r"width is 2\.5; use a whole number"),
        ({"loss": "nll"}, "loss is 'nll'; use 'cross-entropy' or 'error'"),
        ({"kernel": "gausian"}, "Did you mean 'gaussian'"),
        ({"amortized_share": 2}, "amortized_share is 2; use a number from 0 to 1 or null"),
        ({"widht": 3}, r"no option 'widht'\. Did you mean 'width'\? Known: loss, "),
        ({"width": 0, "hidden": "x"}, r"hidden is 'x'; .*width is 0"),
    ],
)
def test_what_cannot_work_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        nocta.DefaultOptions(**options)


def test_a_bundle_or_a_dict_gives_the_same() -> None:
    bundle = nocta.DefaultOptions(width=4)
    assert read_options(nocta.DefaultOptions, bundle) is bundle
    assert read_options(nocta.DefaultOptions, {"width": 4}) == bundle
    assert read_options(nocta.DefaultOptions, None) == nocta.DefaultOptions()
    with pytest.raises(ConfigError, match="options is a PaperOptions; expected a DefaultOptions"):
        read_options(nocta.DefaultOptions, nocta.PaperOptions())


def test_the_earlier_name_of_an_option_is_read() -> None:
    old: dict[str, Any] = {"n_rehearsed": 7}
    assert nocta.DefaultOptions(**old).n_refreshed == 7
    assert "n_refreshed" in nocta.DefaultOptions().model_dump()


def test_a_model_with_a_bundle_can_be_cloned() -> None:
    model = NOCTA(options=nocta.DefaultOptions(width=4))
    again = clone(model)
    assert again.get_params() == model.get_params()


def test_every_option_says_what_it_means_and_allows() -> None:
    for bundle in (nocta.DefaultOptions, nocta.PaperOptions):
        for name, field in bundle.model_fields.items():
            assert field.description, name
            assert allowed(bundle, name), name


def test_annotations_of_a_constructor_are_checked() -> None:
    check_arguments(Dime())
    assert allowed(constructor_options(Dime), "epsilon") == "a number from 0 to 1"
    with pytest.raises(ConfigError, match="order is 'late'; use 'time' or 'value'"):
        check_arguments(Dime(order="late"))  # type: ignore[arg-type]


def test_arguments_of_a_function_are_checked_as_those_of_a_constructor() -> None:
    def load(log: object, *, task: str, price: dict[str, float], n: int = 3) -> None: ...

    bundle = call_options(partial(load, task="a"))
    assert list(bundle.model_fields) == ["price", "n"]
    bundle()  # what is not given yet is not missing
    with pytest.raises(ConfigError, match=r"price is .*; use options by name, each a number\."):
        bundle(price={"x": "much"})
    with pytest.raises(ConfigError, match="There is no option 'task'"):
        bundle(task="b")
