"""Sites whose law fixes several states together: softmax, tasks that share data, norms of several weights."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, fsolve
from sympy import Abs, And, Eq, KroneckerDelta, Max, Piecewise, Rational, Sum, Symbol, exp, log, sign, sqrt
from sympy.stats import Normal

from symcavity import (
    ConvexProblem,
    Coupling,
    Datum,
    DeclarationError,
    Feature,
    Field,
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
    norm,
    response,
)
from symcavity.evaluate.averages.compiler import Compiled
from symcavity.evaluate.averages.integrals import LAWS
from symcavity.evaluate.averages.quenched import read_quenched
from symcavity.method import norms
from symcavity.model.equations import Equation
from symcavity.witness.judge import judge

x, z = Coupling("x"), Coupling("z")
w1, w2, w3 = Feature("w1"), Feature("w2"), Feature("w3")
gamma = Symbol("gamma", positive=True)
third = Rational(1, 3)
y = Quenched("y", mu, law={1: third, 2: third, 3: third})


def field(coupling, w):
    """The field of a datum."""
    return Sum(coupling[mu, i] * w[i], (i, 1, N))


def softmax():
    """Three classes, labels drawn at random."""
    h = [field(x, w) for w in (w1, w2, w3)]
    loss = log(sum(exp(u) for u in h)) - sum(KroneckerDelta(y[mu], k + 1) * u for k, u in enumerate(h))
    return ConvexProblem(Sum(loss, (mu, 1, P)) + gamma * Sum(w1[i] ** 2 + w2[i] ** 2 + w3[i] ** 2, (i, 1, N)) / 2)


def tasks():
    """Two tasks that are told apart by their data, and share a penalty."""
    y, v = (Quenched(name, mu, law={1: Rational(1, 2), -1: Rational(1, 2)}) for name in "yv")
    h, g = field(x, w1), field(z, w2)
    both = log(1 + exp(-y[mu] * h) + exp(-v[mu] * g))
    return ConvexProblem(Sum(both, (mu, 1, P)) + gamma * Sum(w1[i] ** 2 + w2[i] ** 2 + w1[i] * w2[i], (i, 1, N)) / 2)


def group_lasso():
    """Pairs of weights that vanish together."""
    b = Quenched("b", mu)
    residual = b[mu] - field(x, w1) - field(z, w2)
    return ConvexProblem(Sum(residual**2, (mu, 1, P)) / 2 + gamma * Sum(norm(w1[i], w2[i]), (i, 1, N)))


@pytest.fixture(scope="module")
def solved_softmax():
    """The softmax with its theory's solution."""
    problem = softmax()
    return problem, problem.cavity().solve({alpha: 2, gamma: 1})


def test_softmax_is_a_fixed_point_of_random_fields(solved_softmax):
    """The order parameters come back from 200000 random fields, with the proximal map by iteration."""
    _, s = solved_softmax
    q = np.array([[float(s[average(a[i] * b[i])]) for b in (w1, w2, w3)] for a in (w1, w2, w3)])
    V = np.array([[float(s[response(a, b)]) for b in (w1, w2, w3)] for a in (w1, w2, w3)])
    rng = np.random.default_rng(1)
    size, frame = np.linalg.eigh(q)
    eta = rng.normal(size=(200_000, 3)) * np.sqrt(np.maximum(size, 0)) @ frame.T
    label = np.eye(3)[rng.integers(3, size=len(eta))]

    def message(h):
        p = np.exp(h - h.max(axis=1, keepdims=True))
        return label - p / p.sum(axis=1, keepdims=True)

    h = eta.copy()
    for _ in range(200):  # a contraction: the softmax has slopes below one half
        before, h = h, (h + eta + message(h) @ V) / 2
        if np.abs(h - before).max() < 1e-12:
            break
    lam = message(h)
    moments = lam.T @ lam / len(eta)
    assert np.abs(h - eta - lam @ V).max() < 1e-10
    # the weights: w = alpha*eta'/(gamma - F) with F = alpha*S, and <w w> = alpha*V <lambda lambda> V
    assert np.allclose(2 * V @ moments @ V, q, atol=4 * 2 * V.max() ** 2 / np.sqrt(len(eta)))
    p = label - lam
    hessian = np.einsum("na,ab->nab", p, np.eye(3)) - np.einsum("na,nb->nab", p, p)
    S = -np.mean(np.linalg.solve(np.eye(3) + hessian @ V, hessian), axis=0)
    assert np.allclose(np.linalg.inv(np.eye(3) - 2 * S), V, atol=5e-3)
    # classes are alike, and the sum of the messages of a datum vanishes
    assert q[0, 0] == pytest.approx(q[2, 2], rel=1e-9)
    assert q[0, 1] == pytest.approx(-q[0, 0] / 2, rel=1e-9)


def test_shares_over_three_fields_are_sampled_with_their_error(solved_softmax):
    """Symmetry gives two shares exactly; wrong answers are counted again at random fields, and in instances."""
    problem, s = solved_softmax
    h = [field(x, w) for w in (w1, w2, w3)]
    first = average(And(h[0] > h[1], h[0] > h[2]))
    for key, exact in ((average(h[0] > h[1]), 1 / 2), (first, 1 / 3)):
        assert 0 < s.stderr(key) < 1e-3
        assert abs(float(s[key]) - exact) < 4.5 * s.stderr(key)
    assert s.stderr(average(w1[i] ** 2)) == 0
    right = average(
        sum(
            KroneckerDelta(y[mu], k + 1) * Piecewise((1, And(*(h[k] > u for u in h if u != h[k]))), (0, True))
            for k in range(3)
        )
    )
    found = problem.simulate({alpha: 2, gamma: 1}, N=60, seeds=10)[right]
    assert abs(found.mean - float(s[right])) < 4 * np.hypot(found.stderr, s.stderr(right))
    # three fields that add up to zero have two dimensions, and all turned into each other by symmetry
    plane = np.array([[1, 1], [-1, 1], [0, -2]]) / np.sqrt([2, 6])
    q, width = float(s[average(w1[i] ** 2)]), float(s[response(w1, w1)] - s[response(w1, w2)])
    eta = np.sqrt(1.5 * q) * np.random.default_rng(2).normal(size=(200_000, 2)) @ plane.T
    u = eta
    for _ in range(100):
        p = np.exp(u) / np.exp(u).sum(axis=1, keepdims=True)
        u = (u + eta + width * (np.array([1, 0, 0]) - p)) / 2
    share = np.mean(u.argmax(axis=1) == 0)
    assert abs(float(s[right]) - share) < 4 * np.hypot(s.stderr(right), np.sqrt(share * (1 - share) / len(u)))


@pytest.mark.parametrize("summed", [False, True])
def test_classes_as_components(solved_softmax, summed):
    """Weights w[i, k] of the class k are the weights of three families."""
    _, expected = solved_softmax
    k, w = Symbol("k", integer=True), Feature("w", components=(Symbol("k", integer=True), 1, 3))
    if summed:
        h = field(x, {i: w[i, k]})
        loss = log(Sum(exp(h), (k, 1, 3))) - Sum(KroneckerDelta(y[mu], k) * h, (k, 1, 3))
        penalty = Sum(w[i, k] ** 2, (k, 1, 3), (i, 1, N))
    else:
        h = [field(x, {i: w[i, c]}) for c in (1, 2, 3)]
        loss = log(sum(map(exp, h))) - sum(KroneckerDelta(y[mu], c + 1) * u for c, u in enumerate(h))
        penalty = Sum(sum(w[i, c] ** 2 for c in (1, 2, 3)), (i, 1, N))
    problem = ConvexProblem(Sum(loss, (mu, 1, P)) + gamma * penalty / 2)
    values = {alpha: 2, gamma: 1}
    s = problem.cavity().solve(values)
    pairs = {average(w[i, 1] ** 2): average(w1[i] ** 2), average(w[i, 1] * w[i, 3]): average(w1[i] * w3[i])}
    for key, same in pairs.items():
        assert float(s[key]) == pytest.approx(float(expected[same]), rel=1e-9)
    if summed:
        sim = problem.simulate(values, N=60, seeds=8)
        assert all(abs(sim[key].mean - float(s[key])) < 4 * sim[key].stderr for key in pairs)


@pytest.mark.parametrize("summed", [False, True])
def test_groups_as_components(summed):
    """The group lasso of weights v[i, k]."""
    k, b = Symbol("k", integer=True), Quenched("b", mu)
    v = Feature("v", components=(k, 1, 2))
    if summed:
        a = Coupling("a", components=(k, 1, 2))
        h, length = Sum(a[mu, i, k] * v[i, k], (k, 1, 2), (i, 1, N)), sqrt(Sum(v[i, k] ** 2, (k, 1, 2)))
    else:
        h, length = Sum(x[mu, i] * v[i, 1] + z[mu, i] * v[i, 2], (i, 1, N)), norm(v[i, 1], v[i, 2])
    problem = ConvexProblem(Sum((b[mu] - h) ** 2, (mu, 1, P)) / 2 + gamma * Sum(length, (i, 1, N)))
    values = {alpha: 2, gamma: 1, b: {1: 1}}
    s = problem.cavity().solve(values)
    q, _, share = radial()
    assert float(s[average(v[i, 2] ** 2)]) == pytest.approx(q, rel=1e-8)
    assert float(s[average(v[i, 1] ** 2 > 0)]) == pytest.approx(share, rel=1e-6)
    found = problem.simulate(values, N=60, seeds=10)[average(v[i, 1] ** 2 + v[i, 2] ** 2)]
    assert abs(found.mean - 2 * q) < 4 * found.stderr


def test_components_that_are_not_declared():
    """The message shows how they are."""
    with pytest.raises(DeclarationError, match=r"w1\[i, 1\], with components=\(k, 1, n\)"):
        _ = w1[i, 1]


@pytest.mark.parametrize("dps", [15, 30])
def test_kinks_inside_of_kinks(dps):
    """A maximum of moduli, and the same function as a sum of kinks."""
    size = Abs(w1[i])
    found = []
    for body in (Max(size, 2 * size - 1), size + Max(0, w1[i] - 1) + Max(0, -w1[i] - 1)):
        problem = ConvexProblem(Sum((field(x, w1) - 1) ** 2, (mu, 1, P)) + Sum(body, (i, 1, N)))
        found.append(problem.cavity().solve({alpha: 2}, dps=dps)[average(w1[i] ** 2)])
    assert abs(found[0] - found[1]) < 10.0 ** (2 - dps)


def test_softmax_in_instances(solved_softmax):
    """Instances of the same declaration."""
    problem, s = solved_softmax
    sim = problem.simulate({alpha: 2, gamma: 1}, N=60, seeds=10)
    for a in (w1, w2, w3):
        found = sim[average(a[i] ** 2)]
        assert abs(found.mean - float(s[average(a[i] ** 2)])) < 4 * found.stderr


def radial():
    """The group lasso by integrals over the length of a Gaussian vector: weights are eta*[1 - gamma/|eta|]_+/a."""
    q, V = 0.1, 0.6
    for _ in range(300):
        variance, a = 2 * (1 + 2 * q) / (1 + V) ** 2, 2 / (1 + V)

        def mean(f, variance=variance):
            end = 1 + 12 * np.sqrt(variance)
            return quad(lambda r: f(r) * r * np.exp(-r * r / 2 / variance) / variance, 1, end, epsabs=1e-13)[0]

        q, V = mean(lambda r: (r - 1) ** 2) / 2 / a**2, 2 * mean(lambda r: 2 - 1 / r) / 2 / a
    return q, V / 2, mean(lambda _: 1.0)


def test_group_lasso_by_radial_integrals():
    """Published soft thresholding of the length (Yuan and Lin 2006), integrated in the test."""
    s = group_lasso().cavity().solve({alpha: 2, gamma: 1, Quenched("b", mu): {1: 1}})
    q, V, share = radial()
    assert float(s[average(w1[i] ** 2)]) == pytest.approx(q, rel=1e-8)
    assert float(s["S_w2_to_p_2"]) == pytest.approx(V, rel=1e-8)
    assert float(s[average(w1[i] ** 2 > 0)]) == pytest.approx(share, rel=1e-6)
    assert s.residual < 1e-9


def test_group_lasso_in_instances():
    """Instances: groups that vanish vanish whole."""
    problem = group_lasso()
    values = {alpha: 2, gamma: 1, Quenched("b", mu): {1: 1}}
    sim = problem.simulate(values, N=60, seeds=10)
    q, _, share = radial()
    active = average(w1[i] ** 2 > Rational(1, 10**12))
    for key, expected in ((average(w1[i] ** 2 + w2[i] ** 2), 2 * q), (active, share)):
        found = sim[key]
        assert abs(found.mean - expected) < 4 * found.stderr


@pytest.mark.parametrize("spelling", ["norm", "root", "turned"])
def test_norms_as_users_write_them(spelling):
    """One norm in three spellings has one theory."""
    b, t = Quenched("b", mu), sqrt(2)
    bodies = {
        "norm": norm(w1[i], w2[i]),
        "root": sqrt(w1[i] ** 2 + w2[i] ** 2),
        "turned": norm((w1[i] + w2[i]) / t, (w1[i] - w2[i]) / t),
    }
    residual = b[mu] - field(x, w1) - field(z, w2)
    problem = ConvexProblem(Sum(residual**2, (mu, 1, P)) / 2 + gamma * Sum(bodies[spelling], (i, 1, N)))
    s = problem.cavity().solve({alpha: 2, gamma: 1, b: {1: 1}})
    assert float(s[average(w1[i] ** 2)]) == pytest.approx(0.12036392678, rel=1e-7)


def test_norms_that_states_bound_are_refused():
    """The tip of a cone is no place where a norm has a slope; numbers are bounds that a norm meets elsewhere."""
    length = norm(field(z, w1), field(z, w2))
    for bounded in (field(x, w1) - length >= 1, length <= field(x, w2)):
        with pytest.raises(UnsupportedLaw, match=r"no slope[\s\S]*Ball"):
            ConvexProblem(Sum(w1[i] ** 2 + w2[i] ** 2, (i, 1, N)), [bounded]).cavity()
    with pytest.raises(UnsupportedLaw, match="no slope"):
        ConvexProblem(Sum(w1[i] ** 2 + w2[i] ** 2, (i, 1, N)) + Sum(Max(0, length - field(x, w1)), (mu, 1, P))).cavity()
    ConvexProblem(Sum((field(x, w1) - field(z, w2)) ** 2, (mu, 1, P)), [norm(w1[i], w2[i]) <= 1]).kkt()


def test_tasks_verify_and_print():
    """Every claim of the record holds; a claim that is wrong is found out."""
    derivation = tasks().cavity().derivation
    checked = [c for c in derivation.verify() if c.verdicts]
    assert not [(c.step.key, v) for c in checked for v in c.verdicts if not v.ok]
    assert {"joint", "joint_slopes"} <= {c.step.rule for c in checked}
    kinds = {c.step.rule: v.kind for c in checked for v in c.verdicts}
    assert kinds["joint"] == "the law, solved again in double to 1e-07"  # it has no 50 digits
    assert kinds["joint_slopes"] == "the law, solved again in double to 1e-04"
    for step in derivation:
        if step.rule in ("joint", "joint_slopes"):
            first, *others = step.claims
            wrong = replace(step, claims=(Equation(first.lhs, first.rhs + Rational(1, 9)), *others))
            assert not all(v.ok for v in judge(wrong))
    assert "together" in derivation.to_latex()


def test_a_broken_elimination_is_found_out(monkeypatch):
    """A rule that eliminates with a wrong sign: the law that is left is not the declared one."""
    from symcavity.sites.joint import strategy

    honest = strategy._eliminated

    def broken(*args, **kind):
        left, given = honest(*args, **kind)
        return left, [(q, -e) for q, e in given]

    monkeypatch.setattr(strategy, "_eliminated", broken)
    step = next(s for s in tasks().cavity().derivation if s.rule == "joint")
    assert not all(v.ok for v in judge(step))


def test_tasks_in_instances():
    """Instances of the two tasks."""
    problem = tasks()
    s = problem.cavity().solve({alpha: 2, gamma: 1})
    sim = problem.simulate({alpha: 2, gamma: 1}, N=80, seeds=10)
    for key in (average(w1[i] ** 2), average(w1[i] * w2[i]), average(w2[i] ** 2)):
        assert abs(sim[key].mean - float(s[key])) < 4 * sim[key].stderr


def test_refusals():
    """What is not done says so."""
    with pytest.raises(ValuesError, match="double precision"):
        tasks().cavity().solve({alpha: 2, gamma: 1}, dps=30)
    with pytest.raises(NotConvex):
        ConvexProblem(Sum(field(x, w1) ** 2, (mu, 1, P)) + Sum(w1[i] ** 2 - norm(w1[i], w2[i]), (i, 1, N)))


def test_systems_that_are_not_convex_are_refused():
    """Several solutions could be there."""
    h, g = field(x, w1), field(x, w2)
    lam, kap, u, v = Datum("lambda"), Datum("kappa"), Field("u"), Field("v")
    back = [Eq(w[i], Sum(x[mu, i] * d[mu], (mu, 1, P))) for w, d in ((w1, lam), (w2, kap))]
    laws = [Eq(u[mu], h), Eq(v[mu], g), Eq(lam[mu], -exp(u[mu] + v[mu])), Eq(kap[mu], -exp(v[mu] - u[mu]))]
    with pytest.raises(UnsupportedLaw, match="several states together"):
        System([*back, *laws]).cavity()


def twice(rule):
    """The norm of twice the vector."""
    return lambda *args: None if (vector := rule(*args)) is None else tuple(2 * e for e in vector)


def wider(rule):
    """A norm with p in another ball."""
    return type("Wider", (rule,), {"slack": property(lambda self: 4 - sum(q**2 for q in self.p))})


WRONG_NORMS = {"of twice the vector": ("_vector", twice), "with another ball": ("Norm", wider)}


@pytest.mark.parametrize("name", WRONG_NORMS)
def test_a_norm_that_is_none_is_seen(monkeypatch, name):
    word, change = WRONG_NORMS[name]
    monkeypatch.setattr(norms, word, change(getattr(norms, word)))
    step = next(s for s in group_lasso().cavity().derivation if s.rule == "lagrangian")
    assert not all(verdict.ok for verdict in step.verdicts())


def test_groups_around_a_teacher():
    """The kink of a norm lies beside the origin of the fields: averages of soft thresholds, by a grid."""
    t, b = Quenched("t", i), Quenched("b", i)
    e1, e2 = (Sum(x[mu, i] * (w[i] - s[i]), (i, 1, N)) for w, s in ((w1, t), (w2, b)))
    theory = ConvexProblem(
        Sum(e1**2 + e2**2, (mu, 1, P)) / 2 + gamma * Sum(norm(w1[i], w2[i]), (i, 1, N))
    ).cavity()
    meant = {str(meaning): s for s, meaning in theory.order_parameters.items()}
    right = {e.lhs: e.rhs for e in theory.equations}
    laws = read_quenched([t, b], {t: {1: Rational(1, 2), 0: Rational(1, 2)}, b: {Rational(1, 2): 1}}, 15)
    env = {alpha: 1.5, gamma: 1.0, LAWS: laws}
    for name in (name for meaning, name in meant.items() if "w" not in meaning):  # mixed ones have no sign
        env[name] = -0.8 if name.is_negative else 0.6 if name.is_positive else 0.0
    line = np.linspace(-8, 8, 1601)
    z1, z2 = np.meshgrid(line, line, indexing="ij")
    weights = np.exp(-(z1**2 + z2**2) / 2) / np.exp(-(z1**2 + z2**2) / 2).sum()
    pull, spread, errors = 0.8 * 1.5, np.sqrt(1.5 * 0.6), np.zeros(2)
    for one in (1.0, 0.0):
        f1, f2 = pull * one + spread * z1, pull / 2 + spread * z2
        kept = np.maximum(0, 1 - 1 / np.maximum(np.hypot(f1, f2), 1e-9)) / pull
        errors += [np.sum(weights * (kept * f1 - one) ** 2) / 2, np.sum(weights * (kept * f2 - 0.5) ** 2) / 2]
    errors_of = [meant[f"average(({w}[i] - {s}[i])**2)"] for s, w in (("t", "w1"), ("b", "w2"))]
    found = [float(Compiled(right[name], "numpy")(env)) for name in errors_of]
    assert found == pytest.approx(errors.tolist(), rel=1e-6)


def test_a_smooth_law_in_one_field_and_a_bound_in_another():
    """No layout over one of the fields: the law is solved in numbers."""
    a, K = Sites("a", "K")
    h, across = Variable("h", a), Coupling("F", between=(a, i))
    smooth = Sum(sqrt(1 + w1[i] ** 2), (i, 1, N)) + Sum(h[a] ** 2, (a, 1, K)) / 2
    bound = w1[i] + Sum(across[a, i] * h[a], (a, 1, K)) <= 1
    problem = ConvexProblem(smooth + Sum((field(x, w1) - 1) ** 2, (mu, 1, P)), subject_to=[bound])
    values = {alpha: 1, K / N: "1/2"}
    theory, sim = problem.cavity(), problem.simulate(values, N=60, seeds=6)
    solution = theory.solve(values)
    for key in (average(w1[i] ** 2), average(h[a] ** 2)):
        assert abs(sim[key].mean - float(solution[key])) < 4 * sim[key].stderr
    assert solution.residual < 1e-8


def test_multipliers_that_only_their_combinations_fix():
    """Rhombic uncertainty of each point: as two moduli added, or, turned by 45 degrees, as the larger of two."""
    h, ridge = field(x, w1), Sum(w1[i] ** 2, (i, 1, N)) / 2
    found = []
    for variance, join in ((Rational(1, 4), lambda a, b: a + b), (Rational(1, 2), Max)):
        a, b = (Abs(field(Coupling(name, variance=variance / N), w1)) for name in "pq")
        problem = ConvexProblem(ridge + Sum(Max(0, 1 - h + join(a, b)), (mu, 1, P)))
        found.append(problem.cavity().solve({alpha: Rational(4, 5)}))
        lam = problem.kkt()["lambda"]
        with pytest.raises(UnsupportedLaw, match="undetermined"):
            found[-1][average(lam[mu])]
    one, other = ((s[average(w1[i] ** 2)], s.stderr(average(w1[i] ** 2))) for s in found)
    assert abs(one[0] - other[0]) < 4 * np.hypot(one[1], other[1])


def test_a_softmax_whose_class_a_teacher_decides():
    """The law jumps with the teacher's field: its response there is taken by parts, and no law is differentiated."""
    t = Quenched("t", i)
    u, v = field(x, w1), field(z, w2)
    loss = log(1 + exp(u) + exp(v)) - (1 + sign(field(x, t))) / 2 * u
    problem = ConvexProblem(Sum(loss, (mu, 1, P)) + Sum(w1[i] ** 2 + w2[i] ** 2, (i, 1, N)) / 2)
    theory, values = problem.cavity(), {alpha: 2, t: {1: 1}}
    assert len(theory.datum._site.solution.law.sources) == 2
    overlap = average(w1[i] * t[i])
    wanted = [average(w1[i] ** 2), average(w2[i] ** 2), overlap]
    table = theory.compare(problem.simulate(values, N=100, seeds=8), wanted)
    assert table.worst < 4, str(table)
    assert theory.solve(values)[overlap] > 0.3


def radial_fixed_point(size, sizes, second):
    """``<w^2>`` and the response of a component where a pair is its field, shortened: one integral over lengths.

    ``size(r, slope)`` gives the length, ``second`` its slope; ``sizes(q, S)`` the standard deviation of a field, what
    multiplies the pair, and a length of the field at which it bends.
    """

    def gap(v):
        q, S = np.exp(v)
        sigma, slope, bend = sizes(q, S)

        def over(f):
            ends = [0, *([bend / sigma] if bend else []), 12]
            return sum(
                quad(lambda r: f(r * sigma) * r * np.exp(-r * r / 2), a, b, epsabs=1e-13, epsrel=1e-12, limit=200)[0]
                for a, b in pairwise(ends)
            )

        own = over(lambda r: size(r, slope) ** 2) / 2
        return own - q, over(lambda r: (second(r, slope) + size(r, slope) / r) / 2 if r else second(r, slope)) - S

    return np.exp(fsolve(gap, [-1.0, -1.0], xtol=1e-12))


def test_soft_vectors_are_averaged_along_rays():
    """Pairs with the penalty ``|w|^4``, whose law no polynomial resembles: their length by itself, in one dimension."""
    errors = (field(x, w1) - 1) ** 2 + (field(z, w2) - 1) ** 2
    problem = ConvexProblem(Sum(errors, (mu, 1, P)) / 2 + gamma * Sum((w1[i] ** 2 + w2[i] ** 2) ** 2, (i, 1, N)))
    s = problem.cavity().solve({alpha: 2, gamma: 1})

    def size(r, slope):
        return brentq(lambda w: slope * w + 4 * w**3 - r, 0, r / slope, xtol=1e-15)

    expected = radial_fixed_point(
        size,
        lambda q, S: (np.sqrt(2 * (1 + q)) / (1 + S), 2 / (1 + S), 0),
        lambda r, slope: 1 / (slope + 12 * size(r, slope) ** 2),
    )
    assert float(s[average(w1[i] ** 2)]) == pytest.approx(expected[0], rel=1e-9)
    assert float(s[response(w1, w1)]) == pytest.approx(expected[1], rel=1e-7)


def test_fields_that_are_heard_as_sums():
    """Complex channels, and signals in a disc: each weight is sent by two couplings, and hears the sum of both.

    Four fields of the sites of a law with a pair are two, so that nothing is sampled; responses from one part to the
    other vanish, and nothing is divided by them.
    """
    s1, s2 = (Quenched(name, mu, law={1: Rational(1, 2), -1: Rational(1, 2)}) for name in ("s1", "s2"))
    one, two = field(x, w1) - field(z, w2) - s1[mu], field(z, w1) + field(x, w2) - s2[mu]
    power = Sum(w1[i] ** 2 + w2[i] ** 2, (i, 1, N))
    problem = ConvexProblem(Sum(one**2 + two**2, (mu, 1, P)) + gamma * power, [w1[i] ** 2 + w2[i] ** 2 <= 1])
    s = problem.cavity().solve({alpha: Rational(1, 2), gamma: 1})

    def sizes(q, S):
        slope = 2 + 2 / (1 + 4 * S)
        return np.sqrt(4 * (2 * q + 1)) / (1 + 4 * S), slope, slope

    expected = radial_fixed_point(
        lambda r, slope: min(r / slope, 1), sizes, lambda r, slope: 1 / slope if r < slope else 0.0
    )
    for w in (w1, w2):
        assert float(s[average(w[i] ** 2)]) == pytest.approx(expected[0], rel=1e-8)
    assert float(s[average(w1[i] * w2[i])]) == pytest.approx(0, abs=1e-9)
    assert s.stderr(average(w1[i] ** 2)) == 0


def test_switches_that_are_close_to_each_other():
    """Pairs of the group lasso longer than a hundredth: this switches right behind what makes them alive."""
    s = group_lasso().cavity().solve({alpha: 2, gamma: 1, Quenched("b", mu): {1: 1}})
    q, S, _ = radial()
    sigma, slope = np.sqrt(2 * (1 + 2 * q)) / (1 + 2 * S), 2 / (1 + 2 * S)
    found = s[average(w1[i] ** 2 + w2[i] ** 2 > Rational(1, 10000))]
    assert float(found) == pytest.approx(np.exp(-((1 + slope / 100) ** 2) / (2 * sigma**2)), rel=1e-7)


def test_noise_that_shifts_two_fields():
    """Two quantiles that may not cross, of Gaussian labels: one average over wider fields, of what hears no label, too.

    The numbers are those of a Gauss-Hermite rule of eighty labels, each with an average of its own.
    """
    label, low, high = Quenched("e", mu), Rational(1, 4), Rational(3, 4)
    h, k = (Sum(x[mu, i] * s[i], (i, 1, N)) for s in (w1, w2))
    lines = [Max(t * (label[mu] - f), (t - 1) * (label[mu] - f)) for f, t in ((h, high), (k, low))]
    problem = ConvexProblem(Sum(sum(lines), (mu, 1, P)) + Sum(w1[i] ** 2 + w2[i] ** 2, (i, 1, N)) / 2, [h >= k])
    values = {alpha: 1, label: Normal("e", 0, 1)}
    theory = problem.cavity()
    solution = theory.solve(values)
    assert solution[average(w1[i] ** 2)] == pytest.approx(0.125835031807, rel=1e-9)
    assert solution[average(w1[i] * w2[i])] == pytest.approx(0.074587608274, rel=1e-9)
    wanted = [average((h - k) ** 2), average(h**2), average((label[mu] - h) * label[mu])]
    assert theory.compare(problem.simulate(values, N=60, seeds=6), wanted).agrees(4)
