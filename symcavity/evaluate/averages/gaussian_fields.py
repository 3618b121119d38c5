"""Gaussian parameters that shift the fields of a joint law: one average over wider fields, and none over them."""

from __future__ import annotations

from math import comb, factorial

from sympy import Add, Dummy, Expr, Matrix, Poly, S, Symbol, Tuple, eye, together
from sympy.polys.polyerrors import PolynomialError

from symcavity.algebra.joint import JointAverage, JointLaw, LawSymbol, slope

MOST = 4  # powers of the parameter in what is averaged


def widened(node: JointAverage, u: Symbol) -> Expr | None:
    """Average a joint average over a standard Gaussian u that its law hears as a shift of its fields.

    With ``f + r*u`` for the fields f the law is one of the fields ``g = f + r*u``, whose covariance is wider by
    ``r r^T``.  Given g, u has the mean ``r^T G^-1 g`` and the variance ``1 - r^T G^-1 r``: powers of u in what is
    averaged are those of its mean, and moments.  A law of residuals, such as ``u - h``, is one of shifted fields for
    these: unknowns are counted from where they move along with u.

    Returns
    -------
    Expr or None
        None where u does more than shift fields, or stands in a function.
    """
    if any(c.has(u) for c in node.covariance):
        return None
    if (found := _over_wider(node, u)) is not None or not (rule := _moving(node.law, u)):
        return found
    members, definitions = (whole.xreplace(rule) for whole in (Tuple(*node.law.args[2:4]), node.law.args[4]))
    written = [_written(whole) for whole in (*members, definitions)]
    law = JointLaw(node.law.unknowns, node.law.fields, *written, *node.law.args[5:])
    return _over_wider(JointAverage(node.body.xreplace(rule), law, node.covariance), u)


def _over_wider(node: JointAverage, u: Symbol) -> Expr | None:
    """The same where the law hears the parameter as a shift of its fields, its unknowns as they are."""
    law, fields = node.law, list(node.law.fields)
    if (shift := _shift(law, u)) is None:
        return None
    quiet, beside = {u: S.Zero}, _beside(law, u, shift)
    if beside and node.body.has(*(slope(x, source) for x in beside for source in law.sources)):
        return None
    equations, pairs = (law.args[k].xreplace(quiet) for k in (2, 3))
    definitions = [(x, e.xreplace(quiet)) for x, e in law.definitions if x not in beside]
    table = Matrix(len(fields), len(fields), lambda a, b: node.covariance[_place(a, b)]) + shift * shift.T
    lower = [table[a, b] for a in range(len(fields)) for b in range(a + 1)]
    shifted = {f: f - r * u for f, r in zip(fields, shift, strict=True)}
    body = node.body
    for x, e in reversed(law.definitions):
        body = body.xreplace({x: e.xreplace(dict.fromkeys(law.sources, S.Zero))}) if x in beside else body
    body = body.xreplace(shifted)
    if body.has(u):
        back = _weights(table, shift)
        mean = sum((c * f for c, f in zip(back, fields, strict=True)), S.Zero)
        spread = 1 - sum((c * r for c, r in zip(back, shift, strict=True)), S.Zero)
        try:
            terms = Poly(body, u).terms()
        except PolynomialError:
            return None
        if any(c.has(u) for _, c in terms) or terms[0][0][0] > MOST:
            return None
        body = sum((c * _power(n, mean, spread) for (n,), c in terms), S.Zero)
    wide = JointLaw(law.unknowns, fields, equations, pairs, definitions, law.sources, law.scramble)
    return JointAverage(body, wide, lower)


def _moving(law: JointLaw, u: Symbol) -> dict[LawSymbol, Expr]:
    """The unknowns that stand beside the parameter in some sum, each by itself plus what leaves u out of that sum."""
    rule: dict[LawSymbol, Expr] = {}
    for form in sorted({form for e in law.members for form in e.atoms(Add)}, key=str):
        if (across := form.coeff(u)) == 0:
            continue
        for x in law.unknowns:
            along = form.coeff(x)
            if along != 0 and not (across / along).has(u, LawSymbol):
                rule.setdefault(x, x - across / along * u)
    return rule


def _written(rows: Tuple) -> Tuple:
    """Sums and products written out, in which the parameter may cancel."""
    return Tuple(*(_written(e) if isinstance(e, Tuple) else e.expand() for e in rows))


def _shift(law: JointLaw, u: Symbol) -> Matrix | None:
    """By how much u shifts each field, the same in all that fixes the unknowns; None where it does something else.

    A field that these do not hear is shifted as what is defined by it.
    """
    rows = [([e.diff(f) for f in law.fields], e.diff(u)) for e in law.expressions]
    chosen: list[tuple[list[Expr], Expr]] = []
    for row, rate in rows:
        if Matrix([*(r for r, _ in chosen), row]).rank() > len(chosen):
            chosen.append((row, rate))
        if len(chosen) == len(law.fields):
            break
    else:
        return None
    shift = Matrix([r for r, _ in chosen]).LUsolve(Matrix([rate for _, rate in chosen])).applyfunc(together)
    if shift.has(u, LawSymbol) or not all(_is_shifted(*row, shift) for row in rows[: len(law.members)]):
        return None
    return shift


def _is_shifted(row: list[Expr], rate: Expr, shift: Matrix) -> bool:
    """Whether something changes with the parameter as it does with fields that are shifted."""
    missed = rate - sum((a * r for a, r in zip(row, shift, strict=True)), S.Zero)
    return bool(missed == 0 or together(missed.expand()).as_numer_denom()[0].expand() == 0)


def _beside(law: JointLaw, u: Symbol, shift: Matrix) -> set[LawSymbol]:
    """What is defined by fields, or by the parameter, in another combination, and by what is."""
    found: set[LawSymbol] = set()
    for x, e in law.definitions:
        if (found and e.has(*found)) or not _is_shifted([e.diff(f) for f in law.fields], e.diff(u), shift):
            found.add(x)
    return found


def _weights(table: Matrix, shift: Matrix) -> list[Expr]:
    """``G^-1 r`` by a matrix of names, so that nothing is multiplied out."""
    count = table.rows
    names = Matrix(count, count, lambda a, b: Dummy(f"g{min(a, b)}{max(a, b)}"))
    names = Matrix(count, count, lambda a, b: names[min(a, b), max(a, b)])
    inverse = names.LUsolve(eye(count)) if count > 2 else names.adjugate() / names.det()
    rule = {names[a, b]: table[a, b] for a in range(count) for b in range(count)}
    return list(inverse.xreplace(rule) * shift)


def _power(n: int, mean: Expr, spread: Expr) -> Expr:
    """The n-th moment of a Gaussian."""
    even = range(0, n + 1, 2)
    return sum((comb(n, k) * _pairings(k) * spread ** (k // 2) * mean ** (n - k) for k in even), S.Zero)


def _pairings(k: int) -> int:
    return factorial(k) // (2 ** (k // 2) * factorial(k // 2))


def _place(a: int, b: int) -> int:
    a, b = max(a, b), min(a, b)
    return a * (a + 1) // 2 + b
