"""The registry: names of methods, and what is said if one does not exist."""

from __future__ import annotations

import pytest

from nocta.core.errors import ConfigError
from nocta.methods.registry import METHODS, method_class, parse_methods


def test_a_misspelt_method_is_met_with_a_suggestion():
    with pytest.raises(ConfigError, match=r"no method 'statik'\. Did you mean 'static'\?"):
        method_class("statik")
    with pytest.raises(ConfigError, match=r"'randon'.*'random'.*'nocta'"):
        parse_methods("randon,static,nocta")


def test_all_means_every_method_once():
    assert parse_methods("all") == list(METHODS)
    assert parse_methods("static,random,static") == ["static", "random"]
    with pytest.raises(ConfigError, match="No method was named"):
        parse_methods(" , ")


@pytest.mark.parametrize("name", METHODS)
def test_every_registered_method_has_its_name(name):
    assert method_class(name).name == name
