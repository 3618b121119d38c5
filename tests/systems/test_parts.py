"""Laws that fall into parts: several fits of one data set, each with masks or counts of its own."""

import numpy as np
import pytest
from sympy import Abs, Max, Piecewise, Rational, Sum, Symbol, factorial
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, i, mu
from symcavity.model.kinds import DATUM
from symcavity.sites.branching import parts
from symcavity.witness.judge import judge

x, w, t, e, y = Coupling("x"), Feature("w"), Quenched("t", i), Quenched("e", mu), Quenched("y", mu)
gamma, half = Symbol("gamma", positive=True), Rational(1, 2)
heard = Sum(x[mu, i] * w[i], (i, 1, N))
gap = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - e[mu]
size = gamma * Sum(w[i] ** 2, (i, 1, N)) / 2
VALUES = {alpha: 2, gamma: half, t: {1: half, -1: half}, e: Normal("e", 0, half)}
CLASSES = {alpha: 2, gamma: half, y: {1: half, -1: half}}
counts = {k: 1 / factorial(k) for k in range(5)}
COUNTS = {k: v / sum(counts.values()) for k, v in counts.items()}  # of a bootstrap, up to four times
bent = Piecewise((gap**2 / 2, Abs(gap) <= 1), (Abs(gap) - half, True))


def fits(loss, law, penalty=size):
    m = Quenched("m", mu, law=law)
    return ConvexProblem(Sum(m[mu] * loss, (mu, 1, P)) + penalty).copies(2, share={m: 0})


HALVES = {1: half, 0: half}
CASES = {
    "huber": (fits(bent, HALVES), VALUES),
    "a hinge": (fits(Max(0, 1 - y[mu] * heard), HALVES), CLASSES),
    "a bootstrapped lasso": (fits(gap**2 / 2, COUNTS, gamma * Sum(Abs(w[i]), (i, 1, N))), VALUES),
}


def overlaps(problem):
    one, other = problem["w_1"], problem["w_2"]
    return average(one[i] * other[i]), average(one[i] ** 2)


@pytest.mark.parametrize("name", CASES)
def test_several_fits_against_instances(name):
    problem, values = CASES[name]
    theory = problem.cavity()
    assert any(getattr(site.solution, "parts", ()) for site in theory.inserted.values())
    solution = theory.solve(values, timeout=60)  # a few seconds; all products of branches took minutes
    sim = problem.simulate(values, N=60, seeds=16)
    for seen in overlaps(problem):
        assert abs(sim[seen].mean - float(solution[seen])) < 4 * sim[seen].stderr + 0.02 * float(solution[seen])


def test_the_parts_give_what_the_whole_law_gives(monkeypatch):
    """The same averages by the branches of both copies together, and by an inner average at a wrong field."""
    problem, values = fits(Max(0, 1 - y[mu] * heard) ** 2 / 2, HALVES), CLASSES
    solution = problem.cavity().solve(values)
    here = [float(solution[seen]) for seen in overlaps(problem)]
    monkeypatch.setattr(parts, "parted", lambda problem: [problem])
    problem = fits(Max(0, 1 - y[mu] * heard) ** 2 / 2, HALVES)
    whole = problem.cavity()
    assert not getattr(whole.inserted[DATUM].solution, "parts", ())
    again = whole.solve(values)
    assert [float(again[seen]) for seen in overlaps(problem)] == pytest.approx(here, rel=1e-9)


def test_a_solution_with_a_mean_is_the_solution_at_another_field():
    theory = CASES["huber"][0].cavity()
    part = theory.inserted[DATUM].solution.parts[0]
    by = Symbol("c", real=True)
    moved = part.shifted(by)
    for state in part.unknowns:
        gap = moved.expression(state) - part.expression(state).xreplace({part.inner: part.inner + by})
        symbols = sorted(gap.free_symbols | gap.atoms(type(e[mu])), key=str)
        rng = np.random.default_rng(5)
        for _ in range(20):
            point = {s: float(rng.normal()) if "S" not in str(s) else float(rng.uniform(0.2, 2)) for s in symbols}
            point = {s: (0.7 if str(s).startswith("m_") else v) for s, v in point.items()}
            assert abs(complex(gap.xreplace(point))) < 1e-9


def test_more_digits_and_the_record():
    problem, values = CASES["a bootstrapped lasso"]
    theory = problem.cavity()
    few, many = theory.solve(values), theory.solve(values, dps=18)
    seen = overlaps(problem)[0]
    assert float(few[seen]) == pytest.approx(float(many[seen]), rel=1e-11)
    derivation = fits(Max(0, 1 - y[mu] * heard) ** 2 / 2, HALVES).cavity().derivation
    steps = [step for step in derivation.steps if step.rule in ("branches", "response", "site_average", "closure")]
    assert len(steps) > 6
    assert all(v.ok for step in steps for v in judge(step, 15))


def test_copies_of_three_fall_apart_too():
    m = Quenched("m", mu, law=HALVES)
    three = ConvexProblem(Sum(m[mu] * bent, (mu, 1, P)) + size).copies(3, share={m: 0})
    two, values = CASES["huber"]
    both, each = three.cavity().solve(VALUES), two.cavity().solve(values)
    one, other, last = (three[f"w_{k}"] for k in (1, 2, 3))
    expected = float(each[average(two["w_1"][i] * two["w_2"][i])])
    for a, b in ((one, other), (one, last)):
        assert float(both[average(a[i] * b[i])]) == pytest.approx(expected, rel=1e-9)
