"""The subjects a saved model is judged on, and its operating points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from nocta.core.cohort import Cohort
from nocta.core.environment import Availability
from nocta.core.errors import ConfigError, DataError
from nocta.core.policy import Policy
from nocta.evaluation.audit import AuditReport, audit
from nocta.evaluation.isolation import pack
from nocta.methods.contract import Method
from nocta.methods.reference.protocol import protocol_settings
from nocta.methods.references import PLAN, with_ends
from nocta.methods.registry import add_methods, local_methods
from nocta.methods.saving import SavedMethod, as_saved, load_saved
from nocta.model.nocta import NOCTA
from nocta.runs.operating_points import MAX_CUTS
from nocta.runs.setup import DataSource, hash_data
from nocta.tables.table import read_table
from nocta.tables.validate import DIVIDING

Part = Literal["test", "validation", "all"]


@dataclass(frozen=True)
class Judged:
    """The subjects a model is judged on.

    Args:
        part: `"test"`, those kept aside when the model was fitted, `"validation"`, those it chose
            on, or `"all"`.
        note: Why these, in a sentence.
        remarks: What was left out when they were read, in sentences.
        warnings: Problems with the files.
    """

    cohort: Cohort
    part: Part
    note: str
    remarks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def subjects_to_judge(
    model: NOCTA | SavedMethod,
    data: str,
    *,
    table: bool,
    schema: Path | None = None,
    path: Path | None = None,
    part: Part | None = None,
    own: Part = "test",
    data_options: Mapping[str, Any] | None = None,
    constraints: Any = None,
) -> Judged:
    """Read data the way the model's own were read, and take the part it never saw.

    Columns that only say how subjects are split are needed for the model's own data alone.

    Args:
        model: Saved by `nocta fit`, so that it knows its split.
        data: A built-in name, or with `table` the path of a table.
        schema: Schema of a table; the model's own by default.
        path: Files of a built-in data set.
        part: By default the part `own` of the model's own data, and all of any other data.
        own: See `part`.
        data_options: Options of the loader, in place of those of the model's own data.
        constraints: What must and must not be acquired, beside the constraints of the model (of
            the schema, if one is given).
    """
    found = read_as_fitted(
        model,
        data,
        table=table,
        schema=schema,
        path=path,
        data_options=data_options,
        constraints=constraints,
    )
    cohort, said = found.cohort, {"remarks": found.remarks, "warnings": found.warnings}
    if part in ("test", "validation") and not found.same:
        raise ConfigError(
            f"'{data}' is not what the model was fitted on, so it has no {part} part. Use "
            f"--part all if none of these subjects was among the {model.record_['n_train']} "
            f"it was trained on."
        )
    if found.same and part != "all":
        chosen = part or own
        _, val, test = found.parts(model)
        if chosen == "test":
            note = f"{len(test)} subjects kept aside when the model was fitted"
            return Judged(test, "test", note, **said)
        note = (
            f"{len(val)} validation subjects of the fit, which also decided when training stopped"
        )
        return Judged(val, "validation", note, **said)
    warning = (
        "all subjects, including those it was trained on, so scores are optimistic"
        if found.same
        else "all subjects of other data; none may be among those it was trained on"
    )
    return Judged(cohort, "all", f"{len(cohort)} subjects: {warning}", **said)


@dataclass(frozen=True)
class ReadData:
    """Data read the way those of a model were.

    Args:
        source: How they would be split.
        same: Whether they are the data of the fit, whatever the prices.
        remarks: What was left out, in sentences.
        warnings: Problems with the files.
    """

    cohort: Cohort
    source: DataSource
    same: bool
    remarks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def parts(self, model: NOCTA | SavedMethod) -> tuple[Cohort, Cohort, Cohort]:
        """Train, validation and test subjects, as the fit split them."""
        if self.source.schema is not None and self.same:
            _check_split(model, self.cohort, self.source.data)
        return self.source.split(self.cohort, model.record_["request"]["seed"])


def read_as_fitted(
    model: NOCTA | SavedMethod,
    data: str,
    *,
    table: bool,
    schema: Path | None = None,
    path: Path | None = None,
    data_options: Mapping[str, Any] | None = None,
    constraints: Any = None,
) -> ReadData:
    """Read data the way a model's own were read; see `subjects_to_judge`."""
    request = model.record_.get("request")
    if request is None:
        raise ConfigError("This model does not say how its data were split; use `nocta fit`.")
    stored = request["source"]
    known = stored.get("data_options", {}) if data == stored["data"] else {}
    source = DataSource(
        data=data,
        schema="the model's" if table else None,
        path=None if path is None else str(path),
        split_column=stored["split_column"],
        fractions=None if stored["fractions"] is None else tuple(stored["fractions"]),
        data_options={**known, **(data_options or {})},
    )
    said: dict[str, Any]
    if table:
        how = model.schema_ if schema is None else schema
        # Other data need not have every class and visit.
        reading = read_table(Path(data), how, part=True, optional=DIVIDING)
        cohort, said = reading.cohort, {"remarks": reading.notes}
        if not cohort.labeled.any():
            raise DataError(f"'{data}': no row has a label, so there is nothing to judge by.")
    else:
        cohort, summary = source.load(request["seed"]), source.summary(request["seed"])
        said = {"remarks": summary.remarks, "warnings": summary.warnings}
    model.check_fits(cohort)
    # At other prices they are still the same subjects.
    same = hash_data(cohort.with_catalog(model.catalog_)) == request["data_hash"]
    if schema is None:
        cohort = cohort.constrained(model.catalog_.constraints)
    return ReadData(cohort.constrained(constraints), source, same, **said)


def _check_split(model: NOCTA | SavedMethod, cohort: Cohort, data: str) -> None:
    """Refuse to guess the test subjects if the columns that decide the split are not the same."""
    here = {"split": cohort.fixed_split, "group": cohort.groups}
    for role, assigned in here.items():
        then = model.schema_.get(role)
        now = None if assigned is None else (cohort.schema or {}).get(role)
        if now != then:
            raise ConfigError(
                f"The model was fitted on '{data}' with {_column(then)} as its {role}, but the "
                f"table was read with {_column(now)}, so the test subjects are not known. Give "
                f"the table and the schema of the fit, or use --part all."
            )


def _column(name: str | None) -> str:
    return "no column" if name is None else f"column '{name}'"


def settings_of(
    model: NOCTA | SavedMethod,
    cost_weights: Sequence[float],
    budgets: Sequence[float],
    n_points: int,
) -> list[dict[str, Any]]:
    """Operating points: all pairs of what is given, or those kept with the model.

    With budgets alone the cost weight is that of the model's default point, as in `nocta plan` and
    in Python. A method without a cost weight keeps its own settings, under each budget. Acquiring
    nothing and everything are the ends of what is kept; fixed schedules of the fit come last.
    """
    model = as_saved(model)
    if not model.method.has_cost_weight:
        return _own_settings(model, cost_weights, budgets, n_points)
    if budgets:
        weights = sorted(cost_weights, reverse=True) or [model.default_point.cost_weight]
        return [{"cost_weight": w, "budget": b} for b in sorted(budgets) for w in weights]
    if cost_weights:
        return [{"cost_weight": w} for w in sorted(cost_weights, reverse=True)]
    if not model.settings:
        raise ConfigError("This model keeps no cost weights; give --cost-weights or --budgets.")
    return with_references(model, _spread(model, n_points))


def with_references(model: SavedMethod, kept: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Settings between their ends, and the schedules that the fit compared them with."""
    known = [dict(point["setting"]) for point in model.record_.get("references", [])]
    schedules = [setting for setting in known if setting["acquire"] == PLAN]
    ends = {setting["acquire"]: setting for setting in known if setting["acquire"] != PLAN}
    return [*(ends.get(s.get("acquire"), s) for s in with_ends(kept)), *schedules]


def protocols_to_judge(model: NOCTA | SavedMethod, judged: Judged) -> list[dict[str, Any]]:
    """The fixed schedules of the schema as reference points; the default point predicts."""
    model, catalog = as_saved(model), judged.cohort.catalog
    if not catalog.protocols:
        return []
    return protocol_settings(catalog, model.default_point.setting)


def _own_settings(
    model: SavedMethod, cost_weights: Sequence[float], budgets: Sequence[float], n_points: int
) -> list[dict[str, Any]]:
    if cost_weights:
        raise ConfigError(
            f"Method '{model.name}' has no cost weight; leave out --cost-weights to use the "
            f"{len(model.settings)} operating points it keeps."
        )
    kept = _spread(model, n_points)
    if not budgets:
        return with_references(model, kept)
    return [{**s, "budget": b} for b in sorted(budgets) for s in kept]


def _spread(model: SavedMethod, n_points: int) -> list[dict[str, Any]]:
    """About `n_points` of the operating points, the first, the last and the default among them."""
    kept, default = model.settings, model.default_point.setting
    n = min(n_points, len(kept))
    places = [round(i * (len(kept) - 1) / max(n - 1, 1)) for i in range(n)]
    if default in kept:
        place = kept.index(default)
        inner = [i for i in places[1:-1] if i != place]
        if place not in places and inner:  # it takes the place of its neighbor
            places.remove(min(inner, key=lambda i: abs(i - place)))
        places = sorted({*places, place})
    return [kept[i] for i in places]


def packed_policy(folder: Path, setting: Mapping[str, Any]) -> bytes:
    """The policy of a saved model, for a process that loads the folder itself.

    Nothing of the model runs here, where the hidden values are.
    """
    return pack(partial(_load_policy, str(folder.resolve()), dict(setting), local_methods()))


def _load_policy(
    folder: str, setting: Mapping[str, Any], known: Mapping[str, type[Method]]
) -> Policy:
    add_methods(known)
    return load_saved(folder).policy(setting)


def audit_sample(
    folder: Path,
    seed: int,
    judged: Judged,
    setting: Mapping[str, Any],
    availability: Availability,
    n_subjects: int,
) -> AuditReport:
    """Audit a sample of subjects: the policy uses nothing it has not acquired."""
    return audit(
        packed_policy(folder, setting),
        judged.cohort,
        n_subjects=n_subjects,
        seed=seed,
        budget=setting.get("budget"),
        availability=availability,
        n_cuts=min(judged.cohort.n_times + 1, MAX_CUTS),
    )
