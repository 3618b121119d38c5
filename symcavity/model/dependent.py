"""Quenched parameters of one site that depend on each other: functions of a hidden label, or of hidden noises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sympy import Expr, Matrix, Symbol, Tuple

from symcavity.algebra.choice import Choice
from symcavity.errors import DeclarationError
from symcavity.model.atoms import DataAtom
from symcavity.model.exact import exact, finite_law


class Shown(DataAtom):
    """What is printed for a number that stands for another one: a quantity that stands in no equation."""

    @classmethod
    def of(cls, family: Any) -> Shown:
        """Show the quantities of a family."""
        return cls._make(family)

    def at(self, label: Expr) -> Expr:
        """What is printed for the site of a label, or for a number in the place of one."""
        family = self._data[0]
        return family[label.args[1]] if label.args else Symbol(f"{family.name}({label})")

    def renamed(self, k: int) -> Shown:
        """The same of copy ``k``."""
        return self.of(self._data[0].renamed(f"{self._data[0].name}_{k}"))


@dataclass(frozen=True)
class Member:
    """One of several quenched parameters with a joint law; indexing it gives the number of a site.

    Attributes
    ----------
    name : str
        Its name.
    value : Expr
        What it is at the canonical index, in hidden quenched parameters of the site.
    kind : Kind
        The kind of site.
    joint : tuple of str
        The names of all parameters of the law.
    """

    name: str
    value: Expr
    kind: Any
    joint: tuple[str, ...] = ()

    def __getitem__(self, index: Any) -> Expr:
        hidden = {q: q.func(q.family, index) for q in self.value.atoms(Expr) if getattr(q, "indices", ())}
        return self.value.xreplace(hidden)

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


def read_joint(make: Any, names: Sequence[str], index: Any, law: Any, *, alone: bool) -> tuple[Member, ...]:
    """Read a joint law.

    Parameters
    ----------
    make : type
        The family of quenched parameters, of which the hidden ones are made.
    names : sequence of str
    index : Symbol
        The index of the kind of site.
    law : dict or RandomSymbol
        ``{(1, 2): weight, ...}``, or a multivariate normal of ``sympy.stats``.
    alone : bool
        Whether nothing else is said about the parameters.

    Raises
    ------
    DeclarationError
        If the law is neither, or gives another number of values than there are names.
    """
    if not alone:
        raise DeclarationError(
            f"The parameters {', '.join(names)} have a joint law, and are given on a field or declared positive.",
            "joint laws alone: their values say which of them are positive",
        )
    hidden = "".join(names)
    if isinstance(law, Mapping) and law:
        points = list(law)
        if not all(isinstance(p, tuple | list | Tuple) and len(p) == len(names) for p in points):
            raise _wrong(names, law)
        weights = {k: law[p] for k, p in enumerate(points, start=1)}
        label = make(hidden, index, law=finite_law(weights, hidden, exact_values=True))
        shown = [Shown.of(make(name, index)) for name in names]
        columns = [Tuple(*(exact(p[k], f"the law of {names[k]}") for p in points)) for k in range(len(names))]
        values = [Choice(label.at_site(), column, s) for column, s in zip(columns, shown, strict=True)]
    else:
        mean, covariance = _gaussian(law, names)
        noises = [standard(make, f"{hidden}_{k}", index) for k in range(1, len(names) + 1)]
        factor = covariance.cholesky(hermitian=False)
        values = [m + d for m, d in zip(mean, factor * Matrix([z.at_site() for z in noises]), strict=True)]
    return tuple(Member(n, v, make(n, index).slots[0], tuple(names)) for n, v in zip(names, values, strict=True))


def standard(make: Any, name: str, index: Any) -> Any:
    """A family of Gaussian numbers of mean zero and variance one."""
    from sympy.stats import Normal

    return make(name, index, law=Normal(name, 0, 1))


def _gaussian(law: Any, names: Sequence[str]) -> tuple[list[Expr], Matrix]:
    """The mean and the covariance of a joint Gaussian."""
    from sympy.stats.joint_rv_types import MultivariateNormalDistribution

    distribution = getattr(getattr(law, "pspace", None), "distribution", None)
    if not isinstance(distribution, MultivariateNormalDistribution) or len(distribution.mu) != len(names):
        raise _wrong(names, law)
    where = f"the law of {', '.join(names)}"
    mean = [exact(m, where) for m in distribution.mu]
    return mean, Matrix(distribution.sigma).applyfunc(lambda e: exact(e, where))


def _wrong(names: Sequence[str], law: Any) -> DeclarationError:
    example = ", ".join(["1", "2", "0", "1"][: len(names)] or ["1"])
    return DeclarationError(
        f"The joint law of {', '.join(names)} is " + ("missing." if law is None else f"{law!r:.80}."),
        f"{{({example}): weight, ...}} with {len(names)} values each, or Normal('g', means, covariances) of SymPy",
    )
