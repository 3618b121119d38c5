"""Declarations that differ in spelling only, and laws whose numbers once ended in errors of another library."""

import numpy as np
import pytest
from sympy import Abs, Eq, Max, Min, Piecewise, Rational, Sum, Symbol, asinh, atanh, erf, erfinv, exp, log, sqrt, tanh

from symcavity import (
    ConvexProblem,
    Coupling,
    DeclarationError,
    Feature,
    Global,
    N,
    NotConvex,
    P,
    Quenched,
    Sites,
    System,
    UnsupportedLaw,
    ValuesError,
    Variable,
    alpha,
    average,
    i,
    mu,
)
from symcavity.evaluate.averages.compiler import Compiled
from symcavity.model.equations import Equation
from symcavity.model.rewriting import Declaration
from symcavity.model.rewritings.inverses import Inverses

x, w, v, s = Coupling("x"), Feature("w"), Feature("v"), Feature("s")
t, xi, e, j = Quenched("t", i), Quenched("xi", i), Quenched("e", mu), Symbol("j", integer=True)
RIDGE = Sum(w[i] ** 2, (i, 1, N)) / 2
HERMITE = np.polynomial.hermite_e.hermegauss(120)


def gauss(f):
    """The average of a function of a standard Gaussian."""
    nodes, weights = HERMITE
    return float(weights @ f(nodes) / weights.sum())


def norm_of(problem, values):
    """The mean square of the weights."""
    return problem.cavity().solve(values)[average(w[i] ** 2)]


@pytest.mark.parametrize("shift", [0, 1], ids=["a copy", "a shifted copy"])
def test_a_copy_of_the_weights(shift):
    """Constraints with coefficient one name the weights anew."""
    heard = Sum(x[mu, i] * v[i], (i, 1, N))
    copied = ConvexProblem(RIDGE + Sum((1 - heard) ** 2, (mu, 1, P)), [Eq(v[i], w[i] - shift * t[i])])
    plain = Sum(x[mu, i] * (w[i] - shift * t[i]), (i, 1, N))
    values = {alpha: 2, t: {1: 1}} if shift else {alpha: 2}
    assert norm_of(copied, values) == pytest.approx(
        norm_of(ConvexProblem(RIDGE + Sum((1 - plain) ** 2, (mu, 1, P))), values), rel=1e-10
    )


def test_a_coupling_that_is_another():
    """Correlation one is the coupling itself."""
    z = Coupling("z", correlation={x: 1})
    one, two = (
        ConvexProblem(RIDGE + Sum(Abs(Sum(x[mu, i] * w[i], (i, 1, N)) - Sum(u[mu, i] * t[i], (i, 1, N))), (mu, 1, P)))
        for u in (x, z)
    )
    values = {alpha: 2, t: {1: 1}}
    assert norm_of(one, values) == pytest.approx(norm_of(two, values), rel=1e-10)


def test_the_root_of_what_rounding_made_negative():
    """It is no number, in digits as in double."""
    size = Symbol("q", real=True)
    for backend in ("numpy", "mpmath"):
        value = Compiled(sqrt(size) + 1, backend)({size: -1e-17})
        assert not isinstance(value, complex)
        assert np.isnan(float(value))


def test_a_float_in_an_observable():
    """A number in scientific notation."""
    solution = ConvexProblem(RIDGE + Sum((Sum(x[mu, i] * w[i], (i, 1, N)) - 1) ** 2, (mu, 1, P)) / 2).cavity().solve(
        {alpha: 2}
    )
    key = average(w[i] ** 2)
    assert solution[1e20 * key] == pytest.approx(1e20 * float(solution[key]), rel=1e-14)


def test_a_rectified_saturating_unit():
    """Kinks of a function that vanishes at one place."""
    J = Coupling("J", between=(i, i), reciprocity=0)
    system = System([Eq(s[i], Max(0, tanh(Sum(J[i, j] * s[j], (j, 1, N)) + xi[i])))])
    q = float(system.cavity().solve({xi: {1: "1/2", 0: "1/2"}})[average(s[i] ** 2)])
    ends = np.linspace(-12, 12, 4001)
    share = np.exp(-ends**2 / 2) / np.exp(-ends**2 / 2).sum()
    found = sum(share @ np.maximum(0, np.tanh(np.sqrt(q) * ends + b)) ** 2 / 2 for b in (0, 1))
    assert q == pytest.approx(found, rel=1e-5)


def test_a_loop_of_three_kinds_with_a_drive():
    """Averages over a drive stand inside of averages over the next kind's fields."""
    (a, K), (b, M) = Sites("a", "K"), Sites("b", "M")
    y, z = Variable("y", a), Variable("z", b)
    A, B, D = (Coupling(name, between=ends) for name, ends in (("A", (a, i)), ("B", (b, a)), ("D", (i, b))))
    equations = [
        Eq(s[i], tanh(Sum(D[i, b] * z[b], (b, 1, M)) + xi[i])),
        Eq(y[a], tanh(Sum(A[a, i] * s[i], (i, 1, N)))),
        Eq(z[b], tanh(Sum(B[b, a] * y[a], (a, 1, K)))),
    ]
    solution = System(equations).cavity().solve({xi: {"3/2": "1/2", "-1/2": "1/2"}, K / N: 1, M / N: 2})
    size = float(solution[average(z[b] ** 2)])
    q = np.mean([gauss(lambda u, c=c: np.tanh(np.sqrt(2 * size) * u + c) ** 2) for c in (1.5, -0.5)])
    q = gauss(lambda u: np.tanh(np.sqrt(q) * u) ** 2)
    assert size == pytest.approx(gauss(lambda u: np.tanh(np.sqrt(q) * u) ** 2), rel=1e-8)


def test_a_power_that_is_not_known_is_refused_for_what_it_is():
    """Its slope may be infinite at the origin."""
    p = Symbol("p", positive=True)
    loss = Sum((Sum(x[mu, i] * w[i], (i, 1, N)) - 1) ** 2, (mu, 1, P))
    with pytest.raises(UnsupportedLaw, match="slope"):
        ConvexProblem(loss + Sum(Abs(w[i]) ** p, (i, 1, N))).cavity()
    assert norm_of(ConvexProblem(loss / 2 + Sum(Abs(w[i]) ** Rational(3, 2), (i, 1, N))), {alpha: 2}) > 0


MASK = {0: Rational(1, 4), 1: Rational(1, 2), 2: Rational(1, 4)}


class TestZerosAmongValues:
    """A law with a zero, given as a value to a parameter that was taken as positive."""

    @staticmethod
    def weighted(m):
        """Least squares whose data have weights."""
        return ConvexProblem(RIDGE + Sum(m[mu] * (1 - Sum(x[mu, i] * w[i], (i, 1, N))) ** 2, (mu, 1, P)) / 2)

    @pytest.mark.parametrize("law", [MASK, {0: 0.25, 1: 0.5, 2: "1/4"}], ids=["exact", "floats"])
    def test_is_the_law_of_the_declaration(self, law):
        """The same numbers and observables, where the mask is zero as well."""
        open_, declared = Quenched("m", mu), Quenched("m", mu, law=MASK)
        h = Sum(x[mu, i] * w[i], (i, 1, N))
        theory = self.weighted(open_).cavity()
        assert theory.taken  # without it nothing is tested
        one = theory.solve({alpha: 2, open_: law})
        two = self.weighted(declared).cavity().solve({alpha: 2})
        for key in (average(w[i] ** 2), average(open_[mu] * (1 - h) > 0), average(open_[mu] * (1 - h) ** 2)):
            assert float(one[key]) == pytest.approx(float(two[key]), rel=1e-10)
        curve = theory.function(average(w[i] ** 2), alpha, values={"m": law})
        assert float(curve(2)) == pytest.approx(float(two[average(w[i] ** 2)]), rel=1e-10)

    def test_is_refused_where_the_declaration_says_positive(self):
        """A contradiction of the user's own, and digits that floats do not have."""
        positive, open_ = Quenched("m", mu, positive=True), Quenched("m", mu)
        with pytest.raises(ValuesError, match="has the value 0"):
            self.weighted(positive).cavity().solve({alpha: 2, positive: MASK})
        with pytest.raises(ValuesError, match="has the value -1"):
            self.weighted(open_).cavity().solve({alpha: 2, open_: {-1: Rational(1, 2), 0: Rational(1, 2)}})
        with pytest.raises(ValuesError, match="digits"):
            self.weighted(open_).cavity().solve({alpha: 2, open_: {0: 0.5, 1: 0.5}}, dps=30)


@pytest.mark.parametrize(
    ("inverse", "solved"),
    [
        (lambda f: Eq(atanh(w[i]), f), lambda f: Eq(w[i], tanh(f))),
        (lambda f: Eq(f, erfinv(w[i])), lambda f: Eq(w[i], erf(f))),
        (lambda f: Eq(log(w[i] / (1 - w[i])), f), lambda f: Eq(w[i], 1 / (1 + exp(-f)))),
        (lambda f: Eq(2 * log(1 - w[i]) - 2 * log(w[i]), -2 * f), lambda f: Eq(w[i], 1 / (1 + exp(-f)))),
        (lambda f: Eq(log(2 * w[i]), -f), lambda f: Eq(w[i], exp(-f) / 2)),
    ],
    ids=["atanh", "erfinv", "a ratio of logarithms", "a difference of logarithms", "a logarithm"],
)
def test_an_equation_in_an_inverse_function(inverse, solved):
    """Its state ranges over an interval, which the equation as it stands does not say."""
    J = Coupling("J", between=(i, i), variance=1 / (25 * N))
    heard = Sum(J[i, j] * w[j], (j, 1, N)) + Rational(1, 2)
    one, two = (System([law(heard)]).cavity() for law in (inverse, solved))
    assert [str(e) for e in one.equations] == [str(e) for e in two.equations]


def test_an_equation_in_an_inverse_function_that_stays():
    """States beside it, or logarithms that are positive on both sides of a pole, leave it as it is."""
    J = Coupling("J", between=(i, i), variance=1 / (25 * N))
    heard = Sum(J[i, j] * w[j], (j, 1, N))
    for entry in (Equation(asinh(w[i]) + w[i], heard), Equation(log(w[i] - 1) - log(w[i] - 2), heard)):
        declaration = Declaration(None, (entry,))
        assert Inverses(declaration).apply(declaration) == declaration


@pytest.mark.parametrize("law", [{(0, 0): 1, (0, 1): 1}, {(1, 0): 1, (0, 1): 1}], ids=["together", "in turn"])
def test_kinks_that_meet_for_some_labels(law):
    """Where a label puts one kink upon another, multipliers are open and states are not: as with a law of its own."""
    law = {values: Rational(1, 2) for values in law}
    pair, alone = Quenched(("t", "s"), i, law=law), Quenched("s", i, law={0: Rational(1, 2), 1: Rational(1, 2)})
    h = Sum(x[mu, i] * w[i], (i, 1, N))

    def fit(s):
        prices = Sum(Abs(w[i]) + Abs(w[i] - s[i]), (i, 1, N)) / 4
        return ConvexProblem(Sum((1 - h) ** 2, (mu, 1, P)) / 2 + prices)

    joint, single = (fit(s).cavity().solve({alpha: 1}) for s in (pair[1], alone))
    assert float(joint[average(w[i] ** 2)]) == pytest.approx(float(single[average(w[i] ** 2)]), rel=1e-12)
    sim = fit(pair[1]).simulate({alpha: 1}, N=60, seeds=20)
    assert abs(fit(pair[1]).cavity().compare(sim, [average(w[i] ** 2)]).rows[0].z) < 3.5


def test_two_bounds_that_keep_a_global_variable_from_being_negative():
    """Bounds of both signs, in any units: their sum without the states says so, and a bound that repeats it is idle."""
    worst = Global("V")
    gap = Sum(x[mu, i] * w[i], (i, 1, N)) - e[mu]
    spellings = (
        [Abs(gap) <= worst],
        [2 * gap <= 2 * worst, -gap <= worst],
        [Abs(gap) <= worst, worst >= 0],
        [worst - gap >= 0, 3 * worst + 3 * gap >= 0, worst >= -1],
    )
    first, *others = (
        ConvexProblem(N * worst / 10 + RIDGE, bounds).cavity().solve({alpha: 2, e: {1: "1/2", -2: "1/2"}})[worst]
        for bounds in spellings
    )
    assert first > 1
    assert all(other == pytest.approx(first, rel=1e-12) for other in others)


@pytest.mark.parametrize("held", [lambda h, y: y * h, lambda h, y: Piecewise((h, Eq(y, 1)), (1, True))])
def test_a_constraint_of_some_labels_only(held):
    """Where a label leaves nothing of a constraint, its multiplier has no value; a bound far away holds the states."""
    label, heard = Quenched("y", mu, law={1: "1/2", 0: "1/2"}), Sum(x[mu, i] * w[i], (i, 1, N))
    loss = RIDGE + Sum((heard - 1) ** 2, (mu, 1, P)) / 2
    with pytest.raises(UnsupportedLaw, match=r"holds no state where y\[mu\] = 0"):
        ConvexProblem(loss, [held(heard, label[mu]) >= 0])
    far = [
        norm_of(ConvexProblem(loss, [heard >= Piecewise((1, Eq(label[mu], 1)), (-end, True))]), {alpha: 2})
        for end in (100, 10**4)
    ]
    assert far[0] == pytest.approx(far[1], rel=1e-12)


def test_cases_that_sympy_takes_out_of_a_coupling_sum():
    """A rate by Piecewise: within Sum the coupling stands in each case; in a sum of sums the index is lost for good."""
    J, rate = Coupling("J", between=(i, i), variance=1 / (4 * N)), Max(0, w[j])
    sent = (rate, Piecewise((w[j], w[j] > 0), (0, True)), Piecewise((w[j] - 1, w[j] > 0), (-1, True)) + 1)
    systems = [System([Eq(w[i], Rational(1, 2) + Sum(J[i, j] * u, (j, 1, N)))]) for u in sent]
    assert systems[1].cavity().derivation.verify()
    first, *others = (norm_of(system, {}) for system in systems)
    assert all(other == pytest.approx(first, rel=1e-12) for other in others)
    one, other = (system.simulate({}, N=20, seeds=2)[average(w[i] ** 2)].mean for system in systems[:2])
    assert one == pytest.approx(other, rel=1e-12)
    step = Sum(x[mu, i] * (w[i] - Piecewise((1, t[i] > 0), (-1, True))), (i, 1, N))
    with pytest.raises(DeclarationError, match="takes cases out of a sum"):
        ConvexProblem(RIDGE + Sum((1 - step) ** 2, (mu, 1, P)))


LABEL = Quenched("y", mu, law={1: Rational(1, 2), -1: Rational(1, 2)})
BIT = Quenched("z", mu, law={1: Rational(1, 3), 0: Rational(2, 3)})
HEARD, OTHER = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(x[mu, i] * v[i], (i, 1, N))
LARGEST, SHORT = Max(HEARD, OTHER, 0), 1 - LABEL[mu] * HEARD


@pytest.mark.parametrize(
    ("stable", "plain"),
    [
        (Max(0, -LABEL[mu] * HEARD) + log(1 + exp(-Abs(HEARD))), log(1 + exp(-LABEL[mu] * HEARD))),
        (Max(0, SHORT) + log(1 + exp(-Abs(SHORT))), log(1 + exp(SHORT))),
        (Max(HEARD, 0) - BIT[mu] * HEARD + log(1 + exp(-Abs(HEARD))), log(1 + exp(HEARD)) - BIT[mu] * HEARD),
        (
            LARGEST + log(exp(-LARGEST) + exp(HEARD - LARGEST) + exp(OTHER - LARGEST)) - BIT[mu] * HEARD,
            log(1 + exp(HEARD) + exp(OTHER)) - BIT[mu] * HEARD,
        ),
    ],
    ids=["logistic", "with a margin", "of bits", "of three classes"],
)
def test_stable_spellings(stable, plain):
    """A smooth loss in the spelling that does not overflow, whose pieces are one function: one law, one number."""
    ridge = RIDGE + (Sum(v[i] ** 2, (i, 1, N)) / 2 if OTHER in stable.atoms(Sum) else 0)
    found, known = (norm_of(ConvexProblem(Sum(f, (mu, 1, P)) + ridge), {alpha: 2}) for f in (stable, plain))
    assert found == pytest.approx(known, rel=1e-11)


def proximal_norm(slope, load):
    """The mean square of ridge weights, for a loss with a slope: bisection on a fine grid, and iteration of q and S."""
    q, chi = 1.0, 1.0
    z = np.linspace(-9, 9, 4001)
    weights = np.exp(-(z**2) / 2) / np.exp(-(z**2) / 2).sum()
    for _ in range(60):
        field, low, high = sqrt_of(q) * z, np.full(z.size, -40.0), np.full(z.size, 40.0)
        for _ in range(60):
            middle = (low + high) / 2
            above = middle + chi * slope(middle) > field
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        pull = (field - middle) / chi
        answer = float(weights @ (z * pull)) / sqrt_of(q)  # the mean slope of the pull, by parts
        chi = 1 / (1 + load * answer)
        q = chi**2 * load * float(weights @ pull**2)
    return q


def sqrt_of(number):
    return float(number) ** 0.5


def test_pieces_that_are_convex_together():
    """A slope that falls at zero in one term rises there in another: what bends at one place is looked at together."""
    falling = Max(0, -HEARD) + exp(-Abs(HEARD)) / 2
    found = norm_of(ConvexProblem(Sum(falling, (mu, 1, P)) + RIDGE), {alpha: 2})
    known = proximal_norm(lambda h: np.where(h < 0, np.exp(h) / 2 - 1, -np.exp(-h) / 2), 2)
    assert found == pytest.approx(known, rel=1e-6)
    with pytest.raises(NotConvex, match="not convex"):
        ConvexProblem(Sum(Max(0, HEARD) + exp(-Abs(HEARD)), (mu, 1, P)) + RIDGE)


def test_terms_whose_kinks_cancel():
    """A smooth hinge as a bounded square and a positive part: each has a kink at zero, and the sum has none."""
    margin = LABEL[mu] * HEARD
    bounded = Min(Max(0, 1 - margin), 1) ** 2 / 2 + Max(0, -margin)
    by_cases = Piecewise((Rational(1, 2) - margin, margin <= 0), ((1 - margin) ** 2 / 2, margin < 1), (0, True))
    found, known = (norm_of(ConvexProblem(Sum(f, (mu, 1, P)) + RIDGE), {alpha: 2}) for f in (bounded, by_cases))
    assert found == pytest.approx(known, rel=1e-11)
    assert found == pytest.approx(proximal_norm(lambda h: np.clip(h - 1, -1, 0), 2), rel=1e-6)
