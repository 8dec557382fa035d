"""How the `default` preset fits retrieval: many neighbors, fading votes, one embedding."""

from __future__ import annotations

from nocta.model.presets.amortized_recipe import Subjects
from nocta.model.presets.options import DefaultOptions
from nocta.planning.estimators.bank import choose_bank
from nocta.planning.estimators.contrastive import ContrastiveEstimator
from nocta.planning.estimators.embedding import Embedding
from nocta.planning.estimators.remembered_votes import voting_estimator
from nocta.planning.estimators.retrieval import NeighborBank
from nocta.planning.estimators.slot_shares import ShareTables
from nocta.predictors.cross_fitted import CrossFittedPredictor
from nocta.predictors.encoding import InputEncoder
from nocta.predictors.training import TrainingConfig


def fit_retrieval(
    options: DefaultOptions,
    predictor: CrossFittedPredictor,
    data: Subjects,
    cost_scale: float,
    tables: ShareTables | None = None,
) -> ContrastiveEstimator:
    """Embedding over the whole range of cost weights, and the bank it searches."""
    train, targets = data.train, data.targets
    embedding = None
    if options.metric == "embedding":
        embedding = Embedding(
            network="recurrent",
            hidden=64 if len(train) >= 2000 else 32,
            n_candidates=64,
            similarity_scale=4.0,
            training=TrainingConfig(
                epochs=5 if len(train) >= 2000 else 30,
                batch_size=48,
                learning_rate=2e-3,
                check_every=1,
                patience=8,
            ),
            seed=data.seed,
        )
        weights = [cost_scale * factor for factor in (0.4, 0.7, 1.0)]
        embedding.fit(train, targets, data.val, data.val_targets, weights, progress=data.progress)
    first = predictor.networks[0] if predictor.networks else None
    encoder = first.encoder_ if first is not None else InputEncoder().fit(train)
    rows, stands_for = choose_bank(train.labels, options.bank_size, options.bank_sampling)
    if len(rows) < len(train):  # only those who are kept can ever vote
        train, targets = train.subset(rows), targets.subset(train, rows)
    bank = NeighborBank(
        train,
        options.metric,
        encoder=encoder if embedding is None else embedding.encoder_,
        embedding=embedding,
        predictor=first,
        n_neighbors=options.n_neighbors,
        radius=options.radius,
        kernel=options.kernel,
        stands_for=stands_for if options.bank_sampling == "stratified" else None,
        index=options.neighbor_index,
    )
    return voting_estimator(bank, targets, loss=options.loss, tables=tables)
