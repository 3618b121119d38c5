"""Break the rules of two sites at once, and see that large linear instances notice."""

from itertools import pairwise

import pytest
from sympy import Eq, Rational, S, Sum, Symbol, symbols, tanh

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, System, Variable, alpha, i, mu
from symcavity.derivations import structured_network
from symcavity.method import pair as rules
from symcavity.method import pair_resolvent as resolvents
from symcavity.method import pair_steps as steps
from symcavity.model.kinds import in_units_of_n
from symcavity.witness.judge import judge

x, w, y = Coupling("x"), Feature("w"), Quenched("y", mu)
gamma = Symbol("gamma", positive=True)
s, b, j = Variable("s", i), Quenched("b", i), symbols("j", integer=True)
J = Coupling("J", between=(i, i), reciprocity=Rational(1, 2))
gap = y[mu] - Sum(x[mu, i] * w[i], (i, 1, N))
ridge = ConvexProblem(Sum(gap**2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
network = System([Eq(s[i], tanh(Sum(J[i, j] * s[j], (j, 1, N)) / 2 + b[i]))])
CASES = {
    "regression": (ridge, w, y), "network": (network, s, b),
    "modes": (structured_network.problem, structured_network.z, structured_network.xi),
}  # fmt: skip


@pytest.fixture(params=CASES)
def theory(request):
    """A theory that has solved its point once, without anything that is remembered of two sites."""
    declared, of, over = CASES[request.param]
    theory = declared.cavity()
    theory.memory.pop("linear instances", None)
    return theory, of, over


def verdicts(theory, of, over):
    made = {step.key: step for step in steps.pair_steps(theory.pair(over=[over], of=of))}
    return {key: all(v.ok for v in judge(made[key])) for key in ("pair.close", "pair.dimension", "pair.resolvent")}


def test_they_hold_as_they_are(theory):
    assert verdicts(*theory) == {"pair.close": True, "pair.dimension": True, "pair.resolvent": True}


@pytest.mark.parametrize("theory", ["regression", "network"], indirect=True)  # nothing comes back from modes
def test_one_site_no_longer_hears_the_other_one(theory, monkeypatch):
    """The answers to what the other site sends are dropped: only common fields are left."""
    honest = rules.Pair.between

    def between(self, row, column):
        crossed = any((a.field is None) != (c.field is None) for a, c in pairwise(row))
        return S.Zero if crossed else honest(self, row, column)

    monkeypatch.setattr(rules.Pair, "between", between)
    assert not verdicts(*theory)["pair.close"]


def test_a_response_that_is_doubled(theory, monkeypatch):
    honest = rules.Pair.local

    def local(self, a, c):
        return honest(self, a, c) * (2 if (a.field is None) != (c.field is None) else 1)

    monkeypatch.setattr(rules.Pair, "local", local)
    found = verdicts(*theory)
    assert not found["pair.close"]
    assert not found["pair.resolvent"]


def test_a_source_that_nothing_else_hears(theory, monkeypatch):
    """The resolvent of single sites: what comes back through the others, under the source, is dropped."""
    honest = resolvents.Resolvent.back

    def back(self, row):
        return honest(self, row).xreplace({self.symbols[c]: self.pair.over_sites(e) for c, e in self.local.items()})

    monkeypatch.setattr(resolvents.Resolvent, "back", back)
    assert verdicts(*theory) == {"pair.close": True, "pair.dimension": True, "pair.resolvent": False}


def test_sites_that_differ_are_no_mean_site(monkeypatch):
    """The square of an average in the place of the average of a square."""
    theory, of, over = structured_network.problem.cavity(), structured_network.z, structured_network.xi
    theory.memory.pop("linear instances", None)

    def at_sites(self, row, column):
        one, other = (self.over_sites(self.local(a, c)) for a, c in zip(row, column, strict=True))
        return in_units_of_n(row[0].kind.size / N) * one * other

    monkeypatch.setattr(rules.Pair, "at_sites", at_sites)
    assert not verdicts(theory, of, over)["pair.close"]


def test_a_dimension_per_other_sites(theory, monkeypatch):
    honest = steps.dimension_of
    monkeypatch.setattr(steps, "dimension_of", lambda pair: honest(pair) * Rational(4, 5))
    assert verdicts(*theory) == {"pair.close": True, "pair.dimension": False, "pair.resolvent": True}


def test_the_slope_at_the_cavity_field_gives_other_overlaps():
    """The linear equivalent with the response for the slope at the full field: its own theory refutes it."""
    theory = ridge.cavity()
    solution = theory.solve({gamma: 1, alpha: 2, y: {1: Rational(1, 2), -1: Rational(1, 2)}})
    honest = theory.linear_equivalent()
    values = honest.at(solution)
    (k,) = [k for k in honest.slopes if k.name == "k_lambda"]
    assert float(honest.cavity().solve(values)["q_w"]) == pytest.approx(float(solution["q_w"]), rel=1e-12)
    naive = {**values, k: solution["S_lambda"]}
    assert float(honest.cavity().solve(naive)["q_w"]) != pytest.approx(float(solution["q_w"]), rel=1e-2)
