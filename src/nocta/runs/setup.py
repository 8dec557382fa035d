"""What is held fixed over a comparison: the data, the split, the preset, the rules.

Two results belong in one folder if their `Setup` is the same; methods and seeds may be added.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nocta.core.cohort import Cohort
from nocta.core.constraints import Constraints
from nocta.core.environment import Availability, Results
from nocta.core.errors import ConfigError, DataError
from nocta.core.options import Count, CountOrZero, NonNegative, Preset, check_arguments
from nocta.model.files import file_states
from nocta.predictors.registry import check_predictor_name
from nocta.runs.checkpoint import differences
from nocta.runs.results import plain

if TYPE_CHECKING:
    from nocta.datasets import Card, LoadSummary

DEFAULT_FRACTIONS = (0.70, 0.15, 0.15)
#: A larger validation part is sampled evenly; more subjects do not choose better.
MOST_VALIDATION = 10_000
QUICK_SUBJECTS = 800
QUICK_POINTS = 4
QUICK_TRIALS = 3
_PART_NAMES = ({"train", "training"}, {"val", "valid", "validation", "dev"}, {"test", "testing"})


@dataclass(frozen=True)
class DataSource:
    """Where the subjects come from and how they are split.

    A data set that is drawn (its loader takes a `seed`, as `synthetic` does) is drawn again with
    every seed. Any other is the same for every seed; the seed decides the split.

    Args:
        data: A built-in name, or the path of a table.
        schema: Path of the table's schema; `None` for a built-in data set.
        path: Folder or file of a built-in data set that has to be downloaded.
        split_column: Use parts assigned beforehand: this column of a table, or the own split
            of a built-in data set, by the name its card gives it. Parts are called train, val
            and test. If there are only two, the seed divides the first one in alphabetical
            order (or train) into training and validation.
        fractions: Size of train, validation and test; the data set's own by default.
        max_subjects: Take at most this many subjects, drawn with the seed; for quick runs.
        data_options: Options of a built-in data set's loader, as plain data; its card lists
            them. With an option `seed`, a drawn data set is the same for every seed of the run.
        constraints: What must and must not be acquired, beside the schema's own constraints; as in
            `schema.toml`, or as sentences (see `Constraints.read`).
    """

    data: str
    schema: str | None = None
    path: str | None = None
    split_column: str | None = None
    fractions: tuple[float, ...] | None = None
    max_subjects: Count | None = None
    data_options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    constraints: Any = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data_options", _as_json(self.data_options))
        object.__setattr__(self, "constraints", Constraints.read(self.constraints).to_dict())
        check_arguments(self)
        sizes = self.fractions
        if sizes is not None and (len(sizes) != 3 or min(sizes) <= 0 or abs(sum(sizes) - 1) > 1e-6):
            raise ConfigError(
                f"fractions are {', '.join(f'{size:g}' for size in sizes)}; expected the sizes of "
                f"train, validation and test, three numbers above 0 that sum to 1: 0.7,0.15,0.15."
            )

    @property
    def card(self) -> Card | None:
        """The card of a built-in data set; `None` for a table, whatever its name."""
        from nocta import datasets

        return datasets.card(self.data) if self.schema is None else None

    @property
    def headline(self) -> str:
        """The metric that results are ranked and drawn by; average precision for a table."""
        return "ap" if self.card is None else self.card.headline

    @property
    def is_drawn(self) -> bool:
        """Whether each seed draws its own subjects."""
        from nocta import datasets

        if self.schema is not None or "seed" in self.data_options:
            return False
        return "seed" in datasets.get(self.data).options

    @property
    def is_as_published(self) -> bool:
        """Whether it is a built-in data set with its own features, prices and labels.

        Only then can it be compared with published results or a known optimum, and only without
        constraints. The number of drawn subjects does not matter.
        """
        plain_data = self.data_options.keys() <= {"n_subjects", "seed"}
        return self.schema is None and plain_data and not self.constraints

    def load(self, seed: int) -> Cohort:
        """The whole cohort of a seed. A process reads files once, however many jobs it runs."""
        cohort, _ = self._read(seed)
        if self.max_subjects is not None and len(cohort) > self.max_subjects:
            rng = np.random.default_rng(seed)
            cohort = cohort.subset(np.sort(rng.permutation(len(cohort))[: self.max_subjects]))
        return cohort.constrained(self.constraints)

    def summary(self, seed: int) -> LoadSummary:
        """What was read for a seed, what was left out, and why; files are not read again."""
        return self._read(seed)[1]()

    def _read(self, seed: int) -> _Reading:
        # Fractions do not matter for reading; a split column does.
        source = replace(self, fractions=None, max_subjects=None, constraints={})
        return _read(source, seed if self.is_drawn else 0, self.file_states())

    def file_states(self) -> tuple[Any, ...]:
        """Sizes and times of change of the files it names, to notice that they changed."""
        named = (None if self.schema is None else self.data, self.schema, self.path)
        return tuple(file_states(Path(n).expanduser()) for n in named if n is not None)

    def resolved(self) -> DataSource:
        """The same files by absolute paths, which do not depend on where a process was started."""
        names = {"schema": self.schema, "path": self.path}
        if self.schema is not None:
            names["data"] = self.data
        full = {name: str(Path(path).resolve()) for name, path in names.items() if path is not None}
        return replace(self, **full)  # type: ignore[arg-type]  # all of them texts

    def check_split_column(self) -> None:
        """Refuse a split column that a built-in data set does not have; nothing is read."""
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


#: A cohort, and a function that summarizes how it was read.
_Reading = tuple[Cohort, Callable[[], "LoadSummary"]]


@lru_cache(maxsize=2)
def _read(source: DataSource, seed: int, states: tuple[Any, ...]) -> _Reading:
    from nocta import datasets

    if not source.schema:
        options = {**source.data_options, **({"seed": seed} if source.is_drawn else {})}
        cohort, summary = datasets.load_with_summary(source.data, path=source.path, **options)
        return cohort, lambda: summary
    if source.data_options:
        raise ConfigError(
            f"'{source.data}' is a table, which is read as its schema says; data_options are "
            f"for built-in data sets."
        )
    from nocta.tables.table import read_table

    schema: Path | dict[str, Any] = Path(source.schema)
    if source.split_column is not None:
        found = tomllib.loads(Path(source.schema).read_text("utf-8"))
        schema = {**found, "split": source.split_column}
    reading = read_table(Path(source.data), schema)
    log = datasets.LoadLog(sources=[source.data], notes=list(reading.notes))
    return reading.cohort, lambda: datasets.LoadSummary.of(reading.cohort, log)


def _read_parts(
    assigned: NDArray[Any],
) -> tuple[NDArray[np.bool_], NDArray[np.bool_] | None, NDArray[np.bool_]]:
    """Who belongs to train, validation (if there is such a part) and test."""
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
    """Everything the rows of one comparison have in common.

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
        quick: A quick run: few subjects, short training, few operating points.
        n_trials: Options that every method may try on validation, its defaults among them; 0
            tunes nothing.
        audit_subjects: How many subjects are audited in a job, shared out over its operating
            points; 0 audits nothing.
    """

    source: DataSource
    preset: Preset = "default"
    availability: Availability = "on-arrival"
    results: Results = "after-visit"
    n_points: Count = 10
    cost_weights: tuple[NonNegative, ...] = ()
    budgets: tuple[NonNegative, ...] = ()
    predictor: str = "learned"
    quick: bool = False
    n_trials: CountOrZero = 0
    audit_subjects: CountOrZero = 48

    def __post_init__(self) -> None:
        check_arguments(self)
        check_predictor_name(self.predictor)

    def as_quick(self) -> Setup:
        """The same as a quick run, which shows within a minute or two that everything works."""
        return replace(
            self,
            quick=True,
            n_points=min(self.n_points, QUICK_POINTS),
            n_trials=min(self.n_trials, QUICK_TRIALS),
            source=replace(self.source, max_subjects=QUICK_SUBJECTS),
        )

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = plain(asdict(self))
        return found

    def differences(self, other: Mapping[str, Any]) -> list[str]:
        return differences(other, self.to_dict(), request_defaults(type(self)))


def hash_data(cohort: Cohort) -> str:
    """A hash of everything recorded and of every price, to notice that data changed."""
    found = hashlib.sha256(repr(cohort.catalog.to_dict()).encode())
    for array in (cohort.values, cohort.labels, cohort.visits, cohort.context):
        found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    found.update("\n".join(map(str, cohort.subjects.tolist())).encode())
    return found.hexdigest()


def request_defaults(kind: type[Any]) -> dict[str, Any]:
    """Default values of a setup or a fit, for entries that an older version did not write."""
    found: dict[str, Any] = plain(asdict(kind(DataSource(""))))
    return found


def _as_json(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as they will be read again from the file they are written to."""
    try:
        found: dict[str, Any] = json.loads(json.dumps(dict(options)))
    except TypeError as error:
        raise ConfigError(
            f"data_options must be plain data (numbers, texts, lists, mappings), because they are "
            f"written beside the results: {error}. Load such data in Python with "
            f"nocta.datasets.load, and pass the cohort itself."
        ) from error
    return found
