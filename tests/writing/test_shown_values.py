"""What is shown has the value of what was derived: rewritten formulas at seeded numbers, averages as linear forms."""

import importlib
import random

import mpmath
import pytest
import sympy
from sympy import Add, Basic, Equality, Expr, Mul, Piecewise, Pow, Symbol

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.phi import phi
from symcavity.model.averages import Average
from symcavity.model.equations import Equation
from symcavity.model.kinds import is_index
from symcavity.model.quantities import Quenched, SiteQuantity
from symcavity.record.derivation import Derivation, Step
from symcavity.writing.display_form import as_shown

NODES = ((-1.3, 0.2), (0.4, 0.5), (2.1, 0.3))  # any linear form will do for an average
DIGITS = 30
FUNCTIONS = (sympy.exp, sympy.log, sympy.tanh, sympy.erf, sympy.erfc, sympy.cosh)
NAMES = ["anisotropic", "clusters_logistic", "flipped_labels", "logistic_teacher", "output_bias", "robust_regression",
         "sign_teacher", "softmax", "three_clusters", "noisy_teacher", "clusters_hinge",
         "logistic_intercept", "box_detection", "quantile_regression"]  # fmt: skip


class Opaque(Exception):
    """A node that has no value here."""


def drawn(*key):
    return mpmath.mpf(random.Random("|".join(map(str, key))).uniform(0.3, 1.7))  # noqa: S311


def moment(n, k):
    """The average of max(0, k - z)^n, by its recursion."""
    below, here = mpmath.ncdf(k), k * mpmath.ncdf(k) + mpmath.npdf(k)
    for m in range(1, n):
        below, here = here, k * here + m * below
    return below if n == 0 else here


def holds(condition, at):
    if condition in (True, False):
        return bool(condition)
    if not condition.is_Relational or isinstance(condition, Equality):
        raise Opaque(type(condition).__name__)
    a, b = value(condition.lhs, at), value(condition.rhs, at)
    return a > b if condition.rel_op in (">", ">=") else a < b


def value(e, at):
    """The value of an expression; each draw gives each quantity of a site a number of its own."""
    if e in at:
        return at[e]
    if e.is_number:
        return mpmath.mpf(sympy.N(e, DIGITS + 5))
    if isinstance(e, SiteQuantity):
        own = drawn(e.family.name, *(at.get(x, x) for x in e.args[1:]), at["draw"])
        few = e.family.values if isinstance(e.family, Quenched) else ()
        return mpmath.mpf(few[int(1000 * own) % len(few)]) if few else own
    if isinstance(e, Symbol):
        return mpmath.mpf(1) if is_index(e) else drawn(e.name) * (-1 if e.is_negative else 1)
    if isinstance(e, Average):
        return sum(value(e.args[0], {**at, "draw": (at["draw"], n)}) for n in range(3)) / 3
    if type(e) is GaussianAverage:
        return sum(w * value(e.args[0], {**at, e.args[1]: mpmath.mpf(z)}) for z, w in NODES)
    if isinstance(e, phi):
        return moment(int(e.args[0]), value(e.args[1], at))
    if isinstance(e, Piecewise):
        return next(value(part, at) for part, condition in e.args if holds(condition, at))
    if isinstance(e, Add):
        return mpmath.fsum(value(part, at) for part in e.args)
    if isinstance(e, Mul):
        return mpmath.fprod(value(part, at) for part in e.args)
    if isinstance(e, Pow):
        return mpmath.power(value(e.base, at), value(e.exp, at))
    if isinstance(e, FUNCTIONS):
        return getattr(mpmath, type(e).__name__)(value(e.args[0], at))
    raise Opaque(type(e).__name__)


def shown(expr):
    step = Step("a", "closure", (Equation(Symbol("d"), expr),))
    claims = as_shown(Derivation("", "", (step,))).steps[0].claims
    return claims[0].rhs if claims else expr


@pytest.mark.parametrize("name", NAMES)
def test_what_is_shown_is_what_was_derived(name):
    derivation = importlib.import_module(f"symcavity.derivations.{name}").problem.cavity().derivation
    sides = {side for step in derivation for claim in step.claims if isinstance(claim, Equation)
             for side in (claim.lhs, claim.rhs) if isinstance(side, Expr)}  # fmt: skip
    compared = 0
    with mpmath.workdps(DIGITS):
        for side in sorted(sides, key=str):
            new = shown(side)
            if new == side or not isinstance(new, Basic):
                continue
            try:
                before, after = value(side, {"draw": 0}), value(new, {"draw": 0})
            except (Opaque, TypeError):  # comparisons of complex numbers, at values that no theory has
                continue
            assert abs(before - after) < 1e-18 * (1 + abs(before)), (side, new)
            compared += 1
    assert compared


def test_a_factor_that_is_lost_is_seen():
    a, z = Symbol("a", positive=True), Symbol("z", real=True)
    right, wrong = (GaussianAverage(n * sympy.exp(-z**2) * a, z) for n in (2, 3))
    assert value(right, {"draw": 0}) != value(wrong, {"draw": 0})
    assert value(shown(right), {"draw": 0}) == pytest.approx(value(right, {"draw": 0}))
