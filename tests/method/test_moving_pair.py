"""Two sites over time: equations by hand, their record, witnesses that notice what is broken, and refusals."""

import pytest
from sympy import Derivative, Eq, Rational, S, Sum, symbols, tanh
from sympy import solve as solve_equations

from symcavity import (
    Coupling,
    DeclarationError,
    N,
    Noise,
    Quenched,
    Sites,
    System,
    Time,
    UnsupportedLaw,
    Variable,
    i,
)
from symcavity.method import moving_pair as rules
from symcavity.method.moving_pair_steps import moving_pair_steps
from symcavity.record.order_parameters import MovingParameter
from symcavity.witness.judge import judge

t, s, j = Time("t"), Time("s"), symbols("j", integer=True)
g, h, D = symbols("g h D", positive=True)
rho = symbols("rho", real=True)
x, a, xi = Variable("x", i, over=t), Quenched("a", i), Noise("xi", i, over=t, variance=D)
omega, nu = symbols("omega nu", real=True)


def network(reciprocity=0, flowing=False):
    J = Coupling("J", between=(i, i), variance=g**2 / N, reciprocity=reciprocity)
    field = Sum(J[i, j] * tanh(x[j, t]), (j, 1, N))
    moves = Eq(Derivative(x[i, t], t), -x[i, t] + field) if flowing else Eq(x[i, t + 1], (1 - h) * x[i, t] + h * field)
    return System([moves], initial=[Eq(x[i, 0], a[i])], name="A network that moves")


k, K = Sites("k", "K", "mode")
L = Coupling("L", between=(i, k))
R = Coupling("R", between=(i, k), correlation={L: rho})
z = Variable("z", k, over=t)
MODES = System(
    [
        Eq(x[i, t + 1], Sum(L[i, k] * z[k, t], (k, 1, K)) + xi[i, t]),
        Eq(z[k, t], Sum(R[i, k] * tanh(x[i, t]), (i, 1, N))),
    ],
    initial=[Eq(x[i, 0], a[i])],
)
CASES = {
    "a network in steps": (network(rho), x),
    "a network in continuous time": (network(rho, flowing=True), None),
    "modes that read what they write": (MODES, z),
}


@pytest.fixture(scope="module", params=CASES)
def asked(request):
    declared, of = CASES[request.param]
    return declared.cavity().pair(over=[t], of=of)


def verdicts(pair):
    pair.theory.memory.pop("moving linear instances", None)
    made = {step.key: step for step in moving_pair_steps(pair)}
    return {key: all(v.ok for v in judge(made[key])) for key in ("pair.local", "pair.close", "pair.dimension")}


def test_without_an_echo_the_sums_are_a_quotient():
    """C(w) C(v)/|1 - g^2 S(w) S(v)|^2, where S at opposite frequencies is the complex conjugate."""
    pair = network().cavity().pair(over=t)
    unknown = [e.lhs for e in pair.equations]
    solved = solve_equations([e.difference for e in pair.equations], unknown)
    product = MovingParameter("C_u_x", (omega,)) * MovingParameter("C_u_x", (nu,))
    there, back = (1 - g**2 * MovingParameter("S_u_x", (w,)) * MovingParameter("S_u_x", (v,))
                   for w, v in ((omega, nu), (-omega, -nu)))  # fmt: skip
    assert (solved[pair.symbols[pair.target]] - product / there / back).simplify() == 0
    states = network().cavity().pair(over=[t], of=x)
    assert len(states.equations) == 3
    assert {symbol.base for symbol in states.symbols.values()} == {"CC_u_x", "CC_x", "RR_v"}


def test_what_is_sent_is_asked_for_by_any_of_its_names():
    theory = network().cavity()
    by_name, by_hand = theory.pair(over=[t]), theory.pair(over=[t], of=tanh(x[i, t]))
    assert by_name.equations == by_hand.equations


def test_every_claim_is_judged_and_holds(asked):
    assert verdicts(asked) == {"pair.local": True, "pair.close": True, "pair.dimension": True}
    steps = [step for step in asked.derivation.steps if step.key.startswith("pair.")]
    assert [step.key for step in steps] == ["pair.insert", "pair.local", "pair.close", "pair.dimension"]


def test_the_record_reads_as_one(asked):
    text = " ".join(asked.derivation.to_text().split())
    assert "Keep the couplings, and look at the activity over the time t" in text
    assert "(τ) =" in text
    assert "{" not in text[text.index("Keep the couplings") : text.index("Order parameters")]
    assert "\\omega" in asked.derivation.to_latex()


def test_one_site_no_longer_hears_the_other_one(asked, monkeypatch):
    """The answers to what the other site sends are dropped: only common fields are left."""
    honest = rules.MovingPair.line

    def line(self, one, other, frequency):
        crossed = (one.field is None) != (other.field is None)
        return S.Zero if crossed else honest(self, one, other, frequency)

    monkeypatch.setattr(rules.MovingPair, "line", line)
    pair = asked.theory.pair(over=[t], of=asked.observed)
    assert not verdicts(pair)["pair.dimension"] or not verdicts(pair)["pair.close"]


def test_a_response_at_the_opposite_frequency(asked, monkeypatch):
    """A line that is run through the wrong way round: responses of the past to the future."""
    honest = rules.MovingPair.line

    def line(self, one, other, frequency):
        crossed = (one.field is None) != (other.field is None)
        return honest(self, one, other, -frequency if crossed else frequency)

    monkeypatch.setattr(rules.MovingPair, "line", line)
    assert not verdicts(asked.theory.pair(over=[t], of=asked.observed))["pair.close"]


def test_both_lines_at_one_frequency(asked, monkeypatch):
    """The formula of states at rest, taken at each frequency, is not that of a product of covariances."""
    monkeypatch.setattr(rules.MovingPair, "frequencies", property(lambda _self: (omega, omega)))
    pair = asked.theory.pair(over=[t], of=asked.observed)
    said = {c.lhs.base: c.rhs for c in pair.equations}
    monkeypatch.undo()
    pair = asked.theory.pair(over=[t], of=asked.observed)
    monkeypatch.setattr(rules.MovingPair, "equations", property(lambda self: _moved(self, said)))
    assert not verdicts(pair)["pair.close"]


def _moved(pair, said):
    from symcavity.model.equations import Equation

    both = {MovingParameter(c.base, (omega, omega)): c for c in pair.symbols.values()}
    return [Equation(c, said[c.base].xreplace(both)) for c in pair.symbols.values()]


def test_a_transform_with_the_other_sign(asked, monkeypatch):
    honest = rules.MovingPair.transforms.fget

    def transforms(self):
        return [type(e)(e.lhs, e.rhs.xreplace({omega: -omega})) for e in honest(self)]

    monkeypatch.setattr(rules.MovingPair, "transforms", property(transforms))
    assert not verdicts(asked)["pair.local"]


def test_a_dimension_per_other_sites(asked, monkeypatch):
    honest = rules.MovingPair.dimension

    def dimension(self, symbol):
        found = honest(self, symbol)
        return type(found)(found.lhs, found.rhs * Rational(3, 4))

    monkeypatch.setattr(rules.MovingPair, "dimension", dimension)
    assert verdicts(asked) == {"pair.local": True, "pair.close": True, "pair.dimension": False}


def test_what_is_not_derived_is_refused():
    theory = network().cavity()
    for wrong in ([], [s], [t, s], [xi], "t", [a]):
        with pytest.raises(DeclarationError, match="move over t"):
            theory.pair(over=wrong)
    with pytest.raises(DeclarationError, match="not a function of states"):
        theory.pair(over=[t], of=x[i, t + 1])
    b = Quenched("b", i)
    J = Coupling("J", between=(i, i))
    field = Sum(J[i, j] * tanh(x[j, t]), (j, 1, N))
    driven = System([Eq(x[i, t + 1], field + b[i])], initial=[Eq(x[i, 0], a[i])])
    with pytest.raises(UnsupportedLaw, match="differ by b"):
        driven.cavity().pair(over=[t])
