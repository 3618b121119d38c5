"""Networks with several fixed points, or with units that jump: all that the equations have is told."""

import pytest
from scipy.stats import norm
from sympy import Eq, Heaviside, Piecewise, Rational, Sum, Symbol, sign, symbols, tanh

from symcavity.errors import JumpingLaw, SeveralSolutions
from symcavity.face import System
from symcavity.model.averages import average
from symcavity.model.couplings import Coupling
from symcavity.model.kinds import N, P, Sites, alpha, i, mu
from symcavity.model.quantities import Datum, Feature, Quenched, Variable

w, j, c = Feature("w"), symbols("j", integer=True), Symbol("c", positive=True)
J = Coupling("J", between=(i, i), mean=c / N)
K = Coupling("K", between=(i, i), mean=1 / N, variance=Rational(1, 100) / N)
field = Sum(J[i, j] * w[j], (j, 1, N))
STEPS = {
    "step": Heaviside(field - 1),
    "cases": Piecewise((1, field > 1), (0, True)),
    "sign": (1 + sign(field - 1)) / 2,
}


@pytest.mark.parametrize("name", STEPS)
def test_a_network_of_counts_has_three_fixed_points(name):
    system = System([Eq(w[i], STEPS[name])])
    with pytest.warns(JumpingLaw, match="fields that contain feedback"), pytest.raises(SeveralSolutions) as told:
        system.cavity().solve({c: 2})
    actives = sorted(float(s[next(k for k in s if str(k) == "q_w")]) for s in told.value.solutions)
    assert len(actives) == 2
    for share in actives:  # of active units; each hears a Gaussian about twice this share
        assert norm.sf((1 - 2 * share) / share**0.5) == pytest.approx(share, rel=1e-9)
    assert "3 admissible solutions" in str(told.value)
    assert "at rest" in str(told.value)


def test_silence_is_told_beside_the_two_ways_of_a_ferromagnet():
    with pytest.raises(SeveralSolutions, match="3 admissible solutions") as told:
        System([Eq(w[i], tanh(field / 2))]).cavity().solve({c: 4})
    assert "q_w, M_w = 0: states that are all at rest" in str(told.value)


def test_driven_units_do_not_rest():
    with pytest.raises(SeveralSolutions, match="3 admissible") as told:
        System([Eq(w[i], tanh(field + Rational(1, 20)))]).cavity().solve({c: 2})
    assert "at rest" not in str(told.value)


def test_silence_is_a_state_of_graded_units_with_a_memory():
    """Each unit hears itself through the other memories: its response is followed while the states vanish."""
    x, m, t, beta = Coupling("x"), Datum("m"), Quenched("t", i), Symbol("beta", positive=True)
    heard = t[i] * average(t[i] * w[i]) + Sum(x[mu, i] * m[mu], (mu, 1, P))
    system = System([Eq(w[i], tanh(beta * heard)), Eq(m[mu], Sum(x[mu, i] * w[i], (i, 1, N)))])
    with pytest.raises(SeveralSolutions, match="6 admissible solutions") as told:
        system.cavity().solve({alpha: Rational(1, 50), beta: 2, t: {1: "1/2", -1: "1/2"}})
    assert "at rest" in str(told.value)


def test_units_that_only_pass_a_jump_on_are_not_warned_of(recwarn):
    """A label that a step decides is not a state that answers to itself."""
    x, t = Coupling("x"), Datum("t")
    heard = Eq(t[mu], sign(Sum(x[mu, i] * 1, (i, 1, N))))
    learned = Eq(w[i], Sum(x[mu, i] * t[mu], (mu, 1, P)))
    System([learned, heard]).cavity().solve({alpha: 2})
    assert not [r for r in recwarn if r.category is JumpingLaw]


def test_silence_is_told_beside_an_epidemic():
    """Units that are active in proportion to what excites them: what dies out is a solution beside what lasts."""
    epidemic = System([Eq(w[i], (1 - w[i]) * c * Sum(K[i, j] * w[j], (j, 1, N)))])
    theory = epidemic.cavity()
    lasting = theory.solve({c: 2})
    assert float(lasting[average(w[i])]) == pytest.approx(0.4975, abs=1e-3)  # 1 - 1/2, and what the scatter takes
    assert any("at rest solve the equations, too" in said for said in lasting.remarks)
    sim = epidemic.simulate({c: 2}, N=200, seeds=4)  # begins at silence, and leaves it
    assert "fixed points found from beside a fixed point that repels: all stable" in str(sim)
    (row,) = theory.compare(sim, [average(w[i])])
    assert abs(row.z) < 3
    driven = System([Eq(w[i], tanh(Sum(K[i, j] * w[j], (j, 1, N))) / 2 + Rational(1, 10))])
    assert not driven.cavity().solve({}).remarks


def test_a_readout_that_jumps_is_not_warned_of(recwarn):
    """Nobody hears it: a sum over states decides it, and it decides nothing."""
    out, _units = Sites("a", "K", "readout unit")
    v, readout, j = Variable("v", out), Coupling("R", between=(out, i)), Symbol("j", integer=True)
    network = Eq(w[i], tanh(Sum(Coupling("J", between=(i, i))[i, j] * w[j], (j, 1, N)) / 2 + Rational(1, 2)))
    theory = System([network, Eq(v[out], sign(Sum(readout[out, i] * w[i], (i, 1, N))))]).cavity()
    solution = theory.solve({"alpha_K": 2})
    assert not [r for r in recwarn if r.category is JumpingLaw]
    assert float(solution.stability) < 1
    assert theory.derivation.verify()
