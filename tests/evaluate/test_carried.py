"""Nodes in the plane of two fields that are carried on to other parameters: against integrals over the radius."""

import numpy as np
import pytest
from scipy.integrate import quad
from sympy import symbols

from symcavity.algebra.joint import JointAverage, JointLaw, LawSymbol, slope
from symcavity.evaluate.averages.joint_laws import SharedNodes

b, curve, q = symbols("b curve q", positive=True)
p1, p2, s, w1, w2, e1, e2, i1, i2 = (LawSymbol(n, n) for n in ["p1", "p2", "s", "w1", "w2", "e1", "e2", "i1", "i2"])
LAW = JointLaw(
    [p1, p2, s],
    [e1, e2],
    [b * p + curve * p * s / b - e - i for p, e, i in ((p1, e1, i1), (p2, e2, i2))],
    [(s, 1 - p1**2 - p2**2)],
    [(w1, p1 * s / b), (w2, p2 * s / b)],
    [i1, i2],
)
BODIES = w1**2, slope(w1, i1), w1 * w2


@pytest.fixture
def family():
    """The law of ``b*|w| + curve*|w|**2/2 - e.w``, with fields of the variance q."""
    nodes = [JointAverage(body, LAW, [q, 0, q]) for body in BODIES]
    found = SharedNodes(LAW, nodes[0].covariance)
    for node in nodes:
        found.join(node)
    assert [str(leaf) for leaf in found.leaves] == ["b", "curve", "q"]
    return lambda *params: [found.average(node, params, ()) for node in nodes], found


def radial(b, curve, q):
    """The same averages: ``w = e*(1 - b/|e|)/curve`` beyond b, and zero before."""

    def mean(f):
        return quad(lambda r: f(r) * r * np.exp(-r * r / (2 * q)) / q, b, b + 12 * np.sqrt(q), epsabs=1e-14)[0]

    size = mean(lambda r: ((r - b) / curve) ** 2) / 2
    answer = mean(lambda r: (1 + (r - b) / r) / curve) / 2
    return [size, answer, 0.0]


def test_the_same_law_at_other_fields(family):
    """Self-couplings and variances move nodes, and no new ones are made until these do not do any more."""
    averages, found = family
    first = (1.0, 1.0, 1.0)
    assert averages(*first) == pytest.approx(radial(*first), abs=1e-10)
    made = found.plane
    for params in ((1.0, 0.7, 1.1), (1.0, 1.6, 0.8)):
        assert averages(*params) == pytest.approx(radial(*params), abs=1e-10)
        assert found.plane is made
    for params in ((1.0, 0.05, 1.1), (1.0, 1.0, 1e-2), (0.5, 1.0, 1.0)):  # far away, and another cost of lengths
        before = found.plane
        assert averages(*params) == pytest.approx(radial(*params), abs=1e-10)
        assert found.plane is not before


def test_wrong_nodes_are_not_carried(family):
    """Weights that do not sum to one are those of no nodes."""
    averages, found = family
    averages(1.0, 1.0, 1.0)
    made = found.plane
    nodes = made.level(made.settled)
    made._levels[made.settled] = nodes._replace(area=nodes.area * (1 + 1e-6))
    assert averages(1.0, 0.8, 1.0) == pytest.approx(radial(1.0, 0.8, 1.0), abs=1e-10)
    assert found.plane is not made
