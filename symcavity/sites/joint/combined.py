"""Laws that depend on their fields through fewer combinations of them: averages are taken over these."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from sympy import Expr, Matrix, S

from symcavity.algebra.joint import JointLaw, slope


def combined(body: Expr, law: JointLaw, covariance: Sequence[Expr]) -> tuple[JointLaw, list[Expr]]:
    """Return the law as one of as few fields as it hears, and their covariance.

    A weight that two couplings send to the same data hears the sum of what comes back by either.  Four fields are then
    two, and what was sampled has a rule.

    Parameters
    ----------
    body : Expr
        What is averaged, in the symbols of the law.
    law : JointLaw
    covariance : sequence of Expr
        Of the fields: the lower triangle, row by row.
    """
    if len(law.fields) < 2:
        return law, list(covariance)
    heard, spoiling = _heard(law)
    wanted = {s for x in spoiling for s in (x, *(slope(x, source) for source in law.sources))}
    if heard is None or body.has(*wanted) or Matrix([*heard.tolist(), *_ways(body, law)]).rank() > heard.rows:
        return law, list(covariance)
    table = Matrix.zeros(len(law.fields))
    places = [(a, b) for a in range(len(law.fields)) for b in range(a + 1)]
    for (a, b), cell in zip(places, covariance, strict=True):
        table[a, b] = table[b, a] = cell
    turned = (heard * table * heard.T).expand()
    return _fewer(law), [turned[a, b] for a in range(heard.rows) for b in range(a + 1)]


@lru_cache(maxsize=64)
def _heard(law: JointLaw) -> tuple[Matrix | None, frozenset[Expr]]:
    """The combinations that the law hears, in reduced rows, and the defined quantities that hear others.

    None where there are as many as fields.
    """
    rows = [way for e in (*law.equations, *(m for pair in law.pairs for m in pair)) for way in _ways(e, law)]
    if not rows:
        return None, frozenset()
    reduced, pivots = Matrix(rows).rref()
    if len(pivots) == len(law.fields):
        return None, frozenset()
    heard = reduced[: len(pivots), :]
    more = {x: Matrix([*heard.tolist(), *_ways(e, law)]).rank() > heard.rows for x, e in law.definitions}
    return heard, frozenset(x for x, beyond in more.items() if beyond)


@lru_cache(maxsize=64)
def _fewer(law: JointLaw) -> JointLaw:
    """The law with one of its fields for each combination, and without what hears others."""
    heard, spoiling = _heard(law)
    assert heard is not None  # noqa: S101 - it hears fewer
    kept = [law.fields[k] for k in heard.rref()[1]]
    rule = dict.fromkeys((f for f in law.fields if f not in kept), S.Zero)
    definitions = [(x, e.xreplace(rule)) for x, e in law.definitions if x not in spoiling]
    equations, pairs = (whole.xreplace(rule) for whole in law.args[2:4])
    return JointLaw(law.unknowns, kept, equations, pairs, definitions, law.sources, law.scramble)


def _ways(expr: Expr, law: JointLaw) -> list[list[Expr]]:
    """Along which directions of the fields an expression changes: those of its slopes, term by term.

    A slope is a sum of terms times numbers, which may differ from field to field.
    """
    terms: dict[Expr, list[Expr]] = {}
    for k, f in enumerate(law.fields):
        for term, number in expr.diff(f).expand().as_coefficients_dict().items():
            terms.setdefault(term, [S.Zero] * len(law.fields))[k] += number
    return [row for row in terms.values() if any(row)]
