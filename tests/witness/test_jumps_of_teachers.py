"""Right theories of states that jump, or of couplings with a mean, are held for right; what is false in them is not."""

from dataclasses import replace

import pytest
from sympy import Abs, Heaviside, Max, Rational, S, Sum, Symbol, sign, sqrt

from symcavity import ConvexProblem, Coupling, Feature, N, P, Problem, Quenched, i, mu
from symcavity.algebra.products import Pairing, ProductAverage
from symcavity.sites.branching import part_averages
from symcavity.witness import on_grids
from symcavity.witness.judge import judge

half, gamma, beta = Rational(1, 2), Symbol("gamma", positive=True), Symbol("beta", positive=True)
x, w, s, t = Coupling("x"), Feature("w"), Feature("s", values=(-1, 1)), Quenched("t", i, law={1: half, -1: half})
j = Symbol("j", integer=True)


def judged(step):
    return [bool(verdict) for verdict in judge(step, 15) if verdict.ok is not None]


def test_a_pattern_in_the_mean_of_couplings_at_zero_temperature():
    J = Coupling("J", between=(i, i), reciprocity=1, mean=t[i] * t[j] / N)
    theory = Problem(-Sum(s[i] * Sum(J[i, j] * s[j], (j, 1, N)), (i, 1, N)) / 2).cavity()
    steps = [theory.derivation[key] for key in ("feature.response", "closure.S_s", "closure.q_s")]
    assert all(judged(step) and all(judged(step)) for step in steps)
    claim = steps[1].claims[0]
    assert not all(judged(replace(steps[1], claims=(claim.func(claim.lhs, claim.rhs * Rational(9, 10)),))))


def test_a_mean_in_the_couplings_of_patterns():
    m = Symbol("m", positive=True)
    z = Coupling("z", mean=m / N)
    theory = Problem(-Sum(Sum(z[mu, i] * s[i], (i, 1, N)) ** 2, (mu, 1, P)) / 2).gibbs(beta).cavity()
    step = theory.derivation["datum.weight"]
    assert judged(step) == [True]
    (claim,) = step.claims
    assert judged(replace(step, claims=(claim.func(claim.lhs, claim.rhs.xreplace({m: 2 * m})),))) == [False]


@pytest.fixture(scope="module")
def counted():
    heard, taught = (Sum(x[mu, i] * q[i], (i, 1, N)) for q in (w, t))
    y = Quenched("y", mu, law={1: Heaviside(taught), -1: Heaviside(-taught)}, given=taught)
    penalty = gamma * Sum(w[i] ** 2, (i, 1, N)) / 2
    return Problem(Sum(Heaviside(-y[mu] * heard), (mu, 1, P)) + penalty).cavity()


def test_errors_that_are_counted_on_labels_of_a_teacher(counted, monkeypatch):
    """The second field is cut where the state jumps: on an even grid the same claims seem to be wrong."""
    steps = [s for s in counted.derivation if s.rule == "closure" and "lambda" in s.key]
    assert len(steps) >= 3
    assert all(judged(step) and all(judged(step)) for step in steps)
    counted.memory.pop("direct averages", None)
    monkeypatch.setattr(on_grids, "PLANE", 0)
    assert not all(all(judged(step)) for step in steps)


def test_claims_on_one_of_two_copies_of_margins():
    """Two fits to one teacher: what is said of one is averaged over its own fields and the teacher's."""
    heard, taught = (Sum(x[mu, i] * q[i], (i, 1, N)) for q in (w, t))
    penalty = gamma * Sum(w[i] ** 2, (i, 1, N)) / 2
    one = ConvexProblem(Sum(Max(0, 1 - sign(taught) * heard), (mu, 1, P)) + penalty)
    step = one.copies(2, share={gamma: 0}).cavity().derivation["closure.S_g_to_h"]
    (claim,) = step.claims
    assert judged(step) == [True]
    assert judged(replace(step, claims=(claim.func(claim.lhs, claim.rhs * Rational(49, 50)),))) == [False]


def test_responses_to_two_teachers_whom_shares_of_the_data_hear(monkeypatch):
    """The last of three fields is cut where branches meet: on an even grid a right claim seems to be wrong."""
    share = Quenched("c", mu, law={1: Rational(7, 10), 0: Rational(3, 10)})
    h, u, v = (Sum(x[mu, i] * q[i], (i, 1, N)) for q in (w, Quenched("a", i), Quenched("b", i)))
    theory = ConvexProblem(Sum(Abs(share[mu] * u + (1 - share[mu]) * v - h), (mu, 1, P))).cavity()
    (step, *_) = [one for one in theory.derivation if one.rule == "closure" and one.key.endswith("_to_h")]
    assert judged(step) == [True]
    claim = step.claims[0]
    wrong = replace(step, claims=(claim.func(claim.lhs, claim.rhs * Rational(999, 1000)),))
    assert not all(judged(wrong))
    theory.memory.pop("direct averages", None)
    monkeypatch.setattr(on_grids, "SPACE", 0)
    assert not all(judged(step))


@pytest.fixture(scope="module")
def sharing():
    """Two fits to one teacher, on data of which they share a part that is a symbol."""
    heard, taught = (Sum(x[mu, i] * q[i], (i, 1, N)) for q in (w, t))
    penalty = gamma * Sum(w[i] ** 2, (i, 1, N)) / 2
    u = Symbol("u", nonnegative=True)
    copies = ConvexProblem(Sum(Max(0, 1 - sign(taught) * heard), (mu, 1, P)) + penalty).copies(2, share={x: u})
    return copies.cavity()


def crossed(step, cross):
    """A step that claims another covariance of the two halves of its product."""
    rules = [{p: Pairing(p.one, p.other, cross(p.cross)) for p in c.rhs.atoms(Pairing)} for c in step.claims]
    claims = [c.func(c.lhs, c.rhs.xreplace(rule)) for c, rule in zip(step.claims, rules, strict=True)]
    return replace(step, claims=tuple(claims))


def test_a_product_over_two_copies_that_share_data_is_judged_by_the_density_of_all_four_fields(sharing):
    """No correlation, one that is left out, and a share for its root are seen."""
    (u,) = (s for s in sharing.system.parameters if s.name == "u")
    step = sharing.derivation["closure.q_g_lambda_3"]
    assert len(step.claims[0].rhs.atoms(ProductAverage)) == 1
    assert judged(step) == [True]
    assert judged(crossed(step, lambda cells: [S.Zero] * len(cells))) == [False]
    assert judged(crossed(step, lambda cells: [e.xreplace({u: sqrt(u)}) for e in cells])) == [False]
    for k in (1, 3):
        left = crossed(step, lambda cells, k=k: [S.Zero if n == k else e for n, e in enumerate(cells)])
        assert judged(left) == [False]


def test_responses_of_two_copies_that_share_data_are_judged(sharing):
    """What one answers where the other one does: an average over an event of four fields."""
    step = sharing.derivation["stability.average"]
    (number,) = (k for k, c in enumerate(step.claims) if c.rhs.has(ProductAverage))
    alone = replace(step, claims=(step.claims[number],))
    assert judged(alone) == [True]
    assert judged(crossed(alone, lambda cells: [S.Zero] * len(cells))) == [False]
    claim = alone.claims[0]
    assert judged(replace(alone, claims=(claim.func(claim.lhs, claim.rhs * Rational(9999, 10000)),))) == [False]


def test_a_derivation_that_drops_what_copies_share_is_seen(monkeypatch):
    """The rule is broken, not its claim: the two parts of a law are averaged as if they heard independent fields."""
    monkeypatch.setattr(part_averages, "Pairing", lambda one, other, cross: Pairing(one, other, [0 * e for e in cross]))
    heard, taught = (Sum(x[mu, i] * q[i], (i, 1, N)) for q in (w, t))
    penalty = 2 * gamma * Sum(w[i] ** 2, (i, 1, N))
    u = Symbol("u", nonnegative=True)
    copies = ConvexProblem(Sum(Max(0, 1 - sign(taught) * heard), (mu, 1, P)) + penalty).copies(2, share={x: u})
    assert judged(copies.cavity().derivation["closure.q_g_lambda_3"]) == [False]
