"""What is held fixed over a comparison: the data, the split, the preset, the rules.

Two results belong into one folder when their `Setup` is the same; methods and seeds may be added.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.environment import Availability, Results
from nocta.core.errors import ConfigError, DataError
from nocta.predictors.registry import check_predictor_name
from nocta.runs.files import file_stamps

if TYPE_CHECKING:
    from nocta.datasets import LoadReport

DEFAULT_FRACTIONS = (0.70, 0.15, 0.15)
#: More subjects than this choose nothing better; of more, an even sample is taken.
MOST_VALIDATION = 10_000
QUICK_SUBJECTS = 800
QUICK_POINTS = 4
QUICK_TRIALS = 3
_PART_NAMES = (
    {"train", "training"},
    {"val", "valid", "validation", "dev"},
    {"test", "testing"},
)


@dataclass(frozen=True)
class DataSource:
    """Where the subjects come from and how they are divided.

    A data set that is drawn (its loader takes a `seed`, as `synthetic` does) is drawn anew with
    every seed. Any other is the same for every seed; the seed decides the split.

    Args:
        data: A built-in name, or the path of a table.
        schema: Path of the table's schema; `None` for a built-in data set.
        path: Folder or file of a built-in data set that has to be downloaded.
        split_column: Use parts assigned beforehand: this column of a table, or the own split
            of a built-in data set, by the name its card gives it. Parts are called train, val
            and test; where there are only two, the first one in alphabetical order (or train)
            is divided further by the seed.
        fractions: Size of train, validation and test; the data set's own by default.
        max_subjects: Take at most this many subjects, drawn with the seed; for rehearsals.
        data_options: Options of a built-in data set's loader, as plain data; its card lists
            them. A data set that is drawn is the same for every seed where its own is given.
    """

    data: str
    schema: str | None = None
    path: str | None = None
    split_column: str | None = None
    fractions: tuple[float, ...] | None = None
    max_subjects: int | None = None
    data_options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data_options", _as_json(self.data_options))
        sizes = self.fractions
        if sizes is not None and (len(sizes) != 3 or min(sizes) <= 0 or abs(sum(sizes) - 1) > 1e-6):
            raise ConfigError(
                f"fractions are {', '.join(f'{size:g}' for size in sizes)}; expected the sizes of "
                f"train, validation and test, three numbers above 0 that sum to 1: 0.7,0.15,0.15."
            )

    @property
    def is_drawn(self) -> bool:
        """Whether each seed draws subjects of its own."""
        from nocta import datasets

        if self.schema is not None or "seed" in self.data_options:
            return False
        return "seed" in datasets.get(self.data).options

    @property
    def is_as_published(self) -> bool:
        """Whether it is a built-in data set with its own features, prices and labels.

        Only then do results of others, or a known optimum, belong beside it. How many subjects
        are drawn changes nothing.
        """
        return self.schema is None and self.data_options.keys() <= {"n_subjects", "seed"}

    def load(self, seed: int) -> Cohort:
        """The whole cohort of a seed. A process reads files once, however many jobs it runs."""
        cohort, _ = self._read(seed)
        if self.max_subjects is not None and len(cohort) > self.max_subjects:
            rng = np.random.default_rng(seed)
            cohort = cohort.subset(np.sort(rng.permutation(len(cohort))[: self.max_subjects]))
        return cohort

    def report(self, seed: int) -> LoadReport:
        """What was read for a seed, what was left out, and why; files are not read again."""
        return self._read(seed)[1]()

    def _read(self, seed: int) -> _Reading:
        # Who belongs to which part does not matter for the reading; a split column does.
        source = replace(self, fractions=None, max_subjects=None)
        return _read(source, seed if self.is_drawn else 0, self.stamp())

    def stamp(self) -> tuple[Any, ...]:
        """Sizes and times of change of the files it names; whoever keeps a reading asks them."""
        named = (None if self.schema is None else self.data, self.schema, self.path)
        return tuple(file_stamps(Path(n).expanduser()) for n in named if n is not None)

    def _load_table(self) -> _Reading:
        from nocta.datasets import LoadLog, LoadReport
        from nocta.tables.table import read_table

        assert self.schema is not None
        if self.data_options:
            raise ConfigError(
                f"'{self.data}' is a table, which is read as its schema says; data_options are "
                f"for built-in data sets."
            )
        schema: Path | dict[str, Any] = Path(self.schema)
        if self.split_column is not None:
            found = tomllib.loads(Path(self.schema).read_text("utf-8"))
            schema = {**found, "split": self.split_column}
        reading = read_table(Path(self.data), schema)
        log = LoadLog(sources=[self.data], notes=list(reading.notes))
        return reading.cohort, lambda: LoadReport.of(reading.cohort, log)

    def _load_built_in(self, seed: int) -> _Reading:
        from nocta import datasets

        options = {**self.data_options, **({"seed": seed} if self.is_drawn else {})}
        cohort, report = datasets.load_with_report(self.data, path=self.path, **options)
        return cohort, lambda: report

    def check_split_column(self) -> None:
        """Refuse a split column that a built-in data set does not have; nothing is read.

        That of a table is looked for when the table is read.
        """
        from nocta import datasets

        if self.schema is None and self.split_column is not None:
            datasets.get(self.data).check_split_column(self.split_column)

    def split(self, cohort: Cohort, seed: int) -> tuple[Cohort, Cohort, Cohort]:
        """Train, validation and test subjects of a seed; validation is capped in size."""
        fixed = self.split_column is not None or (
            self.schema is not None and cohort.fixed_split is not None
        )
        parts = self._fixed_parts(cohort, seed) if fixed else cohort.split(self._sizes, seed)
        train, val, test = parts
        return train, val.sample(MOST_VALIDATION), test

    @property
    def _sizes(self) -> tuple[float, ...]:
        if self.fractions is not None:
            return self.fractions
        if self.schema is not None:
            return DEFAULT_FRACTIONS
        from nocta import datasets

        return datasets.get(self.data).fractions

    def _fixed_parts(self, cohort: Cohort, seed: int) -> list[Cohort]:
        self.check_split_column()
        if cohort.fixed_split is None:
            raise ConfigError(
                f"'{self.data}' was read without its split column '{self.split_column}'; name it "
                f'in the schema: split = "{self.split_column}".'
            )
        train, val, test = _read_parts(cohort.fixed_split)
        if val is not None and self.fractions is not None:
            raise ConfigError(
                f"--fractions has nothing to divide: the split column of '{self.data}' names "
                f"training, validation and test subjects. Leave one of the two out."
            )
        if val is not None:
            return [cohort.subset(np.flatnonzero(part)) for part in (train, val, test)]
        a, b, _ = self._sizes
        learn = cohort.subset(np.flatnonzero(train)).split((a / (a + b), b / (a + b)), seed)
        return [*learn, cohort.subset(np.flatnonzero(test))]


#: A cohort, and the report on how it was read, made when asked for.
_Reading = tuple[Cohort, Callable[[], "LoadReport"]]


@lru_cache(maxsize=2)
def _read(source: DataSource, seed: int, stamp: tuple[Any, ...]) -> _Reading:
    return source._load_table() if source.schema else source._load_built_in(seed)


def _read_parts(
    assigned: NDArray[Any],
) -> tuple[NDArray[np.bool_], NDArray[np.bool_] | None, NDArray[np.bool_]]:
    """Who belongs to train, validation (where there is one) and test."""
    found = sorted({str(name) for name in assigned})
    slots = [next((f for f in found if f.lower() in names), None) for names in _PART_NAMES]
    if len(found) == 2 and slots == [None, None, None]:
        slots = [found[0], None, found[1]]  # set a and set b, as challenges have it
    train, val, test = slots
    if train is None or test is None or len(found) != 2 + (val is not None):
        raise DataError(
            f"The split has the parts {', '.join(repr(f) for f in found)}; expected train, val "
            f"and test, or two parts of which the first is for training."
        )
    text = np.array([str(name) for name in assigned])
    return text == train, None if val is None else text == val, text == test


@dataclass(frozen=True)
class Setup:
    """Everything two rows of one comparison have in common.

    Args:
        source: The data and the split.
        preset: `"default"` or `"paper"`; given to every method that has presets.
        availability: See `nocta.core.environment`.
        results: See `nocta.core.environment`; the methods are trained under the same rule.
        n_points: Operating points per method, chosen by the method on validation.
        cost_weights: Operating points of the methods whose knob is a cost weight.
        budgets: Operating points of the methods that can keep to a hard budget.
        predictor: What methods without a predictor of their own acquire for: `"learned"`,
            `"bayes"` (the exact filter of a finite task), or the name of a plug-in.
        quick: A rehearsal: few subjects, short training, few operating points.
        n_trials: Options that every method may try on validation, its defaults among them; 0
            tunes nothing.
        audit_subjects: How many subjects are audited in a job, shared out over its operating
            points; 0 audits nothing.
    """

    source: DataSource
    preset: Literal["default", "paper"] = "default"
    availability: Availability = "on-arrival"
    results: Results = "after-visit"
    n_points: int = 10
    cost_weights: tuple[float, ...] = ()
    budgets: tuple[float, ...] = ()
    predictor: str = "learned"
    quick: bool = False
    n_trials: int = 0
    audit_subjects: int = 48

    def __post_init__(self) -> None:
        checks = {
            "preset": self.preset in ("default", "paper"),
            "availability": self.availability in ("on-arrival", "known"),
            "results": self.results in ("after-visit", "at-once"),
            "n_points": self.n_points >= 1,
            "cost_weights": all(np.isfinite(w) and w >= 0 for w in self.cost_weights),
            "budgets": all(np.isfinite(b) and b >= 0 for b in self.budgets),
            "n_trials": self.n_trials >= 0,
        }
        for name, good in checks.items():
            if not good:
                raise ConfigError(f"{name} is {getattr(self, name)!r}; {_EXPECTED[name]}.")
        check_predictor_name(self.predictor)

    def rehearsal(self) -> Setup:
        """The same, small enough to see within a minute or two that everything works."""
        return replace(
            self,
            quick=True,
            n_points=min(self.n_points, QUICK_POINTS),
            n_trials=min(self.n_trials, QUICK_TRIALS),
            source=replace(self.source, max_subjects=QUICK_SUBJECTS),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as it is written beside the results."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain

    def differences(self, other: dict[str, Any]) -> list[str]:
        """In words, where another setup (as plain data) is not the same."""
        here = flat_request(self.to_dict(), type(self))
        there = flat_request(_plain(other), type(self))
        return [
            f"{name} is {there.get(name)!r} there and {here.get(name)!r} here"
            for name in sorted(here.keys() | there.keys())
            if here.get(name) != there.get(name)
        ]


_EXPECTED = {
    "preset": "use 'default' or 'paper'",
    "availability": "use 'on-arrival' or 'known'",
    "results": "use 'after-visit' or 'at-once'",
    "n_points": "ask for at least one operating point",
    "cost_weights": "use numbers of at least 0",
    "budgets": "use numbers of at least 0",
    "n_trials": "use a number of at least 0",
}


def data_fingerprint(cohort: Cohort) -> str:
    """A hash of everything recorded and of every price: changed data is noticed."""
    digest = hashlib.sha256(repr(cohort.catalog.to_dict()).encode())
    for array in (cohort.values, cohort.labels, cohort.visits, cohort.context):
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    digest.update("\n".join(map(str, cohort.subjects.tolist())).encode())
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def flat_request(request: Mapping[str, Any], kind: type[Any]) -> dict[str, Any]:
    """A recorded setup or fit with its source's entries beside its own, ready to be compared.

    Args:
        request: As plain data. What an older version did not write down was as it is by
            default now.
        kind: The dataclass it was made from.
    """
    found = {**_defaults(kind), **request}
    source = {**_defaults(DataSource), **found.pop("source", {})}
    return {**found, **source}


def _defaults(kind: type[Any]) -> dict[str, Any]:
    given = {f.name: f.default for f in fields(kind) if f.default is not MISSING}
    made = {f.name: f.default_factory() for f in fields(kind) if f.default_factory is not MISSING}
    plain: dict[str, Any] = _plain({**given, **made})
    return plain


def _as_json(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as they will be read again from the file they are written to."""
    try:
        found: dict[str, Any] = json.loads(json.dumps(dict(options)))
    except TypeError as error:
        raise ConfigError(
            f"data_options must be plain data (numbers, texts, lists, mappings), for they are "
            f"written beside the results: {error}. Load such data in Python, with "
            f"nocta.datasets.load, and give the cohort itself."
        ) from error
    return found
