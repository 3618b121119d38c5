"""Labels that are drawn on the field of a teacher: against closed forms, other declarations, and instances."""

import math
from importlib import import_module

import mpmath
import numpy as np
import pytest
from references import near
from scipy.special import wrightomega
from sympy import Eq, Float, Max, Piecewise, Rational, Sum, Symbol, erf, exp, factorial, log, pi, sign, sqrt
from sympy.stats import Binomial, Exponential, Geometric, NegativeBinomial, Normal, Poisson

from symcavity import (
    ConvexProblem,
    Coupling,
    Datum,
    DeclarationError,
    Derivation,
    Feature,
    Field,
    Infeasible,
    N,
    P,
    Quenched,
    System,
    UnsupportedLaw,
    ValuesError,
    alpha,
    average,
    i,
    mu,
    response,
)

x, w, t, o = Coupling("x"), Feature("w"), Quenched("t", i), Quenched("o", mu)
beta, gamma = Symbol("beta", positive=True), Symbol("gamma", positive=True)
h = Sum(x[mu, i] * w[i], (i, 1, N))
u = Sum(x[mu, i] * t[i], (i, 1, N))
ridge = gamma * Sum(w[i] ** 2, (i, 1, N)) / 2
VALUES = {alpha: 2, gamma: 1, beta: 1, t: {1: "1/2", -1: "1/2"}}
FAR = 4.5
half = Rational(1, 2)


def values_of(law):
    return VALUES if law in ("logistic", "probit") else {k: v for k, v in VALUES.items() if k != beta}


LAWS = {
    "logistic": {1: 1 / (1 + exp(-beta * u)), -1: 1 / (1 + exp(beta * u))},
    "probit": {1: (1 + erf(beta * u)) / 2, -1: (1 - erf(beta * u)) / 2},
    "flips": {1: (1 + 4 * sign(u) / 5) / 2, -1: (1 - 4 * sign(u) / 5) / 2},
    "three values": {1: exp(-(u**2)) / 2, -1: exp(-(u**2)) / 2, 2: 1 - exp(-(u**2))},
}
LOSSES = {
    "square": lambda y: (h - y) ** 2 / 2,
    "hinge": lambda y: Max(0, 1 - y * h),
    "logistic": lambda y: log(1 + exp(-y * h)),
}


def label(law):
    return Quenched("y", mu, law=LAWS[law], given=u)


def declared(law, loss="square"):
    return ConvexProblem(Sum(LOSSES[loss](label(law)[mu]), (mu, 1, P)) + ridge)


@pytest.fixture(scope="module")
def squares():
    return {law: declared(law).cavity() for law in LAWS}


@pytest.mark.parametrize("law", LAWS)
def test_least_squares_in_closed_form(squares, law):
    """With <y u> = c and <y^2> = 1 the weights are c times the teacher's, and what is left is noise."""
    solution = squares[law].solve(values_of(law))
    probability = {
        "logistic": lambda z: 1 / (1 + mpmath.exp(-z)),
        "probit": lambda z: (1 + mpmath.erf(z)) / 2,
        "flips": lambda z: (1 + 4 * mpmath.sign(z) / 5) / 2,
        "three values": None,
    }[law]
    density = lambda z: mpmath.exp(-z * z / 2) / mpmath.sqrt(2 * mpmath.pi)  # noqa: E731
    if probability is None:
        slope, second = mpmath.mpf(0), mpmath.quad(lambda z: density(z) * (4 - 3 * mpmath.exp(-z * z)), [-9, 0, 9])
    else:
        slope = mpmath.quad(lambda z: density(z) * z * (2 * probability(z) - 1), [-9, 0, 9])
        second = mpmath.mpf(1)
    S = mpmath.sqrt(2) - 1  # the response of ridge regression at alpha = 2 and gamma = 1
    overlap = slope * 2 * S / (1 + S)
    assert near(solution[response(w)], str(S), "1e-12")
    assert abs(solution[average(w[i] * t[i])] - overlap) < 1e-10
    force = 2 * (S / (1 + S)) ** 2  # of the messages on a weight, each (y - h)/(1 + S)
    norm = (overlap**2 + force * (second - 2 * slope * overlap)) / (1 - force)
    assert abs(solution[average(w[i] ** 2)] - norm) < 1e-10


@pytest.mark.parametrize("law", ["logistic", "flips", "three values"])
def test_the_record(squares, law):
    derivation = squares[law].derivation
    for key in ("lagrangian", "sources", "datum.response", "closure.S_lambda", "closure.q_lambda", "closed_system"):
        assert all(v.ok for v in derivation[key].verdicts(20)), key


@pytest.mark.parametrize(("law", "loss"), [("logistic", "square"), ("probit", "hinge"), ("flips", "hinge")])
def test_instances(law, loss):
    problem = declared(law, loss)
    y = label(law)
    simulation = problem.simulate(values_of(law), N=100, seeds=10)
    observables = [average(w[i] ** 2), average(w[i] * t[i]), average(y[mu] * u)]
    for row in problem.cavity().compare(simulation, observables).rows:
        assert abs(row.z) < FAR, str(row.observable)


@pytest.mark.parametrize("law", ["logistic", "probit"])
def test_logistic_regression_with_a_teacher(law):
    """The weights of a label are averaged over the teacher's field at a given field of the student."""
    problem = declared(law, "logistic")
    theory = problem.cavity()
    simulation = problem.simulate(VALUES, N=100, seeds=10)
    for row in theory.compare(simulation, [average(w[i] ** 2), average(w[i] * t[i]), response(w)]).rows:
        assert abs(row.z) < FAR, str(row.observable)


@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_a_factor_in_the_field_is_one_in_the_law(loss):
    """The label is drawn on beta*u, whether beta stands in the sum over teacher weights or in the law."""
    field = Sum(x[mu, i] * beta * t[i], (i, 1, N))
    scaled = Quenched("y", mu, law={1: 1 / (1 + exp(-field)), -1: 1 / (1 + exp(field))}, given=field)
    theory = ConvexProblem(Sum(LOSSES[loss](scaled[mu]), (mu, 1, P)) + ridge).cavity()
    values = {**VALUES, beta: 3}
    other = declared("logistic", loss).cavity().solve(values)
    found = theory.solve(values)
    for observable in (average(w[i] ** 2), average(w[i] * t[i]), response(w)):
        assert near(found[observable], other[observable], 1e-12)


def test_flips_are_a_sign_times_a_sign():
    """Labels that are wrong one time in ten: as a law on the field, and as an independent sign."""
    s = Quenched("s", mu, law={1: Rational(9, 10), -1: Rational(1, 10)})
    other = ConvexProblem(Sum((h - s[mu] * sign(u)) ** 2 / 2, (mu, 1, P)) + ridge).cavity().solve(values_of("flips"))
    solution = declared("flips").cavity().solve(values_of("flips"))
    for observable in (average(w[i] ** 2), average(w[i] * t[i])):
        assert abs(solution[observable] - other[observable]) < 1e-10


def test_a_system_with_a_field_of_its_own():
    field, message = Field("u", mu), Datum("g")
    law = {1: (1 + erf(beta * field[mu])) / 2, -1: (1 - erf(beta * field[mu])) / 2}
    y = Quenched("y", mu, law=law, given=field[mu])
    system = System(
        [
            Eq(field[mu], u),
            Eq(message[mu], y[mu] - h),
            Eq(gamma * w[i], Sum(x[mu, i] * message[mu], (mu, 1, P))),
        ]
    )
    one, other = system.cavity().solve(VALUES), declared("probit").cavity().solve(VALUES)
    for observable in (average(w[i] ** 2), average(w[i] * t[i])):
        assert abs(one[observable] - other[observable]) < 1e-10


def test_what_cannot_be_done():
    problem = declared("logistic")
    with pytest.raises(UnsupportedLaw, match="labels of others"):
        problem.cavity_experiment(VALUES, N=30, seeds=2)
    with pytest.raises(ValuesError, match="y"):
        problem.simulate({**VALUES, label("logistic"): {1: 1}}, N=30, seeds=1)
    wrong = Quenched("y", mu, law={1: sqrt(2) * u, -1: 1 - sqrt(2) * u}, given=u)
    with pytest.raises(ValuesError, match="non-negative"):
        ConvexProblem(Sum((h - wrong[mu]) ** 2 / 2, (mu, 1, P)) + ridge).simulate(
            {k: v for k, v in VALUES.items() if k != beta}, N=30, seeds=1
        )


def test_observables_of_fields_are_written_as_in_the_declaration():
    """Agreement with the labels and with the teacher, by the sums that stand in the declaration."""
    problem = declared("flips")
    y, values = label("flips"), values_of("flips")
    theory = problem.cavity()
    solution, simulation = theory.solve(values), problem.simulate(values, N=100, seeds=10)
    for observable in (average(y[mu] * h), average(3 * h * y[mu] - y[mu] * u)):
        assert abs(simulation[observable].z(solution[observable])) < FAR, observable
    flat = ConvexProblem(Sum((h - u) ** 2, (mu, 1, P)) / 2 + ridge).cavity().solve(values)
    known = flat[average((w[i] - t[i]) ** 2)] / (1 + flat[response(w)]) ** 2  # of new data, reduced by learning
    assert near(flat[average((h - u) ** 2)], str(known), "1e-12")
    with pytest.raises(DeclarationError, match="do not hear"):
        solution[average(Sum(x[mu, i] * w[i] * t[i], (i, 1, N)))]


@pytest.mark.parametrize(
    ("law", "moments"),  # <y>, <y u> and <y**2>, of log-normal rates, with <u**2> = 1/4
    [
        (Poisson("y", 2 * exp(u)), lambda e: (2 * e(1), e(1) / 2, 4 * e(2) + 2 * e(1))),
        (Geometric("y", 1 / (1 + exp(u))), lambda e: (1 + e(1), e(1) / 4, 1 + 3 * e(1) + 2 * e(2))),
        (NegativeBinomial("y", 3, 1 / (1 + exp(-u))), lambda e: (3 * e(-1), -3 * e(-1) / 4, 12 * e(-2) + 3 * e(-1))),
        (Poisson("y", 40 * exp(u)), lambda e: (40 * e(1), 10 * e(1), 1600 * e(2) + 40 * e(1))),
    ],
)
def test_counts(law, moments):
    """Least squares know two moments of the labels: those of counts, and of a Gaussian label that has the same."""
    y, e = Quenched("y", mu, law=law, given=u), Quenched("e", mu, law=Normal("e", 0, 1))
    b, s = Symbol("b", real=True), Symbol("s", positive=True)
    m, slope, second = (float(v) for v in moments(lambda k: mpmath.exp(mpmath.mpf(k * k) / 8)))
    values = {alpha: 2, gamma: 1, t: {"1/2": "1/2", "-1/2": "1/2"}}
    counted = ConvexProblem(Sum((y[mu] - h) ** 2, (mu, 1, P)) / 2 + ridge)
    solution = counted.cavity().solve(values)
    for observable, value in ((average(y[mu]), m), (average(y[mu] * u), slope), (average(y[mu] ** 2), second)):
        assert float(solution[observable]) == pytest.approx(value, rel=1e-11)
    noisy = ConvexProblem(Sum((b * u + s * e[mu] - h) ** 2, (mu, 1, P)) / 2 + ridge).cavity()
    alike = noisy.solve({**values, b: 4 * slope, s: (second - 4 * slope**2) ** 0.5})
    for observable in (average(w[i] * t[i]), average(w[i] ** 2)):
        assert float(solution[observable]) == pytest.approx(float(alike[observable]), rel=1e-9)
    simulation = counted.simulate(values, N=50, seeds=6)
    for observable in (average(y[mu]), average(y[mu] * u), average(w[i] ** 2)):
        assert abs(simulation[observable].z(solution[observable])) < FAR, observable


def test_regression_on_counts():
    """A likelihood of counts is that of a finite law with all that is left in its last value."""
    few = {k: exp(k * u - exp(u) / 4) / (4**k * factorial(k)) for k in range(6)}
    laws = (Poisson("y", exp(u) / 4), {**few, 6: 1 - sum(few.values())})
    found = []
    for law in laws:
        y = Quenched("y", mu, law=law, given=u)
        problem = ConvexProblem(Sum(exp(h) / 4 - y[mu] * h, (mu, 1, P)) + ridge)
        found.append(problem.cavity().solve({alpha: 2, gamma: 1, t: {"1/4": "1/2", "-1/4": "1/2"}}))
    for observable in (average(w[i] * t[i]), average(w[i] ** 2)):
        assert float(found[0][observable]) == pytest.approx(float(found[1][observable]), rel=3e-6)


def test_counts_whose_rates_spread_over_decades():
    """Two equations of a solution by a sum over counts, at Hermite nodes of both fields, with the law by omega."""
    y = Quenched("y", mu, law=Poisson("y", exp(u)), given=u)
    problem = ConvexProblem(Sum(exp(h) - y[mu] * h, (mu, 1, P)) + ridge)
    solution = problem.cavity().solve({alpha: 2, gamma: 1, t: {1: half, -1: half}}, timeout=60)
    s, q, m = (float(solution[name]) for name in ("S_w", "q_w", "q_t_w"))
    z, weight = np.polynomial.hermite_e.hermegauss(80)
    teacher, student = z[:, None], m * z[:, None] + math.sqrt(q - m**2) * z
    share = np.outer(weight, weight) / weight.sum() ** 2
    squares = slopes = 0.0
    for count in range(1500):
        drawn = share * np.exp(count * teacher - np.exp(teacher) - math.lgamma(count + 1))
        rate = wrightomega(student + s * count + math.log(s)) / s  # exp(h), where h + s*exp(h) is what is heard
        squares += np.sum(drawn * (count - rate) ** 2)
        slopes -= np.sum(drawn * rate / (1 + s * rate))
    assert float(solution["q_lambda"]) == pytest.approx(squares, rel=1e-9)
    assert float(solution["S_lambda"]) == pytest.approx(slopes, rel=1e-9)


@pytest.mark.parametrize("law", [Poisson("n", exp(o[mu])), Exponential("n", exp(o[mu])), {0: o[mu], 1: 1 - o[mu]}])
def test_a_law_that_holds_another_parameter_needs_a_field(law):
    with pytest.raises(DeclarationError, match=r"o\[mu\] stands in the law of n"):
        Quenched("n", mu, law=law)


def test_laws_of_labels():
    """Which laws of SymPy a label may have, and what is said of others."""
    y = Quenched("y", mu, law=Binomial("y", 3, 1 / (1 + exp(-u))), given=u)
    assert [value for value, _ in y.law] == [0, 1, 2, 3]
    with pytest.raises(DeclarationError, match="label that is continuous"):
        Quenched("y", mu, law=Exponential("y", exp(-u)), given=u)
    bad = Quenched("y", mu, law=Poisson("y", 1 + u), given=u)
    problem = ConvexProblem(Sum((h - bad[mu]) ** 2 / 2, (mu, 1, P)) + ridge)
    values = {alpha: 2, gamma: 1, t: {1: 1}}
    with pytest.raises(ValuesError, match="every value of the field"):
        problem.simulate(values, N=30, seeds=1)
    good = Quenched("y", mu, law=Poisson("y", exp(u)), given=u)
    theory = ConvexProblem(Sum((h - good[mu]) ** 2 / 2, (mu, 1, P)) + ridge).cavity()
    with pytest.raises(ValuesError, match="dps <= 15"):
        theory.solve(values, dps=30)
    assert theory.derivation.verify(dps=15)
    assert Derivation.from_json(theory.derivation.to_json(verify=False)) == theory.derivation


@pytest.mark.parametrize(
    ("label", "slope", "second"),
    [
        (sign(u), sqrt(2 / pi), 1),
        (Piecewise((1, u > 0), (0, True)), 1 / sqrt(2 * pi), half),
        (Piecewise((-1, u < -1), (0, u < 1), (1, True)), 2 * exp(-half) / sqrt(2 * pi), 1 - erf(sqrt(half))),
    ],
)
def test_weights_that_are_sums_over_labels(label, slope, second):
    """Hebb's rule hears the teacher alone: ``<t w> = alpha <y u>``, at steps and at several of them."""
    hebb = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 2 - Sum(label * h, (mu, 1, P))).cavity()
    solution = hebb.solve({alpha: 3, t: {1: half, -1: half}})
    overlap = 3 * float(slope)
    assert float(solution[average(w[i] * t[i])]) == pytest.approx(overlap, rel=1e-12)
    assert float(solution[average(w[i] ** 2)]) == pytest.approx(3 * float(second) + overlap**2, rel=1e-12)
    ridge = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 2 + Sum((label - h) ** 2, (mu, 1, P)) / 2).cavity()
    found, rest = ridge.solve({alpha: 3, t: {1: half, -1: half}}), second - slope**2
    e = Quenched("e", mu, law={1: half, -1: half})
    error = slope * u + sqrt(rest) * e[mu] - h
    noisy = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 2 + Sum(error**2, (mu, 1, P)) / 2)
    alike = noisy.cavity().solve({alpha: 3, t: {1: half, -1: half}})
    for observable in (average(w[i] * t[i]), average(w[i] ** 2)):
        assert float(found[observable]) == pytest.approx(float(alike[observable]), rel=1e-9)


@pytest.mark.parametrize("name", ["flipped_labels", "logistic_existence", "sign_teacher"])
def test_a_teacher_leaves_no_rescaling_and_its_record_holds(name):
    """The naive theory has no echo of the teacher; an average over both labels is written once."""
    problem = import_module(f"symcavity.derivations.{name}").problem
    theory = problem.cavity()
    assert not problem.symmetry()
    assert all(v.ok for key in ("datum.response", "symmetry") for v in theory.derivation[key].verdicts())
    assert sum(value.count_ops() for value in theory.closures.values()) < 400


def test_the_answer_to_flipped_labels_is_that_at_the_teachers_boundary():
    """``<d(y lambda)/du>`` is (1 - 2 p) times twice the density of u at zero times the mean of lambda there."""
    theory = import_module("symcavity.derivations.flipped_labels").problem.cavity()
    ours = next(value for s, value in theory.closures.items() if s.name == "S_y_lambda_to_u_y")
    q, overlap, S, C, p = 2.0, 0.5, 0.4, 3.0, 0.1
    numbers = {"q_w": q, "q_t_w": overlap, "S_w": S, "C": C, "p": p}
    known = {s: Float(numbers[s.name]) for s in ours.atoms(Symbol) if s.name in numbers}
    ours = ours.xreplace({average(t[i] ** 2): 1}).xreplace(known)
    scale = math.sqrt(q - overlap**2)
    grid = np.linspace(-9, 9, 400001)
    mean = np.trapezoid(np.clip((1 - scale * grid) / S, 0, C) * np.exp(-(grid**2) / 2), grid) / math.sqrt(2 * math.pi)
    assert float(ours) == pytest.approx((1 - 2 * p) * math.sqrt(2 / math.pi) * mean, rel=1e-8)


@pytest.mark.parametrize("law", ["logistic", "probit"])
def test_maximum_likelihood_exists_where_labels_are_not_separable(law):
    """The end of the branch, where the norm diverges, is the load of the widest margin as the margin vanishes."""
    x, w, t, kappa = Coupling("x"), Feature("w"), Quenched("t", i), Symbol("kappa", positive=True)
    h, u = (Sum(x[mu, i] * v[i], (i, 1, N)) for v in (w, t))
    share = {"logistic": lambda z: 1 / (1 + exp(-z)), "probit": lambda z: (1 + erf(z / sqrt(2))) / 2}[law]
    y = Quenched("y", mu, law={1: share(u), -1: share(-u)}, given=u)
    teacher = {t: {2: 1}} if law == "logistic" else {t: {1: 1}}
    squares = Sum(w[i] ** 2, (i, 1, N))
    margin = ConvexProblem(squares / 2, [y[mu] * h >= 1], fixed=[Eq(average(w[i] ** 2), 1 / kappa**2)])
    line = float(margin.cavity().solve({kappa: "1e-5", **teacher})[alpha])
    loss = log(1 + exp(-y[mu] * h)) if law == "logistic" else -log(share(y[mu] * h))
    likeliest = ConvexProblem(Sum(loss, (mu, 1, P))).cavity()
    with pytest.raises(Infeasible) as refused:
        likeliest.solve({alpha: "3/2", **teacher})
    assert refused.value.evidence.load == pytest.approx(line, rel=0.01)
    assert refused.value.evidence.way == "larger"
    assert "q_w" in map(str, refused.value.evidence.diverging)
    norms = [likeliest.solve({alpha: str(round(line * k, 6)), **teacher})[average(w[i] ** 2)] for k in (1.05, 1.1)]
    assert norms[0] > 1.8 * norms[1] > 10  # it grows as the inverse of the distance


def test_weights_that_hold_a_parameter_of_their_site():
    """Teachers of two temperatures: where the loss does not know them it is the mixture; where it does, instances."""
    T = Quenched("T", mu, law={1: half, 4: half}, positive=True)
    logistic = {v: 1 / (1 + exp(-v * T[mu] * u)) for v in (1, -1)}
    mixed = {v: sum(1 / (1 + exp(-v * k * u)) for k in (1, 4)) / 2 for v in (1, -1)}
    labels = [Quenched("y", mu, law=law, given=u) for law in (logistic, mixed)]
    loss = Sum(log(1 + exp(-labels[0][mu] * h)), (mu, 1, P)) + ridge
    values = {alpha: 2, gamma: 1, t: {1: half, -1: half}}
    one, other = (ConvexProblem(loss.subs(labels[0][mu], y[mu])).cavity().solve(values) for y in labels)
    for observable in (average(w[i] ** 2), average(w[i] * t[i])):
        assert float(one[observable]) == pytest.approx(float(other[observable]), rel=1e-9)
    known = ConvexProblem(Sum(log(1 + exp(-labels[0][mu] * T[mu] * h)), (mu, 1, P)) + ridge)
    sample = known.simulate(values, N=100, seeds=5)
    seen = average(labels[0][mu] * T[mu])
    assert known.cavity().compare(sample, [average(w[i] * t[i]), average(w[i] ** 2), seen]).worst < FAR
    with pytest.raises(DeclarationError, match="quenched parameters of the same site"):
        Quenched("y", mu, law={1: t[i], -1: 1 - t[i]}, given=u)


@pytest.mark.parametrize("joint", [True, False], ids=["given together", "independent"])
def test_labels_that_no_teacher_explains_are_fitted(joint):
    """The parity of two teachers is noise to a linear student: ridge regression on labels of variance one."""
    pairs = {(a, b): Rational(1, 4) for a in (1, -1) for b in (1, -1)}
    one, two = Quenched(("t1", "t2"), i, law=pairs) if joint else (Quenched("t1", i), Quenched("t2", i))
    label = sign(Sum(x[mu, i] * one[i], (i, 1, N))) * sign(Sum(x[mu, i] * two[i], (i, 1, N)))
    error = Sum((label - h) ** 2, (mu, 1, P)) / 2
    laws = {} if joint else {known: {1: "1/2", -1: "1/2"} for known in (one, two)}
    solution = ConvexProblem(error + ridge).cavity().solve({alpha: 2, gamma: "1/2", **laws})
    S = float(np.roots([0.5, 1.5, -1]).max())  # 1/S = gamma + alpha/(1 + S)
    assert float(solution[average(w[i] ** 2)]) == pytest.approx(2 * S**2 / ((1 + S) ** 2 - 2 * S**2), rel=1e-12)
    assert solution.residual < 1e-12
    assert [float(solution[average(known[i] * w[i])]) for known in (one, two)] == [0, 0]
