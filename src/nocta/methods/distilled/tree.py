"""A short tree for one visit: from a few questions to what is acquired there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nocta.methods.distilled.inputs import Categories, Input, Question

#: A leaf holds at least this share of the subjects it is learned from, and this many of them.
_LEAF_SHARE, _LEAST_LEAF = 0.03, 5


@dataclass(frozen=True)
class Tree:
    """A question with a tree for each answer, or without a question what is acquired."""

    acquire: tuple[str, ...] = ()
    question: Question | None = None
    yes: Tree | None = None
    no: Tree | None = None
    n_subjects: int = 0  # of those it was learned from, how many come here

    def decide(
        self, values: NDArray[np.float32], inputs: Sequence[Input], names: Sequence[str]
    ) -> NDArray[np.bool_]:
        """What each subject acquires, `(n, M)`, given the values of the inputs."""
        if self.question is None or self.yes is None or self.no is None:
            return np.tile(np.isin(names, self.acquire), (len(values), 1))
        answer = self.question.answer(values[:, inputs.index(self.question.input)])
        yes, no = (part.decide(values, inputs, names) for part in (self.yes, self.no))
        return np.where(answer[:, None], yes, no)

    def lines(self, categories: Categories | None = None) -> list[str]:
        """The tree as a nested Markdown list; what all its answers acquire comes first."""
        if self.question is None:
            return [f"- {_acquire('acquire', self.acquire)}"]
        leaves = self.leaves()
        common = tuple(n for n in leaves[0].acquire if all(n in leaf.acquire for leaf in leaves))
        if not common:
            return self._lines(categories, "", "acquire", common)
        head = f"- In any case, {_acquire('acquire', common)}"
        return [head, *self._lines(categories, "", "also acquire", common)]

    def leaves(self) -> list[Tree]:
        """The answers at the ends of the tree."""
        if self.yes is None or self.no is None:
            return [self]
        return [*self.yes.leaves(), *self.no.leaves()]

    def _lines(
        self, categories: Categories | None, indent: str, verb: str, common: tuple[str, ...]
    ) -> list[str]:
        if self.question is None or self.yes is None or self.no is None:
            rest = tuple(name for name in self.acquire if name not in common)
            return [f"{indent}- {_acquire(verb, rest)}"]
        out = []
        answers = {f"If {self.question.text(categories)}": self.yes, "Otherwise": self.no}
        for said, part in answers.items():
            below = part._lines(categories, indent + "  ", verb, common)
            if len(below) == 1:
                out.append(f"{indent}- {said}: {below[0].strip().removeprefix('- ')}")
            else:
                out += [f"{indent}- {said}:", *below]
        return out

    @property
    def depth(self) -> int:
        """Number of questions until the last answer."""
        return 0 if self.yes is None or self.no is None else 1 + max(self.yes.depth, self.no.depth)

    def to_dict(self) -> dict[str, Any]:
        if self.question is None or self.yes is None or self.no is None:
            return {"acquire": list(self.acquire), "n_subjects": self.n_subjects}
        return {
            "question": self.question.to_dict(),
            "yes": self.yes.to_dict(),
            "no": self.no.to_dict(),
            "n_subjects": self.n_subjects,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Tree:
        """Inverse of `to_dict`."""
        if "question" not in data:
            return cls(tuple(data["acquire"]), n_subjects=data["n_subjects"])
        return cls(
            question=Question.from_dict(data["question"]),
            yes=cls.from_dict(data["yes"]),
            no=cls.from_dict(data["no"]),
            n_subjects=data["n_subjects"],
        )


def learn_tree(
    values: NDArray[np.float32],
    acquired: NDArray[np.bool_],
    inputs: Sequence[Input],
    names: Sequence[str],
    depth: int,
    seed: int,
) -> Tree:
    """The tree of at most `depth` questions that comes closest to what was acquired, `(n, M)`.

    A leaf acquires what more than half of its subjects acquired. Questions whose answers lead to
    the same are left out, and numbers are rounded to three digits: what is shown is what acts.
    """
    if not acquired.any() or (acquired == acquired[0]).all():
        return Tree(_chosen(acquired.mean(axis=0), names), n_subjects=len(values))
    from sklearn.tree import DecisionTreeRegressor

    least = max(_LEAST_LEAF, int(_LEAF_SHARE * len(values)))
    grown = DecisionTreeRegressor(max_depth=depth, min_samples_leaf=least, random_state=seed)
    found = grown.fit(values, acquired.astype(float)).tree_
    unknown = np.asarray(np.isnan(values).any(axis=0))
    return _read(found, 0, inputs, names, unknown)


def _read(
    found: Any, node: int, inputs: Sequence[Input], names: Sequence[str], unknown: NDArray[np.bool_]
) -> Tree:
    """A node of scikit-learn's tree and all below it.

    If an input was never `unknown`, `(inputs,)`, the answer to what is not known is no.
    """
    n_subjects = int(found.n_node_samples[node])
    left, right = int(found.children_left[node]), int(found.children_right[node])
    if left < 0:
        share = np.asarray(found.value[node]).reshape(-1)
        return Tree(_chosen(share, names), n_subjects=n_subjects)
    yes, no = (_read(found, child, inputs, names, unknown) for child in (left, right))
    if _same(yes, no):
        return replace(yes, n_subjects=n_subjects)
    most, column = float(found.threshold[node]), int(found.feature[node])
    most = most if np.isinf(most) else float(f"{most:.3g}")
    if_unknown = bool(found.missing_go_to_left[node]) and bool(unknown[column])
    question = Question(inputs[column], most, if_unknown)
    return Tree(question=question, yes=yes, no=no, n_subjects=n_subjects)


def _acquire(verb: str, names: tuple[str, ...]) -> str:
    listed = ", ".join(f"**{name}**" for name in names)
    return (
        f"{verb} {listed}" if names else ("nothing more" if "also" in verb else f"{verb} nothing")
    )


def _chosen(share: NDArray[np.float64], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(names[int(m)] for m in np.flatnonzero(share > 0.5))


def _same(a: Tree, b: Tree) -> bool:
    return a.question is None and b.question is None and a.acquire == b.acquire
