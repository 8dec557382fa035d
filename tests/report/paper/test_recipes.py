"""Every name of the contract is declared, and says what is run from the paper's own rows."""

from __future__ import annotations

import pytest

from nocta.core.errors import ConfigError
from nocta.report.paper import RECIPES, find_recipe
from nocta.report.paper.evidence import folder_name
from nocta.runs.learning import build_method
from nocta.runs.record import Job
from nocta.runs.setup import DataSource, Setup

NAMES = (
    "table-synthetic table-adni table-womac table-klg figure-performance figure-roc "
    "table-embedding table-candidates table-neighbors table-kappa table-beta table-gamma "
    "figure-dynamics table-complexity theory"
).split()


def test_every_name_of_the_contract_is_there() -> None:
    assert [recipe.name for recipe in RECIPES] == NAMES


@pytest.mark.parametrize("recipe", [r for r in RECIPES if r.data], ids=lambda r: r.name)
def test_methods_know_the_options_they_are_given(recipe) -> None:
    setup = Setup(DataSource("synthetic"), preset=recipe.preset)
    for arm in recipe.arms(recipe.preset):
        build_method(setup, Job(arm.method, 0, arm.options, arm.label))


@pytest.mark.parametrize(
    ("name", "knob", "values"),
    [
        ("table-embedding", "metric", ["values", "predictor", "embedding"]),
        ("table-candidates", "n_candidates", [100, 1000, 5000, 10000] * 2),
        ("table-neighbors", "n_neighbors", [5, 10, 25]),
        ("table-kappa", "n_top_plans", [5, 10, 25]),
        ("table-beta", "similarity_scale", [0.5, 1, 2, 5]),
        ("table-gamma", "margin", [0.5, 1, 2, 5]),
    ],
)
def test_what_is_varied_is_what_the_paper_varied(name: str, knob: str, values: list) -> None:
    recipe = find_recipe(name)
    assert recipe.knobs == [knob]
    assert [arm.knob[knob] for arm in recipe.arms("paper")] == values


def test_tables_share_the_job_with_the_usual_values() -> None:
    shared = [
        find_recipe(f"table-{n}") for n in ("embedding", "neighbors", "kappa", "beta", "gamma")
    ]
    plain = {next(a for a in r.arms("paper") if not a.options).label for r in shared}
    assert plain == {"nocta-contrastive"}
    setups = [
        Setup(DataSource("synthetic"), "paper", cost_weights=r.cost_weights["synthetic"])
        for r in shared
    ]
    assert len({folder_name(setup) for setup in setups}) == 1


def test_a_knob_without_effect_brings_what_it_needs() -> None:
    arms = find_recipe("table-candidates").arms("default")
    assert all(arm.options["search"] == "uniform" for arm in arms)
    assert all("search" not in arm.options for arm in find_recipe("table-candidates").arms("paper"))


def test_misspelt_names_get_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'table-kappa'"):
        find_recipe("table-kapa")


def test_setups_that_differ_have_folders_of_their_own() -> None:
    source = DataSource("data/my clinic.csv", schema="s.toml")
    setups = [
        Setup(source),
        Setup(source, preset="paper"),
        Setup(source, availability="known"),
        Setup(source, n_points=3),
        Setup(source, cost_weights=(0.5,)),
        Setup(DataSource("pbc-stage")),
        Setup(DataSource("pbc-stage", data_options={"draw_fee": 4.0})),
        Setup(source).as_quick(),
    ]
    names = [folder_name(setup) for setup in setups]
    assert len(set(names)) == len(names)
    assert names[0] == "my_clinic-default-10-points"


def test_the_papers_rows_are_on_data_that_are_run() -> None:
    for recipe in RECIPES:
        printed = {row.dataset for row in recipe.rows if row.dataset}
        assert printed <= set(recipe.data) or not printed, recipe.name
