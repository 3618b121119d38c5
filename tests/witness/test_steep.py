"""The witness of infinite averages sees a jump where there is one, and no jump where the law is only steep."""

import pytest
from sympy import Eq, Heaviside, Rational, Sum, Symbol, oo, sign, tanh

from symcavity import Coupling, Feature, N, System, average, i, response
from symcavity.witness.steep import steep

w, j = Feature("w"), Symbol("j", integer=True)
HEARD = Sum(Coupling("J", between=(i, i))[i, j] * w[j], (j, 1, N)) + Rational(1, 4)


@pytest.mark.parametrize(("law", "jumps"), [(sign(HEARD), True), (Heaviside(HEARD), True), (tanh(10 * HEARD), False)])
def test_a_jump_is_seen_and_a_steep_slope_is_none(law, jumps):
    step = System([Eq(w[i], law)]).cavity().derivation["stability.average"]
    (claim,) = step.claims
    assert (claim.rhs == oo) == jumps
    assert [verdict.ok for verdict in steep(step.evidence["theory"], claim.lhs)] == [jumps]


def test_a_square_of_a_jump_with_an_unknown_sign_is_refused():
    from symcavity.errors import UnsupportedLaw

    theory = System([Eq(w[i], sign(HEARD))]).cavity()
    assert theory.observable(average(response(w[i]) ** 2)) == oo
    assert theory.observable(average(-3 * response(w[i]) ** 2)) == -oo
    with pytest.raises(UnsupportedLaw, match="jumps"):
        theory.observable(average(w[i] * response(w[i]) ** 2))
