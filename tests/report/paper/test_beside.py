"""The paper's rows beside ours, on numbers worked by hand."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from nocta.cli.reproduce import _table
from nocta.core.errors import ConfigError
from nocta.report.paper import RECIPES, Request, Sheet, find_recipe, reproduce
from nocta.report.paper.beside import printed_rows, quality_at, sheets
from nocta.report.paper.evidence import Evidence
from nocta.runs.results import COLUMNS, write_results
from nocta.runs.setup import DataSource, Setup

#: By method and seed, cost and accuracy of the operating points.
Curves = dict[tuple[str, int], list[tuple[float, float]]]


def results(points: Curves, dataset: str = "synthetic") -> pd.DataFrame:
    rows = [
        dict.fromkeys(COLUMNS, 0)
        | {"dataset": dataset, "method": m, "seed": s, "cost": c, "setting": "{}"}
        | {"accuracy": q, "ap": q, "roc_auc": q, "cross_entropy": -q, "preset": "paper"}
        for (m, s), curve in points.items()
        for c, q in curve
    ]
    return pd.DataFrame(rows)


CURVES = {
    ("nocta-contrastive", 0): [(8.471, 0.7), (10.471, 0.9)],
    ("nocta-contrastive", 1): [(9.471, 0.7), (12.0, 0.9)],
    ("nocta-contrastive n_neighbors=10", 0): [(8.0, 0.5), (11.0, 0.5)],
    ("nocta-contrastive n_neighbors=10", 1): [(8.0, 0.6), (11.0, 0.6)],
}


def evidence(frame: pd.DataFrame, name: str) -> Evidence:
    setup = Setup(DataSource(frame["dataset"].iloc[0]), preset="paper")
    return Evidence(setup, tuple(find_recipe(name).arms("paper")), frame)


def test_ours_are_read_off_at_the_cost_of_the_paper() -> None:
    mean, error, seeds = quality_at(results(CURVES), "nocta-contrastive", "accuracy", 9.471)
    assert (mean, error, seeds) == (pytest.approx(0.75), pytest.approx(0.05), 2)


def test_costs_out_of_reach_have_no_value() -> None:
    frame = results(CURVES)
    assert quality_at(frame, "nocta-contrastive", "accuracy", 8.471)[2] == 1
    mean, _, seeds = quality_at(frame, "nocta-contrastive", "accuracy", 20.0)
    assert (math.isnan(mean), seeds) == (True, 0)
    assert quality_at(frame, "nocta-contrastive", "accuracy", 12.1)[0] == pytest.approx(0.9)


def test_a_more_expensive_point_never_stands_for_a_cheaper_one() -> None:
    frame = results({("as", 0): [(8.0, 0.5), (12.0, 0.9)], ("as", 1): [(7.0, 0.4), (12.0, 0.9)]})
    assert quality_at(frame, "as", "accuracy", 7.9)[2] == 1  # seed 0 has nothing that cheap
    assert quality_at(frame, "as", "accuracy", 12.5)[2] == 2  # a little beyond the most expensive
    assert quality_at(frame, "as", "accuracy", 12.7)[2] == 0


def folder_of(directory: Path, curves: Curves, **setup: object) -> Path:
    """A finished comparison without its jobs."""
    directory.mkdir()
    write_results(results(curves), directory / "results.csv")
    made = Setup(DataSource("synthetic"), **setup).to_dict()  # type: ignore[arg-type]
    (directory / "setup.json").write_text(json.dumps({"format": 1, "setup": made}))
    return directory


def test_two_folders_of_the_same_data_are_read_as_one(tmp_path: Path) -> None:
    first = folder_of(tmp_path / "a", {("nocta-amortized", 0): [(6.0, 0.6), (12.0, 0.9)]})
    second = folder_of(tmp_path / "b", {("ras", 0): [(6.0, 0.5), (12.0, 0.8)]})
    request = Request(tmp_path / "out", folders=(first, second))
    page = reproduce(find_recipe("table-synthetic"), request)
    (found,) = page.sheets.values()
    differences = next(sheet for sheet in found if sheet.name == "differences").frame
    assert differences[["method", "less"]].to_numpy().tolist() == [["nocta-amortized", "ras"]] * 4
    assert differences["difference"].abs().tolist() == pytest.approx([0.1] * 4)


def test_folders_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    curves = {("ras", 0): [(6.0, 0.5), (12.0, 0.8)]}
    first = folder_of(tmp_path / "a", curves)
    again = folder_of(tmp_path / "b", curves)
    other = folder_of(tmp_path / "c", curves, preset="paper")
    recipe = find_recipe("table-synthetic")
    with pytest.raises(ConfigError, match="have results of ras"):
        reproduce(recipe, Request(tmp_path / "out", folders=(first, again)))
    with pytest.raises(ConfigError, match="preset is 'paper' there and 'default' here"):
        reproduce(recipe, Request(tmp_path / "out", folders=(first, other)))


def test_options_without_effect_are_refused(tmp_path: Path) -> None:
    rules = {"availability": "known", "results": "after-visit"}
    with pytest.raises(ConfigError, match="Remove --preset, --availability, --quick or --from"):
        Request(tmp_path, folders=(tmp_path,), preset="paper", quick=True, rules=rules)
    for name in ("theory", "table-complexity"):
        with pytest.raises(ConfigError, match="always the same; leave out --seeds"):
            reproduce(find_recipe(name), Request(tmp_path, n_seeds=2))


def test_the_papers_rows_are_not_set_beside_other_prices() -> None:
    arms = tuple(find_recipe("table-synthetic").arms("default"))
    for options, shown in (({"n_subjects": 100}, True), ({"features": {"FDG": 100.0}}, False)):
        setup = Setup(DataSource("synthetic", data_options=options))
        found = printed_rows(find_recipe("table-synthetic"), Evidence(setup, arms, results(CURVES)))
        assert bool(found[0]) == shown


def test_every_row_of_the_paper_has_its_line() -> None:
    found = sheets(find_recipe("table-neighbors"), evidence(results(CURVES), "table-neighbors"))
    assert [sheet.name for sheet in found] == ["", "differences", "points"]
    first = found[0].frame
    assert first["n_neighbors"].tolist() == [5, 10, 25]
    assert first["paper_accuracy"].tolist() == [0.815, 0.801, 0.816]
    assert first["our_accuracy"].tolist()[0] == pytest.approx(0.75)
    assert first["seeds"].tolist() == [2, 2, 0]
    assert first["optimum"].iloc[0] == pytest.approx(0.870, abs=1e-3)


def test_differences_are_to_the_usual_value() -> None:
    found = sheets(find_recipe("table-neighbors"), evidence(results(CURVES), "table-neighbors"))
    table = found[1].frame.set_index("quality", drop=False)
    assert set(table["quality"]) == {"accuracy", "ap", "roc_auc", "cross_entropy"}
    row = table.loc["accuracy"]
    assert (row["method"], row["less"]) == (
        "nocta-contrastive n_neighbors=10",
        "nocta-contrastive n_neighbors=5",
    )
    # Between 9.471 and 10.471 the usual value has .85 and .7 + .1 / 2.529, the other .5 and .6.
    assert row["difference"] == pytest.approx((-0.35 - 0.1 - 0.1 / 2.529) / 2)


def test_other_data_are_shown_at_a_low_and_a_high_cost() -> None:
    frame = results(CURVES, dataset="pbc-stage")
    found = sheets(find_recipe("table-neighbors"), evidence(frame, "table-neighbors"))
    assert [sheet.name for sheet in found] == ["", "differences", "points", "paper"]
    assert found[0].frame["regime"].tolist() == ["low", "high"] * 2
    assert found[0].frame["cost"].tolist()[:2] == pytest.approx([9.721, 10.221])
    qualities = ["AP", "ROC AUC", "cross-entropy"]
    assert found[0].readable()[0] == ["method", "K", "regime", "cost", *qualities, "seeds"]
    assert found[1].frame["quality"].tolist() == ["ap", "roc_auc", "cross_entropy"]
    assert found[3].frame["accuracy"].tolist() == [0.815, 0.801, 0.816]


@pytest.mark.parametrize(
    ("name", "dataset", "n_rows", "first_ap", "place"),
    [
        ("table-embedding", "adni", 6, 0.545, ""),
        ("table-embedding", "oai-womac", 6, 0.315, ""),
        ("table-embedding", "oai-klg", 6, 0.629, ""),
        ("table-klg", "oai-klg", 20, 0.258, ""),
        ("table-synthetic", "oai-klg", 20, 0.258, "Table 11"),
        ("table-adni", "oai-womac", 23, 0.269, "Table 10"),
    ],
)
def test_the_rows_are_those_of_the_data_asked_for(
    name: str, dataset: str, n_rows: int, first_ap: float, place: str
) -> None:
    frame = results({("nocta-contrastive", 0): [(6.0, 0.6), (30.0, 0.9)]}, dataset=dataset)
    first = sheets(find_recipe(name), evidence(frame, name))[0]
    assert len(first.frame) == n_rows
    assert first.frame["paper_ap"].iloc[0] == first_ap
    assert ("Table" in first.title) == bool(place)
    assert place in first.title


def test_a_sheet_reads_well() -> None:
    frame = pd.DataFrame(
        [
            {
                "method": "nocta-contrastive",
                "n_candidates": 100,
                "metric": "values",
                "similarity_scale": 0.5,
                "cost": 9.4712,
                "cost_spread": 0.033,
                "our_ap": float("nan"),
                "our_ap_error": float("nan"),
            }
        ]
    )
    head, (row,) = Sheet("", "", frame).readable()
    assert head == ["method", "|O|", "retrieval by", "β", "cost", "our AP"]
    assert row == ["NOCT-Contrastive", "100", "feature values", "0.5", "9.47 ± 0.03", "–"]
    assert r"\|O\|" in Sheet("", "", frame).markdown()


def test_a_finished_comparison_is_read_instead_of_run(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    curves = {("nocta-contrastive", 0): [(6.0, 0.6), (12.0, 0.9)], ("static", 0): [(9.0, 0.5)]}
    write_results(results(curves), folder / "results.csv")
    setup = Setup(DataSource("synthetic"), cost_weights=(0.4,)).to_dict() | {"later": 1}
    (folder / "setup.json").write_text(json.dumps({"format": 1, "setup": setup}))
    request = Request(tmp_path / "out", folders=(folder,))
    page = reproduce(find_recipe("table-synthetic"), request)
    files = {path.name for path in page.write(tmp_path / "out")}
    assert files == {"table-synthetic.md", "table-synthetic.csv"} | {
        f"table-synthetic-{end}.csv" for end in ("points", "differences")
    }
    text = (tmp_path / "out/table-synthetic.md").read_text("utf-8")
    assert "Table 8, appendix C.2" in text
    ours = "0.774 | 0.774 | 0.774 | −0.774"
    assert f"| NOCT-Contrastive | 9.47 ± 0.03 | 0.815 ± 0.005 | {ours} | 0.870 | 1 |" in text
    assert "Not among the results: asac, ras, as, dime, difa, nocta-amortized." in text
    assert "static subset" in text


def test_what_was_varied_is_written_for_reading() -> None:
    frame = pd.DataFrame(
        {"method": ["nocta-contrastive n_neighbors=10", "nocta-contrastive metric=values", "as"]}
    )
    _, rows = Sheet("", "", frame).readable()
    assert [row[0] for row in rows] == [
        "NOCT-Contrastive, K = 10",
        "NOCT-Contrastive, retrieval by = feature values",
        "AS",
    ]


def test_without_the_usual_value_differences_are_to_the_papers_first() -> None:
    """The default preset has another K, and every arm has options it needs."""
    recipe = find_recipe("table-neighbors")
    arms = recipe.arms("default")
    curves = {(arm.label, 0): [(8.0, 0.5 + 0.1 * i), (11.0, 0.6)] for i, arm in enumerate(arms)}
    setup = Setup(DataSource("pbc-stage"), preset="default")
    found = sheets(recipe, Evidence(setup, tuple(arms), results(curves, dataset="pbc-stage")))
    table = next(sheet for sheet in found if sheet.name == "differences").frame
    assert table["less"].tolist() == ["nocta-contrastive n_neighbors=5"] * 6
    table = table[table["quality"] == "ap"]
    assert table["method"].tolist() == [f"nocta-contrastive n_neighbors={k}" for k in (10, 25)]
    assert table["difference"].min() > 0


@pytest.mark.parametrize("dataset", ["synthetic", "adni"])
@pytest.mark.parametrize("name", [r.name for r in RECIPES if r.kind == "table"])
def test_every_number_is_shown_whole_on_80_columns(name: str, dataset: str) -> None:
    recipe = find_recipe(name)
    arms = recipe.arms(recipe.preset)
    curves = {
        (arm.label, seed): [(2.0 + 0.1 * seed, 0.5), (115.25 + seed, 0.625)]
        for arm in arms
        for seed in (0, 1)
    }
    setup = Setup(DataSource(dataset), preset=recipe.preset)
    found = sheets(recipe, Evidence(setup, tuple(arms), results(curves, dataset)))
    console = Console(width=80, file=io.StringIO(), highlight=False)
    console.print(_table(found[0], console))
    text = console.file.getvalue()
    assert "…" not in text
    numbers = {part for row in found[0].readable()[1] for c in row for part in c.split(" ± ")}
    assert all(number in text for number in numbers if number[0].isdigit())
