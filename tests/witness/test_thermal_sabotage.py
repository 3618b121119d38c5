"""Rules of a temperature that are broken on purpose: the derivation goes through, and its witnesses see it."""

from dataclasses import replace

from sympy import Heaviside, S, Sum, Symbol

from symcavity import Coupling, Feature, N, P, Problem, i, mu
from symcavity.method import measure
from symcavity.sites.thermal import averages, ensemble, states
from symcavity.witness.judge import judge

beta, field, j = Symbol("beta", positive=True), Symbol("H", positive=True), Symbol("j", integer=True)
s, x, J = Feature("s", values=(-1, 1)), Coupling("x"), Coupling("J", between=(i, i), reciprocity=1)
PAIRS = -Sum(s[i] * Sum(J[i, j] * s[j], (j, 1, N)), (i, 1, N)) / 2 - field * Sum(s[i], (i, 1, N))
ERRORS = Sum(Heaviside(-Sum(x[mu, i] * s[i], (i, 1, N))), (mu, 1, P))


RULES = ("weight", "thermal_sum", "measure", "response", "closure")


def failed(energy, rules=RULES):
    """The rules of the steps that some witness finds wrong."""
    steps = [step for step in Problem(energy).gibbs(beta).cavity().derivation if step.rule in rules]
    return {step.rule for step in steps if not all(verdict.ok for verdict in judge(step))}


def test_nothing_is_seen_of_what_is_right():
    assert not failed(PAIRS)


def test_a_width_without_beta(monkeypatch):
    """The fluctuations of a field, ``F`` in the place of ``F/beta``."""
    right = states.Mixture._of_a_field

    def wrong(self, values):
        return tuple(replace(part, width=part.width * self.weight.beta) for part in right(self, values))

    monkeypatch.setattr(states.Mixture, "_of_a_field", wrong)
    assert failed(ERRORS, ("thermal_sum",))


def test_the_variance_for_the_response(monkeypatch):
    right = averages.ThermalAverages.response
    monkeypatch.setattr(averages.ThermalAverages, "response", lambda self, r: right(self, r) / self.weight.beta)
    assert {"response", "closure"} & failed(PAIRS)


def test_a_feedback_of_the_other_sign(monkeypatch):
    """What the site hears of itself, in a weight whose states it tells apart."""
    right = ensemble.mixture

    def wrong(problem):
        found = right(problem)
        return replace(found, feedback=-found.feedback)

    three = Feature("r", values=(-1, 0, 1))
    monkeypatch.setattr(ensemble, "mixture", wrong)
    pairs = -Sum(three[i] * Sum(J[i, j] * three[j], (j, 1, N)), (i, 1, N)) / 2 - field * Sum(three[i], (i, 1, N))
    assert {"weight", "thermal_sum"} <= failed(pairs)


def test_pairs_that_are_counted_half(monkeypatch):
    """Both sites of a pair hear all of it."""
    right = measure.Measure._met
    monkeypatch.setattr(measure.Measure, "_met", lambda self: {f: own * S.Half for f, own in right(self).items()})
    assert "measure" in failed(PAIRS)


def test_a_state_that_is_left_out(monkeypatch):
    right = states.Mixture.parts.func
    monkeypatch.setattr(states.Mixture, "parts", property(lambda self: right(self)[:1]))
    assert "thermal_sum" in failed(PAIRS)
