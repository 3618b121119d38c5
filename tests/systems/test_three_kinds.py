"""Systems of more kinds than features and data: chains of linear laws, and networks coupled to themselves."""


from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from sympy import Eq, Max, Rational, Sum, Symbol, exp, log, symbols, tanh
from sympy.stats import Normal

import symcavity.derivations.random_features as random_features_of_a_teacher
from symcavity import ConvexProblem, Coupling, Quenched, Sites, System, Variable
from symcavity.errors import ValuesError
from symcavity.finite.quadratic import quadratic_program, solve_assembled
from symcavity.model.averages import average, response
from symcavity.model.equations import Equation
from symcavity.model.kinds import N, P, alpha, i, mu

a, K = Sites("a", "K", "hidden unit")
b, L = Sites("b", "L", "output unit")
j = Symbol("j", integer=True)
gamma, c, g = symbols("gamma c g", positive=True)
x, z, J = Coupling("x"), Coupling("z", between=(mu, a)), Coupling("J", between=(i, i))
F, G = Coupling("F", between=(a, i)), Coupling("G", between=(b, a))
w, s, p, eps = Variable("w", a), Variable("s", i), Variable("p", i), Variable("epsilon", mu)
xi = Quenched("xi", i)
POINT = {alpha: "3/2", K / N: "13/10", gamma: "3/10", c: "1/2"}
NUMBERS = {alpha: 1.5, K / N: 1.3, gamma: 0.3, c: 0.5}
UNIT = {xi: Normal("xi", 0, 1)}


def random_features():
    """Ridge regression on random features of random inputs, with a part of the features that is noise."""
    return System(
        [
            Eq(eps[mu], Sum(x[mu, i] * (1 - s[i]), (i, 1, N)) - c * Sum(z[mu, a] * w[a], (a, 1, K))),
            Eq(s[i], Sum(F[a, i] * w[a], (a, 1, K))),
            Eq(p[i], Sum(x[mu, i] * eps[mu], (mu, 1, P))),
            Eq(gamma * w[a], Sum(F[a, i] * p[i], (i, 1, N)) + c * Sum(z[mu, a] * eps[mu], (mu, 1, P))),
        ]
    )


def as_problem():
    """The same as a minimisation."""
    residual = Sum(x[mu, i] * (1 - s[i]), (i, 1, N)) - c * Sum(z[mu, a] * w[a], (a, 1, K))
    return ConvexProblem(
        minimize=Sum(residual**2, (mu, 1, P)) / 2 + gamma * Sum(w[a] ** 2, (a, 1, K)) / 2,
        subject_to=[Eq(s[i], Sum(F[a, i] * w[a], (a, 1, K)))],
    )


def network(law):
    return System([Eq(s[i], law(g * Sum(J[i, j] * s[j], (j, 1, N)) + xi[i]))])


def distances(direct, expected, seeds=30):
    """Standard errors between expected numbers and the limits 1/n -> 0 of what a function of n and generators gives."""
    small, large = (np.array([direct(n, np.random.default_rng([n, k])) for k in range(seeds)]) for n in (60, 120))
    limit = 2 * large.mean(axis=0) - small.mean(axis=0)
    error = np.sqrt((4 * large.var(axis=0, ddof=1) + small.var(axis=0, ddof=1)) / seeds)
    return (limit - np.array([float(e) for e in expected])) / error


@pytest.fixture(scope="module")
def system():
    return random_features()


@pytest.fixture(scope="module")
def theory(system):
    return system.cavity()


@pytest.fixture(scope="module")
def solution(theory):
    return theory.solve(POINT)


def test_the_sites_of_each_kind_are_found_by_their_index(system, theory):
    assert list(theory.sites) == [i, mu, a]
    assert str(system).startswith("System")
    assert "hidden unit sites a = 1..K" in str(system)


def test_random_features_are_a_ridge_regression(system, solution):
    def direct(n, rng):
        m, k = 3 * n // 2, 13 * n // 10
        inputs, mixing, noise = (rng.normal(size=size) / n**0.5 for size in ((m, n), (k, n), (m, k)))
        design, labels = inputs @ mixing.T + 0.5 * noise, inputs @ np.ones(n)
        inverse = np.linalg.inv(design.T @ design + 0.3 * np.eye(k))
        weights = inverse @ design.T @ labels
        residual = labels - design @ weights
        squares = weights, residual, 1 - mixing.T @ weights, inputs.T @ residual
        return [np.mean(v**2) for v in squares] + [np.trace(inverse) / k]

    observables = [
        average(w[a] ** 2),
        average(eps[mu] ** 2),
        average((1 - s[i]) ** 2),
        average(p[i] ** 2),
        average(response(w[a], system["chi"][a])),
    ]
    z = distances(direct, [solution[o] for o in observables])
    assert np.abs(z).max() < 4, dict(zip(observables, z, strict=True))


def test_instances_of_three_kinds_agree_with_the_theory(system, theory, solution):
    simulated = system.simulate(NUMBERS, N=[50, 100], seeds=30)
    largest = simulated.largest
    assert (largest.N, largest.P, largest.count(a)) == (100, 150, 130)
    assert simulated.residuals.worst < 1e-10
    observables = [average(q**2) for q in (w[a], eps[mu], s[i], p[i])] + [
        Sum((1 - s[i]) ** 2, (i, 1, N)) / N,
        average(response(w[a], system["chi"][a])),
        average(response(eps[mu], system["u"][mu])),
        average(response(s[i], p[i])),
    ]
    for observable in observables:
        assert abs(simulated[observable].z(float(solution[observable]))) < 4, observable
    # c*z*w + residual = labels: what the data hear adds up, in the couplings of the instance
    total = eps[mu] + c * Sum(z[mu, a] * w[a], (a, 1, K)) - Sum(x[mu, i] * (1 - s[i]), (i, 1, N))
    assert np.abs(largest.values(total)).max() < 1e-10
    comparison = theory.compare(simulated)
    assert comparison.agrees(4)
    assert {str(row.observable) for row in comparison} >= {"average(w[a]**2)", "average(s[i]**2)"}


def test_a_problem_of_three_kinds_is_solved_through_its_conditions(solution):
    problem = as_problem()
    simulated = problem.simulate(NUMBERS, N=40, seeds=2)
    sample = simulated.samples[0]
    reader = simulated.reader(0)
    named = {str(q): x for q, x in zip(reader.instance.system.couplings, reader.instance.couplings, strict=True)}
    design = named["x[mu, i]"] @ named["F[a, i]"].T + 0.5 * named["z[mu, a]"]
    labels = named["x[mu, i]"] @ np.ones(40)
    direct = np.linalg.solve(design.T @ design + 0.3 * np.eye(52), design.T @ labels)
    assert np.allclose(sample[w], direct, rtol=1e-9, atol=1e-11)
    other = problem.cavity().solve(POINT)
    for observable in (average(w[a] ** 2), average(s[i] ** 2), average((1 - s[i]) ** 2)):
        assert float(other[observable]) == pytest.approx(float(solution[observable]), rel=1e-10)


def test_sites_with_signs_go_through_every_solver():
    """Non-negative weights: messages, the central path and a quadratic program solved by others have one minimum."""
    residual = Sum(x[mu, i] * (1 - s[i]), (i, 1, N)) - Sum(z[mu, a] * w[a], (a, 1, K))
    problem = ConvexProblem(
        minimize=Sum(residual**2, (mu, 1, P)) / 2 + gamma * Sum(w[a] ** 2, (a, 1, K)) / 2,
        subject_to=[Eq(s[i], Sum(F[a, i] * w[a], (a, 1, K))), w[a] >= 0],
    )
    values = {alpha: 1.5, K: 26, gamma: 0.3}
    sim = problem.simulate(values, N=20, seeds=2, method="interior point")
    weights = sim.arrays(w)
    assert np.all(weights >= 0)
    assert 0 < np.mean(weights == 0) < 1
    program = quadratic_program(sim.setup.system)
    for k, found in enumerate(weights):
        instance = sim.reader(k).instance
        answer, begin = solve_assembled(program.assemble(instance)), program.places(instance)[0][w[a]]
        assert answer.variables[begin : begin + len(found)] == pytest.approx(found, abs=1e-6)
    alone = ConvexProblem(
        minimize=Sum(w[a] ** 2, (a, 1, K)) / 2,
        subject_to=[Sum(z[mu, a] * w[a], (a, 1, K)) >= 1, Sum(F[a, i] * w[a], (a, 1, K)) <= 1],
    )
    sizes = {alpha: 0.3, K: 40}
    exact, other = (alone.simulate(sizes, N=20, seeds=2, method=how).arrays(w) for how in ("", "interior point"))
    assert np.allclose(exact, other, rtol=1e-8, atol=1e-10)


def test_a_smooth_law_of_two_fields_ends_where_its_sign_does():
    """A quartic penalty and a sign: the end of the implicit branch hangs upon the other field."""
    h = Variable("h", a)
    heard = Sum(x[mu, i] * s[i], (i, 1, N)) + Sum(z[mu, a] * h[a], (a, 1, K))
    problem = ConvexProblem(
        minimize=Sum(h[a] ** 4, (a, 1, K)) / 4 + Sum(s[i] ** 2, (i, 1, N)) / 2 + Sum((heard - 1) ** 2, (mu, 1, P)) / 2,
        subject_to=[Eq(s[i], -Sum(F[a, i] * h[a], (a, 1, K))), h[a] >= 0],
    )
    theory = problem.cavity()
    values = {alpha: 2, K / N: "3/2"}
    assert float(theory.solve(values)[average(h[a] > 0)]) == pytest.approx(0.5)  # it is the sign of a sum of fields
    observables = [average(s[i] ** 2), average(h[a]), average(h[a] ** 2)]
    assert theory.compare(problem.simulate(values, N=[40, 80], seeds=20), observables).agrees(4)
    states = theory.sites[a].solution
    (multiplier,) = [q for q in states if str(q).startswith("nu")]
    assert states[multiplier].args[-1][0] == 0  # where the weight is positive, and not a difference of equals


@pytest.mark.parametrize("loss", [lambda m: log(1 + exp(-m)), lambda m: Max(0, 1 - m) ** 4], ids=["logistic", "kink"])
def test_two_kinds_heard_in_one_loss_are_one_kind_of_twice_the_size(loss):
    """All is fixed by the sum of the two fields: the averages are over that alone, to any number of digits."""
    h = Variable("h", a)
    squares, data = Sum(s[i] ** 2, (i, 1, N)) / 2, (mu, 1, P)
    heard = Sum(x[mu, i] * s[i], (i, 1, N)) + Sum(z[mu, a] * h[a], (a, 1, K))
    two = ConvexProblem(squares + Sum(h[a] ** 2, (a, 1, K)) / 2 + Sum(loss(heard), data)).cavity()
    whole = Sum(Coupling("X", variance=2 / N)[mu, i] * s[i], (i, 1, N))
    one = ConvexProblem(squares + Sum(loss(whole), data)).cavity()
    found, wanted = two.solve({alpha: 2, K / N: 1}, dps=25), one.solve({alpha: 1}, dps=25)
    for key in (average(s[i] ** 2), response(s)):
        assert abs(found[key] / wanted[key] - 1) < 1e-24
    assert abs(found[average(h[a] ** 2)] / wanted[average(s[i] ** 2)] - 1) < 1e-24
    step = two.derivation["datum.solution"]
    assert all(step.verdicts(30))
    wrong = [Equation(c.lhs, 2 * c.rhs) for c in step.claims]
    assert not all(replace(step, claims=tuple(wrong)).verdicts(30))


def test_a_chain_of_depth_three():
    v, r = Variable("v", b), Variable("r", a)
    residual = Sum(x[mu, i] * (1 - s[i]), (i, 1, N))
    problem = ConvexProblem(
        minimize=Sum(residual**2, (mu, 1, P)) / 2 + gamma * Sum(v[b] ** 2, (b, 1, L)) / 2,
        subject_to=[Eq(s[i], Sum(F[a, i] * r[a], (a, 1, K))), Eq(r[a], Sum(G[b, a] * v[b], (b, 1, L)))],
    )
    values = {alpha: 2, K / N: 1.5, L / K: 0.8, gamma: 0.5}
    theory = problem.cavity()
    solution = theory.solve(values)
    assert solution[L / N] == pytest.approx(1.2)

    def direct(n, rng):
        m, k, size = 2 * n, 3 * n // 2, 6 * n // 5
        inputs, first, second = (rng.normal(size=q) / n**0.5 for q in ((m, n), (k, n), (size, k)))
        design, labels = inputs @ first.T @ second.T, inputs @ np.ones(n)
        weights = np.linalg.solve(design.T @ design + 0.5 * np.eye(size), design.T @ labels)
        hidden = second.T @ weights
        return [np.mean(q**2) for q in (weights, hidden, 1 - first.T @ hidden)]

    observables = [average(v[b] ** 2), average(r[a] ** 2), average((1 - s[i]) ** 2)]
    assert np.abs(distances(direct, [solution[o] for o in observables])).max() < 4
    simulated = problem.simulate(values, N=50, seeds=2)
    assert {str(kind.size): count for kind, count in simulated.counts.items()} == {"N": 50, "P": 100, "K": 75, "L": 60}
    assert simulated.residuals.worst < 1e-10


@pytest.mark.usefixtures("digits")
def test_a_linear_network_has_the_variance_of_a_geometric_series():
    system = network(lambda h: h)
    theory = system.cavity()
    for gain in (Rational(1, 2), Rational(7, 10)):
        solution = theory.solve({g: gain, **UNIT}, dps=30)
        assert abs(solution[average(s[i] ** 2)] - 1 / (1 - gain**2)) < 1e-25
    simulated = system.simulate({g: 0.5, **UNIT}, N=[60, 120, 240], seeds=30)
    comparison = theory.compare(simulated)
    assert comparison.agrees(4)
    assert len(comparison) == 2
    assert list(theory.sites) == [i]


def test_a_saturating_network_agrees_with_instances():
    system = network(tanh)
    theory = system.cavity()
    values = {g: 1.2, **UNIT}
    simulated = system.simulate(values, N=200, seeds=20)
    assert simulated.residuals.worst < 1e-8
    solution = theory.solve(values)
    for observable in (average(s[i] ** 2), response(s)):
        assert abs(simulated[observable].z(solution[observable])) < 4, observable


def test_couplings_that_are_heard_both_ways_echo():
    """gamma*s = J*p + xi, p = -J'*s: the resolvent of a square Wishart matrix, whose trace is known."""
    system = System(
        [
            Eq(gamma * s[i], Sum(J[i, j] * p[j], (j, 1, N)) + xi[i]),
            Eq(p[i], -Sum(J[j, i] * s[j], (j, 1, N))),
        ]
    )
    value = 0.4
    trace = (np.sqrt(1 + 4 / value) - 1) / 2
    square = 1 / (value**2 * np.sqrt(1 + 4 / value))  # minus its derivative in gamma
    theory = system.cavity()
    solution = theory.solve({gamma: "2/5", **UNIT})
    assert float(solution[average(s[i] ** 2)]) == pytest.approx(square, rel=1e-10)
    simulated = system.simulate({gamma: value, **UNIT}, N=120, seeds=20)
    own = average(response(s[i], s[i]))
    assert abs(simulated[own].z(trace)) < 4
    assert float(solution[own]) == pytest.approx(trace, rel=1e-10)
    experiment = system.cavity_experiment({gamma: value, **UNIT}, N=120, seeds=30)
    assert_experiment(experiment)
    assert np.abs(experiment[i].stack("linear_shift") - experiment[i].stack("shift")).max() < 1e-9


def test_one_site_of_every_kind_is_inserted(system, solution):
    experiment = system.cavity_experiment(NUMBERS, N=80, seeds=30, theory=solution)
    assert list(experiment.inserted) == [i, mu, a]
    assert_experiment(experiment)
    for inserted in experiment:
        assert inserted.theory_self_coupling is not None
        assert np.abs(inserted.stack("linear_shift") - inserted.stack("shift")).max() < 1e-9


def assert_experiment(experiment):
    for inserted in experiment:
        for line in inserted.findings():
            if line.expected == line.expected and "with the site" not in line.name:
                assert abs(line.z) < 4, (inserted.kind, line)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({alpha: 1, gamma: 1, c: 1}, "alpha_K = K/N has no value"),
        ({alpha: 1, K / N: 0, gamma: 1, c: 1}, "K/N = 0"),
        ({alpha: 1, K: 2.5, gamma: 1, c: 1}, "K = 2.5"),
        ({alpha: 1, K / N: 2, K / P: 1, gamma: 1, c: 1}, "does not fit"),
        ({alpha: 1, K: 30, K / N: 2, gamma: 1, c: 1}, "K = 30, but alpha_K = 2"),
        ({alpha: 1, L: 3, K: 30, gamma: 1, c: 1}, "no output unit sites"),
        ({alpha: 1, K / N: 0.01, gamma: 1, c: 1}, "no hidden unit at all"),
    ],
)
def test_sizes_are_checked(system, values, message):
    with pytest.raises(ValuesError, match=message):
        system.simulate(values, N=20, seeds=1)


def test_sizes_may_be_given_in_many_ways(system, theory):
    rest = {gamma: "3/10", c: "1/2"}
    ways = [{alpha: "3/2", K / N: 3}, {P / N: "3/2", K / P: 2}, {P: 30, N: 20, K: 60}, {N / P: "2/3", K / N: 3}]
    numbers = [float(theory.solve({**way, **rest})[average(w[a] ** 2)]) for way in ways]
    assert numbers == pytest.approx([numbers[0]] * 4, rel=1e-12)
    drawn = [system.simulate({**way, gamma: 0.3, c: 0.5}, N=20, seeds=1) for way in ways]
    assert all(np.array_equal(one.arrays(w), drawn[0].arrays(w)) for one in drawn)
    with pytest.raises(ValuesError, match="alpha_K"):
        theory.solve({alpha: 1, **rest})
    with pytest.raises(ValuesError, match="does not fit"):
        theory.solve({alpha: 1, K / N: 2, K / P: 3, **rest})


def test_the_record_of_three_kinds_is_written(theory):
    derivation = theory.derivation
    assert derivation["hidden_unit.insert"].claims
    text, html = derivation.to_text(), derivation.to_html()
    assert "hidden unit" in text
    assert "hidden unit" in html


@pytest.mark.parametrize("declared", [random_features, lambda: network(tanh)])
def test_the_latex_of_further_kinds_compiles(declared, typeset):
    typeset(declared().cavity().derivation.to_latex())


def test_students_of_students():
    """Self-distillation: ridge regression on what the last fit says of the same data, by the density of the spectrum.

    In the frame of ``x.T x`` with eigenvalue ``v`` each fit multiplies by ``v/(v + penalty)``; the first one sees the
    teacher and noise.  Thirty unknowns, which are iterated: what elimination leaves of them fills pages.
    """
    load, penalty, teacher, noise = 2, 0.5, Quenched("t", i), Quenched("e", mu)
    fits = [Variable(f"w_{k}", i) for k in range(3)]
    rests = [Variable(f"r_{k}", mu) for k in range(3)]
    told = Sum(x[mu, i] * teacher[i], (i, 1, N)) + noise[mu]
    equations = []
    for fit, rest in zip(fits, rests, strict=True):
        said = Sum(x[mu, i] * fit[i], (i, 1, N))
        equations += [Eq(rest[mu], told - said), Eq(fit[i], 2 * Sum(x[mu, i] * rest[mu], (mu, 1, P)))]
        told = said
    values = {alpha: load, teacher: {1: "1/2", -1: "1/2"}, noise: Normal("e", 0, 1)}
    solution = System(equations).cavity().solve(values)
    low, high = (load + 1 - 2 * load**0.5, load + 1 + 2 * load**0.5)
    angle = (np.arange(4000) + 0.5) * np.pi / 4000  # the law of Marchenko and Pastur, in the angle of a half circle
    v = (low + high) / 2 + (high - low) / 2 * np.cos(angle)
    weight = ((high - low) / 2 * np.sin(angle)) ** 2 / (2 * np.pi * v) * np.pi / 4000
    assert weight.sum() == pytest.approx(1, rel=1e-10)
    for k, fit in enumerate(fits):
        expected = np.sum(weight * (v / (v + penalty)) ** (2 * k) * (v**2 + v) / (v + penalty) ** 2)
        assert float(solution[average(fit[i] ** 2)]) == pytest.approx(expected, rel=1e-9)


def test_random_features_that_hear_nothing_of_their_inputs():
    """Without the linear part the weights are those of a ridge regression of noise, over Marchenko and Pastur's law."""
    declared, share = random_features_of_a_teacher, 0.75  # K/P
    low, high = (1 - share**0.5) ** 2, (1 + share**0.5) ** 2

    def term(eigenvalue):
        density = np.sqrt((high - eigenvalue) * (eigenvalue - low)) / (2 * np.pi * share * eigenvalue)
        return density * 2 * eigenvalue / (2 * eigenvalue / 4 + 0.1) ** 2

    expected = (1 + 1 / 4) / 4 * quad(term, low, high)[0]
    solutions = [declared.problem.cavity().solve({**declared.values, declared.c: value}) for value in (0, "1/1000000")]
    for solution in solutions:
        assert float(solution[average(declared.v[a] ** 2)]) == pytest.approx(expected, rel=1e-9)
    assert float(solutions[0].stability) == pytest.approx(float(solutions[1].stability), rel=1e-9)
