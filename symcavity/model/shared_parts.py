"""Quenched parameters of which copies of a problem share a part: each copy has the law of one alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

from sympy import Basic, Expr, Mul, S, Tuple, sqrt

from symcavity.algebra.choice import Choice
from symcavity.errors import DeclarationError
from symcavity.model.dependent import Member, Shown, standard
from symcavity.model.exact import Count, drawn_law, is_normal
from symcavity.model.families import SiteQuantity
from symcavity.model.quantities import Quenched


def names_taken(q: Quenched, names: Sequence[str]) -> tuple[str, ...]:
    """The names of what is drawn for several copies at once, beside the parameter's name in each."""
    return "".join(names), f"{q.name}_0", f"{q.name}_same"


def shared_in_part(q: Quenched, names: Sequence[str], part: Expr) -> list[Member]:
    """The parameter of each copy in the place of one of which the copies share a part.

    Values of a Gaussian have the correlation ``part`` between copies, as couplings do.  Those of any other law are the
    same in all copies with the probability ``part``, and drawn for each copy otherwise.  Either way the covariance
    between two copies is ``part`` times the variance.

    Parameters
    ----------
    q : Quenched
    names : sequence of str
        Its name in each copy.
    part : Expr
        From 0 to 1.

    Raises
    ------
    DeclarationError
        If the declaration leaves the law open.
    """
    if q.law is None:
        raise DeclarationError(
            f"The copies share {part} of {q}, whose law is left open: what they have in common depends on it.",
            "0 or 1 for such parameters; any share where the declaration has the law",
            f'{q} = Quenched("{q.name}", {q.slots[0].index}, law=Normal("{q.name}", 0, 1))',
        )
    pairs = q.law if isinstance(q.law, Tuple) else drawn_law(q.law, q.name)
    if pairs is not None and not pairs.has(Count):
        values = _of_few(q, pairs, names, part)
    else:
        values = _gaussian(q, names, part) if is_normal(q.law) else _mixed(q, names, part)
    return [Member(name, value, q.slots[0], tuple(names)) for name, value in zip(names, values, strict=True)]


def chosen_by(q: Quenched, exprs: Iterable[Basic]) -> set[Choice]:
    """The parameters of a joint law, which a label chooses."""
    return {c for e in exprs for c in e.atoms(Choice) if isinstance(c.args[0], SiteQuantity) and c.args[0].family == q}


def chosen_again(choice: Choice, member: Member | None, k: int) -> tuple[Basic, Basic]:
    """A parameter of a joint law in copy ``k``, whose label is another one, and what shows it."""
    label, column, shown = choice.args
    again = shown.renamed(k)
    if member is None:
        return shown, again
    new = member[label.indices[0]]
    return choice, Choice(new.args[0], Tuple(*(column[round(v) - 1] for v in new.args[1])), again)


def _of_few(q: Quenched, pairs: Tuple, names: Sequence[str], part: Expr) -> list[Expr]:
    """One label of a site says what value each copy has."""
    weights: dict[Expr, Expr] = dict(pairs.args)
    points = list(product(weights, repeat=len(names)))
    both = [part * weights[p[0]] if len(set(p)) == 1 else S.Zero for p in points]
    law = [w + (1 - part) * Mul(*(weights[v] for v in p)) for w, p in zip(both, points, strict=True)]
    label = q.drawn_alike("".join(names), Tuple(*(Tuple(S(k), w) for k, w in enumerate(law, start=1))))
    columns = zip(*points, strict=True)
    return [Choice(label.at_site(), Tuple(*c), Shown.of(q.renamed(n))) for c, n in zip(columns, names, strict=True)]


def _gaussian(q: Quenched, names: Sequence[str], part: Expr) -> list[Expr]:
    """Their matrix of correlations has a triangular root in closed form, which divides by nothing that may vanish."""
    distribution: Any = q.law.pspace.distribution  # type: ignore[union-attr]
    noises = [standard(Quenched, "".join(names) + f"_{k}", q.slots[0].index) for k in range(1, len(names) + 1)]
    values = []
    for row in range(len(names)):
        drawn = S.Zero
        for k, z in enumerate(noises[: row + 1]):
            before, here = 1 + (k - 1) * part, 1 + k * part
            own = sqrt((1 - part) * here / before) if k else S.One
            beside = part * sqrt((1 - part) / (before * here)) if k else part
            drawn += (own if k == row else beside) * z.at_site()
        values.append(distribution.mean + distribution.std * drawn)
    return values


def _mixed(q: Quenched, names: Sequence[str], part: Expr) -> list[Expr]:
    """A label of a site says whether all copies have one value, or each its own."""
    _, common, same = names_taken(q, names)
    label = Quenched(same, q.slots[0].index, law={1: part, 0: 1 - part}).at_site()
    return [label * q.renamed(common).at_site() + (1 - label) * q.renamed(n).at_site() for n in names]
