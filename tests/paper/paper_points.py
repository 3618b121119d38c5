"""Section 2: the perceptron capacity of random points, equations 1 to 64."""

from functools import cache

import mpmath
import numpy as np
from paper_reading import *
from paper_rows import DECLARED, DERIVED, DIGITS, SIMULATED, VERIFIED, claim, equation
from sympy import Max, Piecewise, Rational, Sum, Symbol

import symcavity as sc
from symcavity.algebra.prove import TruncatedIntegral
from symcavity.derivations import gardner

h_mu = Sum(w[i] * x[mu, i], (i, 1, N))
S_lam = mean(resp(lam[mu]))
S_w = mean(resp(w[i]))

claim("11", "gardner: disorder", avg(x[mu, i]), 0, verdict=DECLARED)
claim("12", "gardner: disorder", avg(x[mu, i] * x[nu, j]), KroneckerDelta(mu, nu) * KroneckerDelta(i, j) / N,
      1, verdict=DECLARED)  # fmt: skip
claim("5", "gardner: lagrangian", Symbol("L"),
      Sum(w[i] ** 2, (i, 1, N)) / 2 - Sum(lam[mu] * (h_mu - 1), (mu, 1, P)))  # fmt: skip
claim("15", "gardner, naive: substitution.put", h[mu],
      Sum(x[mu, i] * x[nu, i] * lam[nu], (nu, 1, P), (i, 1, N)) - 1)  # fmt: skip
others = Sum((1 - KroneckerDelta(nu, mu)) * x[mu, i] * x[nu, i] * lam[nu], (nu, 1, P), (i, 1, N))
claim("16", "gardner, naive: substitution.split", h[mu], Sum(x[mu, i] ** 2, (i, 1, N)) * lam[mu] + others - 1)
zeta = IndexedBase("zeta")  # the paper's eta^mu: the engine keeps eta for cavity fields
claim("17", "gardner, naive: substitution.statistics", avg(zeta[mu]), 0)
claim("18", "gardner, naive: substitution.statistics", avg(zeta[mu] ** 2), alpha * mean(lam[mu] ** 2), 2)
claim("19", "gardner, naive: substitution.law", h[mu], lam[mu] + zeta[mu] - 1)

claim("26", "gardner: sources", h[mu], h_mu - 1 + up[mu])
claim("27", "gardner: sources", w[i], Sum(x[mu, i] * lam[mu], (mu, 1, P)) + down[i], 1)
claim("28", "gardner: feature.respond", delta(lam[mu]), Sum(d(lam[mu], up[nu]) * x[nu, 0] * w[0], (nu, 1, P)))
claim("29", "gardner: feature.substitute", w[0], Sum(x[mu, 0] * (lam[mu] + delta(lam[mu])), (mu, 1, P)) + down[0])
back = Sum(x[mu, 0] * x[nu, 0] * d(lam[mu], up[nu]), (mu, 1, P), (nu, 1, P))
claim("30", "gardner: feature.substitute", w[0], Sum(x[mu, 0] * lam[mu], (mu, 1, P)) + back * w[0] + down[0], 1)
claim("31", "gardner: feature.cavity_equation", w[0], eta_0 + F_00 * w[0] + down[0])
claim("32", "gardner: feature.cavity_field", eta_0, Sum(x[mu, 0] * lam[mu], (mu, 1, P)))
claim("33", "gardner: feature.self_coupling", F_00, back)
claim("34", "gardner: feature.field_statistics", avg(eta_0), 0)
claim("35", "gardner: feature.field_statistics", avg(eta_0**2), alpha * mean(lam[mu] ** 2), 1)
claim("36", "gardner: feature.self_coupling_mean", avg(F_00), alpha * S_lam)
claim("37", "gardner: feature.effective_law", w[0], eta_0 + alpha * S_lam * w[0] + down[0])
claim("38", "gardner: feature.response", avg(resp(w[0])), 1 / (1 - alpha * S_lam))
claim("41", "gardner: datum.respond", delta(w[i]), Sum(d(w[i], down[j]) * x[0, j] * lam[0], (j, 1, N)))
claim("42", "gardner: datum.substitute", h[0], Sum(x[0, i] * (w[i] + delta(w[i])), (i, 1, N)) - 1 + up[0])
echo = Sum(x[0, i] * x[0, j] * d(w[i], down[j]), (i, 1, N), (j, 1, N))
claim("43", "gardner: datum.substitute", h[0], Sum(x[0, i] * w[i], (i, 1, N)) + echo * lam[0] - 1 + up[0], 1)
claim("44", "gardner: datum.cavity_equation", h[0], eta0 + F00 * lam[0] - 1 + up[0])
claim("45", "gardner: datum.cavity_field", eta0, Sum(x[0, i] * w[i], (i, 1, N)))
claim("46", "gardner: datum.self_coupling", F00, echo)
claim("47", "gardner: datum.field_statistics", avg(eta0), 0)
claim("49", "gardner: datum.self_coupling_mean", avg(F00), S_w)
claim("50", "gardner: datum.effective_law", h[0], eta0 + S_w * lam[0] - 1 + up[0])
claim("51", "gardner: datum.solution", lam[0], Max(0, 1 - eta0 - up[0]) / S_w, 1)

# -- the problem, with labels: the paper sets them to one without loss of generality ------------------

y = IndexedBase("y")
half = Rational(1, 2)
label = sc.Quenched("y", sc.mu, law={1: half, -1: half})
constraint = Sum(gardner.x[sc.mu, sc.i] * gardner.w[sc.i], (sc.i, 1, sc.N))


@cache
def labelled():
    """The record with labels, and its theory."""
    found = sc.ConvexProblem(gardner.problem.minimize, [label[sc.mu] * constraint >= 1], gardner.problem.fixed).cavity()
    return found, {step.key: step.claims for step in found.derivation.steps}


@cache
def instances():
    """Solved instances, and the points of each."""
    drawn = []

    def draw(rng, shape):
        drawn.append(rng.standard_normal(shape))
        return drawn[-1]

    found = gardner.problem.simulate({sc.alpha: "1/2"}, N=60, seeds=6, couplings=draw)
    points = [some.reshape(found.P, found.N) / np.sqrt(found.N) for some in drawn if some.size == found.P * found.N]
    return found, list(zip(found.samples, points, strict=True))


@equation("1", DECLARED, "gardner: problem.subject_to", remark="with labels y as a declaration of its own")
def _1():
    (declared,) = gardner.problem.subject_to
    assert same((declared.gts, declared.lts), (h_mu, 1))
    (written,) = labelled()[0].system.record.problem.subject_to
    assert same((written.gts, written.lts), (y[mu] * h_mu, 1))


@equation("2", DERIVED, "gardner: complementarity", remark="labels: the load is the same with and without them")
def _2():
    assert same(claims("gardner: complementarity")[0], (h[mu], h_mu - 1))
    with_labels, record = labelled()
    assert same(record["complementarity"][0], (h[mu], y[mu] * h_mu - 1))
    assert with_labels.closed_form(sc.alpha) == theory("gardner").closed_form(sc.alpha)


@equation("3", VERIFIED, "gardner: problem.simulate", SIMULATED, "distance of the nearest point from the hyperplane")
def _3():
    for sample, points in instances()[1]:
        found = sample["w"]
        distance = np.abs(points @ found) / np.linalg.norm(found)
        assert abs(distance.min() - 1 / np.sqrt(np.square(found).sum())) < 1e-9


@equation("4", DECLARED, "gardner: problem")
def _4():
    assert same((gardner.problem.minimize, 0), (Sum(w[i] ** 2, (i, 1, N)) / 2, 0))
    _1()


@equation("6", DERIVED, "gardner: stationarity.w", remark="with labels too")
def _6():
    assert same(claims("gardner: stationarity.w")[0], (w[i], Sum(lam[mu] * x[mu, i], (mu, 1, P))))
    assert same(labelled()[1]["stationarity.w"][0], (w[i], Sum(lam[mu] * y[mu] * x[mu, i], (mu, 1, P))))


def pair():
    """The one pair of the record, and what instances make of it."""
    (found,) = steps("gardner")["complementarity"].data["pairs"]
    assert same(found.pair, (lam[mu], h[mu]))
    return [(sample["lambda"], sample["h"]) for sample, _ in instances()[1]]


@equation("7", DERIVED, "gardner: complementarity", SIMULATED,
          "the pair 0 <= lambda, h >= 0, lambda h = 0; its signs on instances")  # fmt: skip
def _7():
    assert all((fields > -1e-9).all() for _, fields in pair())


@equation("8", DERIVED, "gardner: complementarity", SIMULATED, "as 7; its signs on instances")
def _8():
    assert all((messages >= 0).all() and (messages > 0).any() for messages, _ in pair())


@equation("9", DERIVED, "gardner: complementarity", SIMULATED, "as 7; its signs on instances")
def _9():
    assert all(np.abs(messages * fields).max() < 1e-9 for messages, fields in pair())


@equation("10", DECLARED, "alpha, the ratio of the data", remark="a word of the package")
def _10():
    assert sc.mu.kind.ratio == sc.alpha
    assert float(half) == instances()[0].P / instances()[0].N


# -- the naive analysis ---------------------------------------------------------------------------------


def double_sum(moment, pairs):
    """A double sum over data with the average of two couplings in it; messages are averaged apart from them."""
    return Explicit()(Sum(moment * pairs, (mu, 1, P), (nu, 1, P)), {"i": 1})


@equation("13", DERIVED, "gardner, naive: feature.field_statistics")
def _13():
    two = claims("gardner: disorder")[1].rhs.xreplace({Symbol("j", integer=True): sc.i})
    two = Explicit()(two, {"mu": 1, "nu": 1, "i": 1, "j": 1}), Explicit()(two, {"mu": 1, "nu": 2, "i": 1, "j": 1})
    assert two == (Rational(1, SIZES["N"]), 0)
    square = Explicit()(mean(lam[mu] ** 2), {})
    summed = double_sum(KroneckerDelta(mu, nu) / N, Symbol("m")).xreplace({Symbol("m"): square})
    found = claims("gardner, naive: feature.field_statistics")[1]
    rule = {alpha: Rational(SIZES["P"], SIZES["N"])}
    assert same(found, (avg(eta_0**2), alpha * mean(lam[mu] ** 2)), meanings("gardner, naive: "))
    assert (Explicit(meanings("gardner, naive: "))(found.rhs, {}).xreplace(rule) - summed).expand() == 0
    assert same(claims("gardner, naive: feature.effective_law")[0], (w[0], eta_0 + down[0]))


claim("14", "gardner, naive: load.1", 1 / alpha, kappa**2 * mean(lam[mu] ** 2))


@equation("20", DERIVED, "gardner, naive: datum.solution", remark="with S_w = 1 of closure.S_w")
def _20():
    (one,) = claims("gardner, naive: closure.S_w")
    found = claims("gardner, naive: datum.solution")[1].xreplace({one.lhs: one.rhs})
    assert same(found, (lam[0], Max(0, 1 - eta0 - up[0])))


@equation("21", DERIVED, "gardner, naive: load.1", DIGITS, "and eliminate.alpha of both analyses")
def _21():
    assert same(claims("gardner, naive: load.1")[1], (1 / alpha, kappa**2 * avg(Max(0, 1 - eta0) ** 2)))
    for method in ("cavity", "naive"):
        (found,) = steps("gardner", method)["eliminate.alpha"].claims
        for value in (Rational(-3, 2), Rational(1, 3), Rational(7, 4)):
            with mpmath.workdps(60):
                wanted = gaussian(lambda z, value=value: (value_of(value) - z) ** 2, value)
                inverse = 1 / found.rhs.xreplace({gardner.kappa: value}).evalf(60)
                assert abs(mpmath.mpf(str(inverse)) / wanted - 1) < mpmath.mpf(10) ** -50


def value_of(value):
    return mpmath.mpf(value.p) / value.q


def gaussian(f, upper):
    """The integral over a standard Gaussian up to a bound."""
    top = value_of(upper)
    density = lambda z: f(z) * mpmath.exp(-z * z / 2) / mpmath.sqrt(2 * mpmath.pi)  # noqa: E731
    return mpmath.quad(density, [top - 24 + k for k in range(25)])


@equation("22", DERIVED, "gardner: work_identity")
def _22():
    whole, stationarity = claims("gardner: work_identity")[0], claims("gardner: stationarity.w")[0]
    found = whole.lhs
    by_features = Sum(w[i] * Sum(lam[mu] * x[mu, i], (mu, 1, P)), (i, 1, N))
    assert same(whole, (by_features, Sum(lam[mu] * Sum(x[mu, i] * w[i], (i, 1, N)), (mu, 1, P))))
    assert same((found.xreplace({stationarity.rhs: stationarity.lhs}), 0), (Sum(w[i] ** 2, (i, 1, N)), 0))


claim("23", "gardner: work_identity", mean(w[i] ** 2), alpha * mean((h[mu] + 1) * lam[mu]), 1)
claim("24", "gardner: work_identity", mean(w[i] ** 2), alpha * mean(lam[mu]), 2)
claim("25", "gardner, naive: load.identity", 1 / alpha, kappa**2 * mean(lam[mu]))

# -- the cavity analysis --------------------------------------------------------------------------------


@equation("39", DERIVED, "gardner: feature.solution", remark="divided by closure.S_w")
def _39():
    response = claims("gardner: closure.S_w")[0].rhs
    found = claims("gardner: feature.solution")[0]
    assert same((found.lhs, found.rhs / response), (w[0], eta_0 + down[0]), meanings("gardner: "))


claim("40", "gardner: load.1", 1 / alpha, kappa**2 * S_w**2 * mean(lam[mu] ** 2))


@equation("48", DERIVED, "gardner: datum.field_statistics", remark="and fixed.1")
def _48():
    assert same(claims("gardner: datum.field_statistics")[1], (avg(eta0**2), mean(w[i] ** 2)), meanings("gardner: "))
    assert same(claims("gardner: fixed.1")[0], (mean(w[i] ** 2), 1 / kappa**2), meanings("gardner: "))


claim("52", "gardner: load.1", 1 / alpha, kappa**2 * S_w**2 * avg(Max(0, 1 - eta0) ** 2 / S_w**2), 1)
claim("53", "gardner: symmetry", w[i], Symbol("A") * (Sum(x[mu, i] * lam[mu], (mu, 1, P)) + down[i]))
phi = sc.phi
claim("54", "gardner: eliminate.S_lambda", S_lam, -phi(0, kappa) / S_w)


@equation("55", DECLARED, "gardner: truncated_moments")
def _55():
    (found,) = claims("gardner: truncated_moments")
    n, z = found.lhs.args[0], found.rhs.args[1]
    body, upper = found.rhs.args[0], found.rhs.args[2]
    assert (body, upper, found.lhs) == ((upper - z) ** n, upper, phi(n, upper))
    for order in range(3):
        with mpmath.workdps(60):
            wanted = gaussian(lambda z, order=order: (mpmath.mpf(4) / 3 - z) ** order, Rational(4, 3))
            value = phi(order, Rational(4, 3)).evalf(60)
            assert abs(mpmath.mpf(str(value)) / wanted - 1) < mpmath.mpf(10) ** -50


@equation("56", DERIVED, "gardner: eliminate.S_lambda", remark="with eliminate.S_w put in")
def _56():
    S_found = claims("gardner: eliminate.S_w")[0]
    found = claims("gardner: eliminate.S_lambda")[0].xreplace({S_found.lhs: S_found.rhs})
    assert same(found, (S_lam, -phi(0, kappa) / (1 - alpha * phi(0, kappa))), meanings("gardner: "))


claim("57", "gardner: eliminate.S_w", S_w, 1 - alpha * phi(0, kappa))
claim("58", "gardner: interpretation.S_lambda", S_w, 1 - alpha * mean(Piecewise((1, lam[mu] > 0), (0, True))), 1,
      remark="supporting points over N: alpha times their fraction")  # fmt: skip


@equation("59", DERIVED, "gardner: load.1, load.identity", remark="40 with the response, and 25")
def _59():
    first, second = claims("gardner: load.1")[0], claims("gardner: load.identity")[0]
    assert same(first, (1 / alpha, kappa**2 * S_w**2 * mean(lam[mu] ** 2)), meanings("gardner: "))
    assert same(second, (1 / alpha, kappa**2 * mean(lam[mu])))


@equation("60", DERIVED, "gardner: closed_form(alpha), closed_form(average(lambda))")
def _60():
    found = theory("gardner")
    k = gardner.kappa
    first = sc.average(steps("gardner")["complementarity"].data["pairs"][0].pair[0])
    load, message = found.closed_form(sc.alpha), found.closed_form(first)
    assert same(
        (1 / load, k**2 * message), (phi(2, kappa), kappa * phi(1, kappa) / (1 - phi(0, kappa) / phi(2, kappa)))
    )
    assert abs((1 / load - k**2 * message).xreplace({k: Rational(4, 3)}).evalf(50)) < 1e-50


claim("61", "gardner: consistency", phi(2, kappa), phi(0, kappa) + kappa * phi(1, kappa))


def upto(body):
    return TruncatedIntegral(sympify(body), z, kappa)


z = Symbol("z")
Explicit.read_TruncatedIntegral = lambda self, e, env: Function("upto")(
    *(self(arg, env).xreplace({Symbol(str(e.args[1])): z}) for arg in e.args)
)


@equation("62", DERIVED, "gardner: proof.1, proof.2")
def _62():
    assert same(claims("gardner: proof.1")[0], (phi(2, kappa), upto((kappa - z) ** 2)))
    split = kappa * upto(kappa - z) - upto(z * (kappa - z))
    assert same(claims("gardner: proof.2")[0], (upto((kappa - z) ** 2), split))


claim("63", "gardner: proof.3", -upto(z * (kappa - z)), upto(1))
claim("64", "gardner: proof.4", phi(2, kappa), phi(0, kappa) + kappa * phi(1, kappa))
