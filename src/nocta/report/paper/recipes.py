"""Every table and figure of the paper as a declaration: to add one, add an entry to `RECIPES`.

The paper's rows in `report/published.toml` determine what is run: every method they name, once for
every option they vary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from nocta.core.errors import ConfigError, did_you_mean
from nocta.core.options import Preset
from nocta.report.published import PaperRow, PaperTable, paper_table
from nocta.runs.method_options import option_defaults

Kind = Literal["table", "frontiers", "dynamics", "complexity", "theory"]


@dataclass(frozen=True)
class Arm:
    """One method with its options: one line of a table.

    The knob is what the paper varied; empty if it compares methods. With the preset's own value it
    is `usual`, and not among the options.
    """

    method: str
    knob: Mapping[str, Any]
    options: Mapping[str, Any]
    label: str
    usual: bool = False

    @property
    def varied(self) -> str:
        """The method and the value of the varied option, even if it is the usual one."""
        return " ".join([self.method, *(f"{name}={value}" for name, value in self.knob.items())])


@dataclass(frozen=True)
class Recipe:
    """One table, figure or statement of the paper, and how to make ours.

    Args:
        name: Name on the command line.
        paper: Its entry in `published.toml`.
        title: What it shows.
        kind: What to make of the results; see `nocta.report.paper.make`.
        tables: Entries whose rows determine what to run; by default `paper` alone.
        data: Its data sets. If there are several, those that are not on this machine are left out.
        preset: Preset of the methods that have presets.
        n_points: Operating points per method, chosen on validation.
        cost_weights: By data set, cost weights known to fit it; they save the search.
        needs: By preset, options without which the varied option has no effect.
        metric: Metric of a figure; the headline metric by default.
    """

    name: str
    paper: str
    title: str
    kind: Kind = "table"
    tables: tuple[str, ...] = ()
    data: tuple[str, ...] = ("synthetic",)
    preset: Preset = "default"
    n_points: int = 10
    cost_weights: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    needs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    metric: str = ""

    @property
    def entry(self) -> PaperTable:
        """What the paper says, and its place."""
        return paper_table(self.paper)

    @property
    def rows(self) -> list[PaperRow]:
        """Every row of the paper that belongs here."""
        return [row for name in self.tables or (self.paper,) for row in paper_table(name).rows]

    @property
    def knobs(self) -> list[str]:
        return list(dict.fromkeys(name for arm in self.arms(self.preset) for name in arm.knob))

    def arms(self, preset: str) -> list[Arm]:
        """What to run, in the order of the paper.

        An option with its usual value is not named, so tables in one folder share that job.

        Example:
            >>> [arm.label for arm in find_recipe("table-neighbors").arms("paper")][:2]
            ['nocta-contrastive', 'nocta-contrastive n_neighbors=10']
        """
        needs = self.needs.get(preset, {})
        found: dict[str, Arm] = {}
        for row in self.rows:
            usual = option_defaults(row.method, preset)
            named = {k: v for k, v in row.knob.items() if needs or usual.get(k) != v}
            label = " ".join([row.method, *(f"{k}={v}" for k, v in named.items())])
            same = all(usual.get(k) == v for k, v in row.knob.items())
            found.setdefault(label, Arm(row.method, row.knob, {**needs, **named}, label, same))
        return list(found.values())


#: From cheap to expensive, for the published networks on the synthetic task.
_PAPER_WEIGHTS = {"synthetic": (0.57, 0.42, 0.23)}
_REAL = ("adni", "oai-womac", "oai-klg")
_REAL_TABLES = ("adni", "womac", "klg")
_ABLATION: dict[str, Any] = {"preset": "paper", "n_points": 4, "cost_weights": _PAPER_WEIGHTS}
#: Only the neighbors vote; the mean over all subjects has no share.
_OWN_VOTES = {"default": {"individual_share": 1.0}}

RECIPES: tuple[Recipe, ...] = (
    Recipe("table-synthetic", "synthetic", "all methods on the synthetic task"),
    Recipe("table-adni", "adni", "all methods on ADNI", data=("adni",)),
    Recipe("table-womac", "womac", "all methods on WOMAC pain (OAI)", data=("oai-womac",)),
    Recipe("table-klg", "klg", "all methods on Kellgren-Lawrence grade (OAI)", data=("oai-klg",)),
    Recipe(
        "figure-performance",
        "figure-performance",
        "accuracy or average precision against cost",
        kind="frontiers",
        tables=("synthetic", *_REAL_TABLES),
        data=("synthetic", *_REAL),
    ),
    Recipe(
        "figure-roc",
        "figure-roc",
        "ROC AUC against cost",
        kind="frontiers",
        tables=_REAL_TABLES,
        data=_REAL,
        metric="roc_auc",
    ),
    Recipe(
        "table-embedding",
        "embedding",
        "retrieval by values, by the predictor's state, by the learned embedding",
        data=("synthetic", *_REAL),
        needs=_OWN_VOTES,
        **_ABLATION,
    ),
    Recipe(
        "table-candidates",
        "candidates",
        "number of candidate plans |O|, both estimators",
        preset="paper",
        n_points=2,
        cost_weights={"synthetic": (0.42, 0.23)},
        needs={"default": {"search": "uniform"}},
    ),
    Recipe("table-neighbors", "neighbors", "number of neighbors K", needs=_OWN_VOTES, **_ABLATION),
    Recipe("table-kappa", "kappa", "number of top plans kappa", **_ABLATION),
    Recipe("table-beta", "beta", "scale of the similarity beta", **_ABLATION),
    Recipe("table-gamma", "gamma", "margin of the contrastive loss gamma", **_ABLATION),
    Recipe(
        "figure-dynamics",
        "figure-dynamics",
        "cost per time, stopping times, what is acquired together",
        kind="dynamics",
        data=("synthetic", "adni"),
    ),
    Recipe(
        "table-complexity",
        "complexity",
        "measured growth beside the orders",
        kind="complexity",
        data=(),
        preset="paper",
    ),
    Recipe("theory", "theory", "both claims, checked exactly", kind="theory", data=()),
)


def find_recipe(name: str) -> Recipe:
    known = {recipe.name: recipe for recipe in RECIPES}
    if name not in known:
        places = {recipe.entry.place.partition(",")[0]: recipe.name for recipe in RECIPES}
        place = name.replace("-", " ").capitalize()  # table-8 is Table 8
        hint = f" {place} is '{places[place]}'." if place in places else did_you_mean(name, known)
        raise ConfigError(
            f"Unknown table or figure '{name}'.{hint} `nocta reproduce --list` shows all: "
            f"{', '.join(known)}."
        )
    return known[name]
