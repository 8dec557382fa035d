"""A fitted `default` preset as plain configuration and arrays, and back.

An amortized estimator of many subjects holds no subject's data. Retrieval, and averages that are
counted over few subjects, need the training subjects: their values, labels, visits and context.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from nocta.core.cohort import Cohort
from nocta.model.presets.options import DefaultOptions
from nocta.model.state import Arrays, State, cohort_state, nest, restore_cohort, take_part
from nocta.planning.estimators.amortized import AmortizedEstimator
from nocta.planning.estimators.committee import CommitteeEstimator
from nocta.planning.estimators.contrastive import ContrastiveEstimator
from nocta.planning.estimators.embedding import Embedding
from nocta.planning.estimators.population_plug_in import PopulationPlugIn
from nocta.planning.estimators.remembered_votes import voting_estimator
from nocta.planning.estimators.retrieval import NeighborBank
from nocta.planning.estimators.targets import LossTargets
from nocta.planning.space import ActionTable
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.encoding import InputEncoder, arrays_under

if TYPE_CHECKING:
    from nocta.model.presets.default import DefaultPlanner

P = TypeVar("P", bound="DefaultPlanner")
_BANK = ("metric", "kernel", "n_neighbors", "radius", "index")
_TABLES = ("subsets", "prices", "charges")


def planner_state(planner: DefaultPlanner) -> State:
    """Everything a fitted planner consists of."""
    config: dict[str, Any] = {
        "estimator": planner.name,
        "options": planner.options.model_dump(),
        "cost_scale": planner.cost_scale,
        "amortized_share": planner.amortized_share,
        "individual_share": planner.individual_share,
        "n_times": planner.actions.n_times,
        "seed": planner.seed,
    }
    arrays = actions_arrays(planner.actions)
    if planner.worth is not None:
        arrays["worth"] = planner.worth
    parts: dict[str, State] = {"predictor": planner.predictor.state()}
    if planner.amortized is not None:
        parts["amortized"] = planner.amortized.state()
    if planner.population is not None:
        parts["population"] = population_state(planner.population)
    if planner.contrastive is not None:
        shared = _shares_subjects(planner.contrastive, planner.population)
        parts["contrastive"] = retrieval_state(planner.contrastive, with_subjects=not shared)
    return nest(config, arrays, **parts)


def restore_planner(cls: type[P], config: dict[str, Any], arrays: Arrays) -> P:
    """Inverse of `planner_state`."""
    predictor = CrossFittedPredictor.from_state(*take_part(config, arrays, "predictor"))
    amortized = contrastive = population = None
    if "amortized" in config:
        own = take_part(config, arrays, "amortized")
        kind = CommitteeEstimator if "individuals" in own[0] else AmortizedEstimator
        amortized = kind.from_state(*own)
    if "population" in config:
        population = restore_population(predictor, *take_part(config, arrays, "population"))
    if "contrastive" in config:
        own = take_part(config, arrays, "contrastive")
        contrastive = restore_retrieval(predictor, *own, population)
    return cls(
        config["estimator"],
        DefaultOptions(**config["options"]),
        predictor,
        restore_actions(arrays, config["n_times"]),
        config["cost_scale"],
        amortized,
        contrastive,
        config["amortized_share"],
        arrays.get("worth"),
        config["seed"],
        population,
        config.get("individual_share", 0.5),
    )


def actions_arrays(actions: ActionTable) -> Arrays:
    """The subsets that may be acquired at each slot, with their prices and charges."""
    return {
        f"actions.{table}.{t}": array
        for table in _TABLES
        for t, array in enumerate(getattr(actions, table))
    }


def restore_actions(arrays: Arrays, n_times: int) -> ActionTable:
    """Inverse of `actions_arrays`."""
    return ActionTable(
        *(tuple(arrays[f"actions.{table}.{t}"] for t in range(n_times)) for table in _TABLES)
    )


def population_state(estimator: PopulationPlugIn) -> State:
    config = {"loss": estimator.loss, **_targets_config(estimator.targets)}
    arrays = {"fold": estimator.targets.fold}
    return nest(config, arrays, subjects=cohort_state(estimator.train))


def restore_population(
    predictor: CrossFittedPredictor, config: dict[str, Any], arrays: Arrays
) -> PopulationPlugIn:
    train = restore_cohort(*take_part(config, arrays, "subjects"))
    return PopulationPlugIn(train, _targets(train, predictor, config, arrays), config["loss"])


def _targets_config(targets: LossTargets) -> dict[str, Any]:
    return {
        "kinds": list(targets.kinds),
        "expected": targets.expected,
        "hindsight": targets.hindsight,
    }


def _targets(
    train: Cohort, predictor: CrossFittedPredictor, config: dict[str, Any], arrays: Arrays
) -> LossTargets:
    """Inverse of `_targets_config`, for subjects whose folds are kept."""
    options = (config["kinds"], config["expected"], config["hindsight"])
    return LossTargets(train, predictor.members, arrays["fold"], *options)


def _shares_subjects(estimator: ContrastiveEstimator, population: PopulationPlugIn | None) -> bool:
    """Whether the subjects who vote are those who are counted: then one copy is enough."""
    return population is not None and estimator.targets is population.targets


def retrieval_state(estimator: ContrastiveEstimator, *, with_subjects: bool = True) -> State:
    bank = estimator.bank
    config: dict[str, Any] = {
        **{name: getattr(bank, name) for name in _BANK},
        "size": len(bank.rows),
        "loss": estimator.loss,
        "reduction": estimator.reduction,
        **_targets_config(estimator.targets),
    }
    arrays: Arrays = {}
    parts: dict[str, State] = {}
    if bank.stands_for is not None:
        arrays["stands_for"] = bank.stands_for
    if with_subjects:  # only those who are kept for retrieval can ever vote
        arrays["fold"] = estimator.targets.fold[bank.rows]
        parts["subjects"] = cohort_state(bank.train.subset(bank.rows))
    if bank.embedding is not None:
        parts["embedding"] = bank.embedding.state()
    elif bank.predictor is None:  # the encoder is not part of a network
        arrays |= {f"encoder.{k}": v for k, v in bank.encoder.state().items()}
    return nest(config, arrays, **parts)


def restore_retrieval(
    predictor: CrossFittedPredictor,
    config: dict[str, Any],
    arrays: Arrays,
    population: PopulationPlugIn | None = None,
) -> ContrastiveEstimator:
    """Inverse of `retrieval_state`; the population's subjects are used if it has none."""
    if "subjects" in config:
        train = restore_cohort(*take_part(config, arrays, "subjects"))
        targets, tables = _targets(train, predictor, config, arrays), None
    else:
        assert population is not None
        train, targets, tables = population.train, population.targets, population.tables
    embedding = None
    if "embedding" in config:
        embedding = Embedding.from_state(*take_part(config, arrays, "embedding"))
    first = predictor.networks[0] if predictor.networks else None
    if embedding is not None:
        encoder = embedding.encoder_
    elif first is not None:
        encoder = first.encoder_
    else:
        encoder = InputEncoder.from_state(arrays_under(arrays, "encoder."))
    bank = NeighborBank(
        train,
        encoder=encoder,
        embedding=embedding,
        predictor=first,
        size=config["size"],
        stands_for=arrays.get("stands_for"),
        **{name: config[name] for name in _BANK if name in config},
    )
    options = {"loss": config["loss"], "reduction": config["reduction"]}
    return voting_estimator(bank, targets, tables=tables, **options)
