"""Rules of the lowest minimum, broken on purpose: verify() fails, and names the step."""

from types import SimpleNamespace

from sympy import DiracDelta, Eq, Heaviside, Piecewise, S, Sum, Symbol

from symcavity import Coupling, Datum, Feature, N, P, Problem, Sites, Variable, i, mu
from symcavity.model.quantities import SiteQuantity
from symcavity.sites import by_parts
from symcavity.sites.lowest import envelope, site, strategy
from symcavity.sites.thermal import squares

x, w, s = Coupling("x"), Feature("w"), Feature("s", values=(-1, 0, 2))
theta, gamma = Symbol("theta", positive=True), Symbol("gamma", positive=True)
RULES = ("site_energy", "lowest", "jump", "response", "closure", "stability_average", "lowest_state")


def subset():
    price = Piecewise((0, Eq(w[i], 0)), (theta, True))
    error = Sum(x[mu, i] * w[i], (i, 1, N)) - 1
    return Problem(Sum(error**2, (mu, 1, P)) / 2 + Sum(price + gamma * w[i] ** 2 / 2, (i, 1, N)))


def failed(problem, rules=RULES):
    derivation = problem.cavity().derivation
    checked = (judged(step) for step in derivation if step.rule in rules)
    return {rule for rule, ok in checked if not ok}


def judged(step):
    from symcavity.witness.judge import judge

    return step.rule, all(v.ok is not False for v in judge(step))


def test_nothing_fails_unbroken():
    assert not failed(subset())


def test_the_second_lowest_minimum(monkeypatch):
    """A switch at which the two candidates are not equally low."""
    right = envelope.switch
    monkeypatch.setattr(envelope, "switch", lambda a, b: right(a, b) * 2)
    assert "lowest" in failed(subset(), ("lowest",))


def test_a_candidate_left_out(monkeypatch):
    """Three states of which the middle one is passed over."""
    objective = Sum(Heaviside(-Sum(x[mu, i] * s[i], (i, 1, N))), (mu, 1, P)) + 4 * Sum(s[i] ** 2, (i, 1, N))
    assert not failed(Problem(objective), ("lowest",))
    right = site.discrete
    monkeypatch.setattr(site, "discrete", lambda rows: [right(rows)[k] for k in (0, -1)])
    assert "lowest" in failed(Problem(objective), ("lowest",))


def test_the_delta_dropped_from_the_mean(monkeypatch):
    monkeypatch.setattr(strategy.LowestEnsemble, "jump", lambda *_: S.Zero)
    assert {"response", "closure"} <= failed(subset(), ("response", "closure"))


def test_the_delta_dropped_from_the_record(monkeypatch):
    right = strategy.LowestEnergy._slope
    monkeypatch.setattr(
        strategy.LowestEnergy, "_slope", staticmethod(lambda *args: right(*args).replace(DiracDelta, lambda *_: S.Zero))
    )
    assert "jump" in failed(subset(), ("jump",))


def test_a_finite_stability(monkeypatch):
    """Squares of slopes without their jumps."""
    monkeypatch.setattr(by_parts, "S", SimpleNamespace(Infinity=S.One, Zero=S.Zero, One=S.One))
    assert "stability_average" in failed(subset(), ("stability_average",))


def test_a_feedback_of_the_wrong_size(monkeypatch):
    right = site.force_on
    monkeypatch.setattr(
        site, "force_on", lambda p: site.StateForce((f := right(p)).slope, f.shift, 2 * f.curvature)
    )
    assert failed(subset(), ("site_energy", "lowest"))


def test_a_minimum_that_is_followed_is_not_the_lowest():
    """The record of select='local', judged as that of the lowest minimum."""
    step = subset().cavity("local").derivation["feature.solution"]
    assert judged(step)[1]
    step.data["local"] = False
    assert not judged(step)[1]


def projection():
    v, b = Datum("v"), Feature("b", values=(-1, 1))
    return Problem(Sum((b[i] - Sum(x[mu, i] * v[mu], (mu, 1, P))) ** 2, (i, 1, N)) / 2)


def test_the_wrong_state_beside_a_field(monkeypatch):
    assert not failed(projection(), ("lowest", "site_energy"))
    right = site.chosen
    monkeypatch.setattr(site, "chosen", lambda *args: {q: -v for q, v in right(*args).items()})
    assert failed(projection(), ("lowest",)) == {"lowest"}


def pairs():
    a, K = Sites("a", "K", "output unit")
    z, b, v = Coupling("z", between=(mu, a)), Feature("b", values=(-1, 1)), Variable("v", a, values=(-1, 1))
    product = Sum(x[mu, i] * b[i], (i, 1, N)) * Sum(z[mu, a] * v[a], (a, 1, K))
    return Problem(-Sum(product, (mu, 1, P)))


def test_a_force_on_one_of_two_fields(monkeypatch):
    """The force on one field is the other one; here it is twice that."""
    assert not failed(pairs(), ("branches", "lowest_state"))
    right = squares._linear

    def doubled(e, rule):
        twice = isinstance(e, SiteQuantity) and e.family.name == "h_2"
        return right(e, rule) * (2 if twice else 1)

    monkeypatch.setattr(squares, "_linear", doubled)
    assert failed(pairs(), ("branches",)) == {"branches"}
