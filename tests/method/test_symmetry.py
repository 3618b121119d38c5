"""Where a rescaling is said to make the naive analysis right, its numbers are those of the cavity."""

import pytest
from sympy import Eq, Rational, Sum, Symbol

from symcavity.face import System
from symcavity.model.averages import average
from symcavity.model.couplings import Coupling
from symcavity.model.kinds import N, P, alpha, i, mu
from symcavity.model.quantities import Datum, Feature, Quenched

x, w, s, u = Coupling("x"), Feature("w"), Feature("s"), Datum("u")
b, e, c = Quenched("b", i), Quenched("e", mu), Symbol("c", positive=True)
LEARNED = Eq(w[i], Sum(x[mu, i] * u[mu], (mu, 1, P)))
HEARD, SENT = (Sum(x[mu, i] * v[i], (i, 1, N)) for v in (w, s))
PAIR = {1: Rational(1, 2), 2: Rational(1, 2)}
SYSTEMS = {  # name: what the second state is, what data demand, values
    "half": (w[i] / 2, e[mu], {e: PAIR}),
    "several times": (c * w[i], e[mu], {e: PAIR, c: 3}),
    "shifted by a parameter": (c + w[i] / 2, 0, {c: 1}),
    "shifted site by site": (b[i] + w[i] / 2, 0, {b: PAIR}),
    "shifted, with targets": (b[i] - w[i], e[mu], {b: PAIR, e: PAIR}),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_rescaling_is_found_where_both_analyses_agree(name):
    second, demanded, values = SYSTEMS[name]
    system = System([LEARNED, Eq(s[i], second), Eq(HEARD, SENT + demanded)])
    values = {alpha: Rational(1, 2), **values}
    right, naive = (float(theory.solve(values)[average(w[i] ** 2)]) for theory in (system.cavity(), system.naive()))
    agree = naive == pytest.approx(right, rel=1e-9)
    assert system.symmetry().found == agree == ("shifted" not in name)


def test_an_obstacle_is_a_law_that_holds_the_message():
    """At fixed fields a field is what it was: the law of a squared loss is what a factor changes."""
    from symcavity.derivations import power_laws

    assert str(power_laws.problem.symmetry()).endswith("law of a datum: lambda[mu] = -h[mu] is not left as it is.")
