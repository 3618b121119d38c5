"""Gaussian averages in closed form, held against quadrature that shares no code with them."""

import itertools
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from mpmath import mp, mpf
from mpmath.calculus.quadrature import GaussLegendre
from sympy import (
    Abs,
    And,
    Eq,
    Expr,
    Float,
    Function,
    Heaviside,
    Indexed,
    IndexedBase,
    Integer,
    Max,
    Min,
    Not,
    Or,
    Piecewise,
    Rational,
    S,
    Symbol,
    cos,
    diff,
    exp,
    lambdify,
    latex,
    log,
    oo,
    pi,
    sign,
    sqrt,
    symbols,
    tanh,
)

from symcavity.algebra.gaussian import (
    GaussianAverage,
    NotPiecewisePolynomial,
    Undetermined,
    average_branches,
    gaussian_average,
)
from symcavity.algebra.phi import phi
from symcavity.algebra.piecewise import to_piecewise_polynomial
from symcavity.algebra.signs import Signs, sign_of
from symcavity.errors import ValuesError

z, a, b, c, d, kappa = symbols("z a b c d kappa", real=True)
p, q, r = symbols("p q r", positive=True)
LEGENDRE = GaussLegendre(mp)


def by_quadrature(expr, breaks, digits=34, mean=0, variance=1):
    """E[expr] by Gauss-Legendre panels between the given breaks (of z, as numbers)."""
    with mp.workdps(digits + 10):
        f = lambdify(z, expr, "mpmath")
        mean, scale = mpf(mean), mp.sqrt(mpf(variance))
        points = [(mpf(t) - mean) / scale for t in breaks]
        inside = [t for t in points if -15 < t < 15]
        grid = [mpf(-30), *sorted({mpf(k) for k in range(-15, 16, 2)} | set(inside)), mpf(30)]
        nodes = [node for panel in pairwise(grid) for node in weighted(*panel, mp.prec)]
        return mp.fsum(weight * f(mean + scale * u) for u, weight in nodes)


@cache
def weighted(low, high, prec):
    """Gauss's rule of 48 nodes on a panel, with the density in its weights."""
    return [(u, weight * mp.npdf(u)) for u, weight in LEGENDRE.get_nodes(low, high, 5, prec)]


def number(expr, digits=34):
    with mp.workdps(digits + 10):
        return expr.evalf(digits + 8)._to_mpmath(int(3.4 * (digits + 10)))


def agree(closed, expected, digits=30):
    with mp.workdps(digits + 5):
        return abs(number(closed) - expected) < mpf(10) ** -digits * (1 + abs(expected))


def rational(rng, low=-2, high=2):
    return Rational(int(rng.integers(low * 1000, high * 1000)) * 2 + 1, 2000)


def soft(x, threshold):
    return sign(x) * Max(Abs(x) - threshold, 0)


def clip(x, low, high):
    return Min(Max(x, low), high)


CASES = {
    "hinge": (Max(0, kappa - z), [kappa]),
    "hinge squared": (Max(0, kappa - z) ** 2, [kappa]),
    "hinge, sixth power": (Max(0, kappa - z) ** 6, [kappa]),
    "hinge of either slope": (Max(0, a + b * z) ** 2, [-a / b]),
    "hinge of either slope, cubed": (z * Max(0, a - 2 * b * z) ** 3, [a / (2 * b)]),
    "hinge of a difference of slopes": (Max(0, a + (b - c) * z) ** 3, [-a / (b - c)]),
    "clip": (clip(z, -1, 1) ** 2, [-1, 1]),
    "clip at symbols": (clip(z, -p, q) ** 3, [-p, q]),
    "clip of either slope": (clip(a + b * z, -1, 1) ** 2, [(-1 - a) / b, (1 - a) / b]),
    "soft threshold": (soft(z, p) ** 2, [-p, 0, p]),
    "soft threshold of unknown sign": (soft(z, b) ** 2, [-b, 0, b]),
    "soft threshold, shifted": (z * soft(a + p * z, q), [-a / p, (-a - q) / p, (q - a) / p]),
    "absolute value": (Abs(z - a) ** 3 * z, [a]),
    "two absolute values": (Abs(z - a) + Abs(z - b), [a, b]),
    "a product of absolute values": (Abs(z - a) * Abs(z - b), [a, b]),
    "a product of hinges of opposite slope": (Max(0, a + b * z) * Max(0, c - b * z), [-a / b, c / b]),
    "a product with a hinge of known slope": (Max(0, z) * Max(0, a + b * z), [0, -a / b]),
    "sign": (sign(a - z) * z, [a]),
    "sign squared": (sign(z - a) ** 2 * z**4, [a]),
    "step": (Heaviside(z - a) * z**3, [a]),
    "steps": (Heaviside(z - a, 0) * Heaviside(b - z), [a, b]),
    "three branches": (Piecewise((z**2, z < -p), (z**3 + a, z < q), (b * z, True)), [-p, q]),
    "indicator of an interval": (Piecewise((z**2, And(z > a, z <= a + p)), (0, True)), [a, a + p]),
    "indicator of the outside": (Piecewise((1, Or(z < a, z > a + p)), (z, True)), [a, a + p]),
    "negated indicator": (Piecewise((z, Not(And(z > a, z < a + p))), (1, True)), [a, a + p]),
    "equality is a point": (Piecewise((5, Eq(z, a)), (z**2, True)), [a]),
    "the largest of three": (Max(z, a, 2 * z), [0, a, a / 2]),
    "nested": (Max(0, Abs(Max(z, -q) - 1) - p) ** 2, [-q, 1, 1 + p, 1 - p]),
    "quadratic switch": (Max(0, z**2 - p) * z**2, [-sqrt(p), sqrt(p)]),
    "quadratic that never switches": (Abs(z**2 + z + p + 1), []),
    "cubic switch with factors": (Abs((z - 1) * (z**2 - p)), [1, sqrt(p), -sqrt(p)]),
    "function of a constant": (exp(sign(z - a)) + Max(1, 1 + Heaviside(z)) ** -2, [0, a]),
    "condition without z": (Piecewise((z**2, a > 0), (Abs(z), True)), [0]),
    "with an exponential": (exp(a * z + b) * Max(0, z - c) ** 2, [c]),
    "rational coefficients": (Max(0, (kappa - p * z) / (1 + q)) ** 2 * (a / (1 + r)), [kappa / p]),
    "plain polynomial": ((a + b * z) ** 5, []),
}


@pytest.mark.parametrize("name", CASES)
def test_closed_forms_against_quadrature(name):
    expr, breaks = CASES[name]
    closed = gaussian_average(expr, z)
    assert not closed.has(GaussianAverage), closed
    assert z not in closed.free_symbols
    rng = np.random.default_rng(len(name))
    for _ in range(4):
        values = {s: rational(rng) for s in (a, b, c, d, kappa)}
        values |= {s: rational(rng, 0, 2) for s in (p, q, r)}
        expected = by_quadrature(expr.subs(values), [number(S(t).subs(values)) for t in breaks])
        value = closed.subs(values)
        assert agree(value, expected), values
        if abs(expected) > 1e-3:  # the negative control
            assert not agree(-value, expected)


@pytest.mark.parametrize("name", ["hinge squared", "clip", "hinge of either slope", "soft threshold", "sign"])
def test_mean_and_variance(name):
    expr, breaks = CASES[name]
    closed = gaussian_average(expr, z, mean=c, variance=q)
    rng = np.random.default_rng(3)
    values = {s: rational(rng) for s in (a, b, c, d, kappa)} | {s: rational(rng, 0, 2) for s in (p, q, r)}
    points = [number(S(t).subs(values)) for t in breaks]
    expected = by_quadrature(expr.subs(values), points, mean=number(values[c]), variance=number(values[q]))
    assert agree(closed.subs(values), expected)
    assert not agree(gaussian_average(expr, z, mean=c + 1, variance=q).subs(values), expected)


def random_piecewise(rng, depth):
    """A random branched expression and the list of the numbers where it may switch."""
    if depth == 0:
        slope, offset = rational(rng), rational(rng)
        return offset + slope * z
    kind = rng.integers(0, 7)
    f = random_piecewise(rng, depth - 1)
    if kind == 0:
        return Abs(f)
    if kind == 1:
        return Max(f, rational(rng))
    if kind == 2:
        return Min(f, random_piecewise(rng, depth - 1))
    if kind == 3:
        return sign(f) * random_piecewise(rng, depth - 1)
    if kind == 4:
        return Piecewise((f, random_piecewise(rng, depth - 1) > rational(rng)), (rational(rng), True))
    if kind == 5:
        return f + random_piecewise(rng, depth - 1)
    return Heaviside(f) * random_piecewise(rng, 0) ** 2


@pytest.mark.parametrize("seed", range(40))
def test_random_compositions_equal_their_normal_form_and_its_average(seed):
    rng = np.random.default_rng(seed)
    expr = random_piecewise(rng, int(rng.integers(1, 4)))
    if not expr.has(z):
        pytest.skip("nothing depends on z")
    try:
        breaks, found = to_piecewise_polynomial(expr, z)
    except NotPiecewisePolynomial as problem:
        assert "degree" in str(problem)  # noqa: PT017 - the one reason that this family can have
        return
    assert all(x < y for x, y in itertools.pairwise(breaks))
    points = [*np.random.default_rng(seed + 999).uniform(-6, 6, 60)]
    whole = lambdify(z, expr, "mpmath")
    pieces = [lambdify(z, piece, "mpmath") for piece in found]
    with mp.workdps(20):
        for x in points:
            where = sum(1 for t in breaks if float(t) < x)
            assert abs(pieces[where](mpf(x)) - whole(mpf(x))) < 1e-12
    expected = by_quadrature(expr, [number(t) for t in breaks])
    assert agree(gaussian_average(expr, z), expected)
    cases = Piecewise(*((f, z < t) for f, t in zip(found, breaks, strict=False)), (found[-1], True))
    assert agree(gaussian_average(cases, z), expected)


def test_the_paper_s_forms_print_as_in_the_paper():
    assert gaussian_average(Max(0, kappa - z) ** 2, z) == phi(2, kappa)
    assert gaussian_average(Heaviside(kappa - z), z) == phi(0, kappa)
    assert gaussian_average(Piecewise((1, z < kappa), (0, True)), z) == phi(0, kappa)
    assert gaussian_average(Max(0, a + b * z) ** 2, z) == b**2 * phi(2, a / Abs(b))
    assert gaussian_average(Max(0, 2 * p * z - a) ** 2, z) == 4 * p**2 * phi(2, -a / (2 * p))
    assert gaussian_average(soft(z, p) ** 2, z) == 2 * phi(2, -p)
    assert gaussian_average(Max(0, z), z, a, p**2) == p * phi(1, a / p)
    assert gaussian_average(z**4, z) == 3
    assert gaussian_average(Max(0, z) ** 2, z) == Rational(1, 2)
    assert gaussian_average(exp(a * z), z) == exp(a**2 / 2)


def test_symbols_without_assumptions_are_real():
    x, y, w = symbols("x y w")
    assert gaussian_average(Max(0, x + y * w) ** 2, w) == y**2 * phi(2, x / Abs(y))
    assert gaussian_average(Abs(w) ** 2, w) == 1
    assert gaussian_average(Max(0, w), w, x, y) == sqrt(y) * phi(1, x / sqrt(y))
    entry = IndexedBase("l")[Symbol("i", integer=True)]
    closed = gaussian_average(Max(0, x + entry * w) ** 2, w)
    assert closed == entry**2 * phi(2, x / Abs(entry))
    assert closed.atoms(Indexed) == {entry}
    f = Function("f")(x)
    assert gaussian_average(Max(0, f - w), w) == phi(1, f)


def test_the_left_tail_keeps_its_relative_accuracy():
    closed = gaussian_average(Max(0, kappa - z) ** 2, z).subs(kappa, -30)
    with mp.workdps(60):
        exact = mp.npdf(30) * mp.quad(lambda t: t**2 * mp.exp(-30 * t - t * t / 2), [0, 0.1, 0.3, 1, 3, 8])
        value = closed.evalf(40)._to_mpmath(150)
        assert abs(value / exact - 1) < mpf(10) ** -38


def test_orders_that_are_unknown_are_distinguished():
    two = gaussian_average(Max(0, z - a) * Max(0, z - b), z)
    assert isinstance(two, Piecewise)
    assert two.subs({a: 1, b: 2}) == phi(1, -2) + phi(2, -2)
    assert two.subs({a: 2, b: 1}) == two.subs({a: 1, b: 2})
    assert two.subs({a: 1, b: 1}) == phi(2, -1)
    ordered = gaussian_average(Max(0, z - a) * Max(0, z - a - p), z)
    assert not ordered.has(Piecewise)
    with pytest.raises(Undetermined):
        to_piecewise_polynomial(Max(0, z - a) * Max(0, z - b), z)
    many = Max(0, z - a) * Max(0, z - b) * Max(c, z) * Max(d, z)
    left = gaussian_average(many, z)
    assert isinstance(left, GaussianAverage)
    assert left.breaks == [a, b, c, d] or set(left.breaks) == {a, b, c, d}


def test_a_jump_at_the_tie_of_two_breaks_has_a_case_of_its_own():
    expr = Min(0, Piecewise((z + 1, Max(a + b, -1 - z) > 0), (2 - z, True)))
    closed = gaussian_average(expr, z)
    for values in ({a: 1, b: -1}, {a: 1, b: 1}, {a: -1, b: -1}):
        expected = by_quadrature(expr.subs(values), [-1, 2, -1 - values[a] - values[b]])
        assert agree(closed.subs(values), expected), values


def test_a_slope_that_is_zero_is_never_a_silent_zero():
    closed = gaussian_average(Max(0, a + b * z) ** 2, z)
    assert closed.subs(b, 0) is S.NaN
    assert closed.subs({b: 0, a: 2}) is S.NaN


def test_terms_without_closed_form_stay_and_the_others_go():
    mixed = gaussian_average(3 * a * log(1 + exp(z)) + Max(0, kappa - z) ** 2, z)
    assert mixed == 3 * a * GaussianAverage(log(1 + exp(z)), z) + phi(2, kappa)
    x, w = symbols("x w")
    assert gaussian_average(tanh(x * w), w) == GaussianAverage(tanh(x * w), w)
    moved = gaussian_average(tanh(w), w, mean=x, variance=4)
    assert moved == GaussianAverage(tanh(x + 2 * w), w)
    assert gaussian_average(1 / (1 + z**2), z).has(GaussianAverage)
    assert gaussian_average(Max(0, log(p) - exp(z)), z).has(GaussianAverage)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((Max(0, 0.5 - z), z), "Rational"),
        ((z, z, Float("0.1")), "Rational"),
        ((z, 1), "a symbol to average over"),
        ((z, z, z), "depends on z itself"),
        ((z, z, 0, -p), "negative"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(ValuesError, match=message):
        gaussian_average(*arguments)


def test_zero_variance_is_the_value_at_the_mean():
    assert gaussian_average(Max(0, z), z, mean=p, variance=0) == p


# -- branches that are already solved ---------------------------------------------------------------


def test_composition_with_solved_branches():
    lam, h = symbols("lam h", real=True)
    branches = [{lam: (kappa - z) / r, h: Integer(0)}, {lam: Integer(0), h: z - kappa}]
    assert average_branches([kappa], branches, (lam * r) ** 2 + h, z) == phi(2, kappa) + phi(1, -kappa)
    assert average_branches([kappa], branches, Max(h - p, 0), z) == phi(1, -kappa - p)
    assert average_branches([kappa], branches, lam**2, z) == phi(2, kappa) / r**2
    left = average_branches([kappa], branches, log(1 + lam), z)
    assert isinstance(left, GaussianAverage)
    assert left.breaks == [kappa]
    assert average_branches([], [{lam: Integer(2)}], log(lam), z) == log(2)


def test_the_given_order_of_the_breaks_is_believed():
    s = Symbol("s", real=True)
    branches = [{s: Integer(1)}, {s: Integer(0)}, {s: z - b}]
    closed = average_branches([a, b], branches, s, z)
    assert closed == phi(0, a) + phi(1, -b)
    open_end = average_branches([a, b], branches, Max(s, z - c), z)
    for values in ({a: -1, b: 1, c: 0}, {a: -1, b: 1, c: -3}, {a: -1, b: 1, c: 4}):
        line = z - values[c]
        f = Piecewise((Max(1, line), z < -1), (Max(0, line), z < 1), (Max(z - 1, line), True))
        assert agree(open_end.subs(values), by_quadrature(f, [-1, 1, values[c], values[c] + 1])), values


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(NotPiecewisePolynomial, match="one branch more"):
        average_branches([a], [{b: z}], b, z)
    with pytest.raises(NotPiecewisePolynomial, match="degree"):
        to_piecewise_polynomial(Abs(z**5 - z - 1), z)
    with pytest.raises(NotPiecewisePolynomial, match="gap"):
        to_piecewise_polynomial(Piecewise((z, z < 0)), z)
    assert to_piecewise_polynomial(Max(0, kappa - z), z) == ([kappa], [kappa - z, 0])


# -- the average that stays ------------------------------------------------------------------------


def test_the_bound_variable_is_bound():
    node = GaussianAverage(log(1 + exp(kappa - z)), z)
    assert node.free_symbols == {kappa}
    assert node.subs(z, 3) == node
    assert node.xreplace({z: Integer(3)}) == node
    for moved in (node.subs(kappa, z), node.xreplace({kappa: z})):
        assert moved.free_symbols == {z}
        assert abs(moved.subs(z, 1).evalf() - node.subs(kappa, 1).evalf()) < 1e-14
    renamed = node.xreplace({z: a})
    assert renamed == GaussianAverage(log(1 + exp(kappa - a)), a)
    clash = node.xreplace({z: kappa})
    assert clash.free_symbols == {kappa}
    assert clash.subs(kappa, 1).evalf() == node.subs(kappa, 1).evalf()
    assert GaussianAverage(kappa**2, z) == kappa**2
    with pytest.raises(ValuesError):
        GaussianAverage(kappa, kappa**2)


@pytest.mark.parametrize("digits", [15, 40])
@pytest.mark.parametrize(
    ("expr", "exact"),
    [
        (Max(0, 1 - z) ** 2, phi(2, 1)),
        (Max(0, -30 - z) ** 2, phi(2, -30)),
        (Heaviside(-7 - z), phi(0, -7)),
        (exp(5 * z), exp(Rational(25, 2))),
        (cos(3 * z), exp(Rational(-9, 2))),
        (Max(0, exp(z) - 2), 2 * (exp(Rational(1, 2)) / 2 * phi(0, 1 - log(2)) - phi(0, -log(2)))),
        (Abs(z) * exp(-(z**2) / 2), 1 / sqrt(2 * pi)),
    ],
)
def test_numbers_to_a_relative_error(expr, exact, digits):
    value = GaussianAverage(expr, z).evalf(digits)
    if expr.has(exp(z)):
        exact = exp(Rational(1, 2)) * phi(0, 1 - log(2)) - 2 * phi(0, -log(2))
    with mp.workdps(digits + 10):
        assert abs(number(value / exact.evalf(digits + 10), digits) - 1) < mpf(10) ** (1 - digits)


def test_numbers_inside_larger_expressions_and_in_generated_code():
    node = GaussianAverage(log(1 + exp(kappa - z)), z)
    f = lambdify(kappa, 2 * node, "mpmath")
    with mp.workdps(30):
        assert abs(f(mpf(1)) - number((2 * node).subs(kappa, 1))) < mpf(10) ** -29
    assert node.evalf() == node
    opaque = Function("opaque")
    assert GaussianAverage(opaque(z), z).free_symbols == set()


@pytest.mark.parametrize(
    "expr",
    [
        log(1 + exp(kappa - z)),
        Max(0, kappa - z) ** 2 * exp(-(z**4)),
        Abs(kappa - z) * cos(z),
        Heaviside(kappa - z) * cos(z),
        sign(kappa - 2 * z) * exp(-(z**2)),
        Piecewise((cos(z), z < kappa), (kappa * tanh(z), z < kappa + 1), (1, True)),
        Piecewise((cos(z), Or(z < kappa, z > 2 + kappa)), (tanh(z), True)),
    ],
)
def test_derivatives_carry_the_jumps(expr):
    derivative = diff(GaussianAverage(expr, z), kappa).subs(kappa, Rational(3, 10))
    with mp.workdps(30):
        h = Rational(1, 10**6)
        up, down = (GaussianAverage(expr.subs(kappa, Rational(3, 10) + s * h), z).evalf(30) for s in (1, -1))
        assert abs(derivative.evalf(20) - (up - down) / (2 * h)) < 1e-9
        assert abs(derivative.evalf(20) + (up - down) / (2 * h)) > 1e-3


def test_doit_and_writing():
    node = GaussianAverage(Max(0, kappa - z) ** 2, z)
    assert node.doit() == phi(2, kappa)
    assert latex(node).startswith(r"\left\langle ")
    assert latex(node).endswith(r"\right\rangle_{z}")
    assert latex(node**2).endswith(r"\right\rangle_{z}^{2}")
    assert node.diff(kappa).doit() == 2 * phi(1, kappa)
    assert diff(node, z) == 0
    assert GaussianAverage(Max(Abs(z) - b, 0) * log(2 + z), z).breaks == [0, b, -b]
    assert isinstance(node, Expr)


# -- signs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (p + q, 1), (-p - q**2, -1), (p - q, None), (S.Zero, 0), (p * q / (1 + p), 1),
        (-p / (1 + a**2), -1),
        (a**2, None), (a**2 + p, 1), (1 - sqrt(2), -1), (p**2 + 2 * p * q, 1), (oo, 1), (-oo, -1), (a, None),
        (1 / (1 + p) - 1, -1), ((p + 1) ** 2 - p**2, 1), (phi(2, a) + p, 1),
        (Symbol("x"), None), (Abs(a) + 1, 1),
        (p**2 - 2 * p * q + q**2, None), (-a**2 - p * q, -1), ((a + b) * 0, 0), (p * a, None),
        (p + q - q - p, 0), ((p - q) * (p - q) + r, 1), (p / q - p / (q + r), 1),
    ],
)  # fmt: skip
def test_signs_are_proved_or_left_open(expr, expected):
    assert sign_of(expr) == expected


def test_assumed_signs_combine():
    known = Signs([(b - a, 1), (c - b, 1)])
    assert known.sign(c - a, "order") == 1
    assert known.sign(2 * a - 2 * b, "order") == -1
    with pytest.raises(Undetermined):
        known.sign(a, "order")
    assert Signs([(a, 0)]).sign(3 * a, "slope") == 0


def test_powers_beside_a_tail():
    """By parts, against quadrature."""
    a, b = symbols("a b", real=True)
    for power in range(1, 5):
        found = gaussian_average(z**power * phi(0, a + b * z), z)
        assert not found.has(GaussianAverage)
        own = float(found.subs({a: Rational(3, 10), b: Rational(-7, 5)}))
        told = mp.quad(
            lambda t, n=power: t**n * mp.ncdf(mpf("0.3") - mpf("1.4") * t) * mp.npdf(t), [-12, -2, 0, 2, 12]
        )
        assert own == pytest.approx(float(told), rel=1e-12)
