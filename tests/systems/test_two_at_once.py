"""Two fits at once, and two sites at once, of declarations that are in no gallery: theories against instances."""

import pytest
from sympy import Abs, And, Eq, Max, Ne, Piecewise, Rational, Sum, Symbol, exp, log, tanh
from sympy.stats import Normal

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    N,
    P,
    Quenched,
    Sites,
    System,
    Variable,
    alpha,
    average,
    i,
    mu,
)
from symcavity.derivations import supplied_resources

HALF = Rational(1, 2)
x, w, e = Coupling("x"), Feature("w"), Quenched("e", mu)
gamma = Symbol("gamma", positive=True)
NOISE, COIN = Normal("e", 0, HALF), {1: HALF, -1: HALF}
heard = Sum(x[mu, i] * w[i], (i, 1, N))
sparse, ridge = gamma * Sum(Abs(w[i]), (i, 1, N)), gamma * Sum(w[i] ** 2, (i, 1, N)) / 2


def agrees(problem, values, observables):
    """The means over instances are the theory's, within errors of a few percent."""
    simulation = problem.simulate(values, N=100, seeds=24)
    found = problem.cavity().compare(simulation, observables)
    assert all(abs(row.z) < 4 for row in found.rows)
    assert all(row.simulation.stderr < abs(row.theory) / 8 for row in found.rows)


def test_two_bagged_lassos_choose_alike():
    t = Quenched("t", i)
    mask = Quenched("m", mu, law={1: HALF, 0: HALF})
    gap = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - e[mu]
    problem = ConvexProblem(Sum(mask[mu] * gap**2, (mu, 1, P)) / 2 + sparse).copies(2, share={mask: 0})
    one, other = problem["w_1"], problem["w_2"]
    both = average(Piecewise((1, And(Ne(one[i], 0), Ne(other[i], 0))), (0, True)))
    values = {alpha: 2, gamma: HALF, t: {0: Rational(4, 5), 2: Rational(1, 5)}, e: NOISE}
    agrees(problem, values, [average(one[i] ** 2), average(one[i] * other[i]), both])


def test_two_logistic_fits_of_either_half_of_the_data():
    t, side, v = Quenched("t", i), Quenched("c", mu, law=COIN), Feature("v")
    field, other = Sum(x[mu, i] * t[i], (i, 1, N)), Sum(x[mu, i] * v[i], (i, 1, N))
    label = Quenched("y", mu, law={1: 1 / (1 + exp(-3 * field)), -1: 1 / (1 + exp(3 * field))}, given=field)
    costs = [log(1 + exp(-label[mu] * h)) for h in (heard, other)]
    halves = (1 + side[mu]) / 2 * costs[0] + (1 - side[mu]) / 2 * costs[1]
    problem = ConvexProblem(Sum(halves, (mu, 1, P)) + ridge + gamma * Sum(v[i] ** 2, (i, 1, N)) / 2)
    values = {alpha: 4, gamma: HALF, t: COIN}
    agrees(problem, values, [average(w[i] ** 2), average(w[i] * v[i]), average(t[i] * w[i])])


def test_a_sparse_fit_of_one_task_is_of_use_for_another():
    task = Quenched("t", i, law={0: Rational(4, 5), 2: Rational(1, 5)})
    gap = Sum(x[mu, i] * (w[i] - task[i]), (i, 1, N)) - e[mu]
    problem = ConvexProblem(Sum(gap**2, (mu, 1, P)) / 2 + sparse).copies(2, share={task: HALF, e: 0, x: 0})
    one, other, second = problem["w_1"], problem["w_2"], problem["t_2"]
    noises = {Quenched(name, mu): Normal(name, 0, HALF) for name in ("e_1", "e_2")}
    agrees(problem, {alpha: 2, gamma: HALF, **noises}, [average(one[i] * other[i]), average(one[i] * second[i])])


def network():
    """Excitatory and inhibitory neurons, half as many, with drives of their own."""
    a, count = Sites("a", "K")
    to = [Coupling(name, between=pair) for name, pair in (("J", (i, i)), ("U", (i, a)), ("V", (a, i)))]
    j = Symbol("j", integer=True)
    b, d, one, other = Quenched("b", i), Quenched("d", a), Variable("x", i), Variable("y", a)
    fires = tanh(one[j])
    held = Sum(to[1][i, a] * Max(0, other[a]), (a, 1, count))
    laws = [
        Eq(one[i], b[i] + HALF * Sum(to[0][i, j] * fires, (j, 1, N)) - held),
        Eq(other[a], d[a] + HALF * Sum(to[2][a, i] * tanh(one[i]), (i, 1, N))),
    ]
    return System(laws), {b: Normal("b", 0, 1), d: Normal("d", HALF, HALF), count / N: HALF}, (one, other, b, d)


def explored(which):
    """A problem, its values, a quantity of its sites, and what varies."""
    if which == "absolute losses over noise":
        fit = ConvexProblem(Sum(Abs(heard - e[mu]), (mu, 1, P)) + ridge)
        return fit, {alpha: 3, gamma: HALF, e: Normal("e", 0, 1)}, w, [e]
    if which == "margins over labels":
        y = Quenched("y", mu)
        margin = ConvexProblem(Sum(Max(0, 1 - y[mu] * heard), (mu, 1, P)) + ridge)
        return margin, {alpha: 2, gamma: HALF, y: COIN}, w, [y]
    if which == "consumers over supplies":
        supply = {supplied_resources.K: {Rational(3, 2): HALF, Rational(5, 2): HALF}}
        values = {**supplied_resources.values, **supply}
        return supplied_resources.problem, values, supplied_resources.n, [supplied_resources.K]
    net, values, (one, other, b, d) = network()
    return (net, values, one, [b, d]) if which == "excitation over all drives" else (net, values, other, [b])


@pytest.mark.parametrize(
    "which",
    [
        "absolute losses over noise",
        "margins over labels",
        "consumers over supplies",
        "excitation over all drives",
        "inhibition over drives of excitation",
    ],
)
def test_dimensions(which):
    problem, values, what, over = explored(which)
    known = float(problem.cavity().solve(values).dimension(what, over=over))
    seen = problem.simulate(values, N=100, seeds=8).dimension(what, over=over, draws=60)
    assert seen.stderr < 0.05 * known
    assert abs(seen.mean - known) < 4 * seen.stderr
