"""Sizes of two weights and their length together: an average over both fields, whose multipliers are not unique."""

import numpy as np
import pytest
from sympy import symbols

from symcavity.algebra.joint import JointAverage, JointLaw, LawSymbol, slope
from symcavity.errors import UnsupportedLaw
from symcavity.evaluate.averages.joint_laws import SharedNodes

a, b, curve, q = symbols("a b curve q", positive=True)
NAMES = ["p1", "p2", "s", "w1", "w2", "t1", "t2", "e1", "e2", "i1", "i2"]
p1, p2, s, w1, w2, t1, t2, e1, e2, i1, i2 = (LawSymbol(name, name) for name in NAMES)


def bounds(p, w, t, heard):
    """The pairs of ``a*|w|``, where w hears a field and the slope p of the length."""
    pull = heard - curve * w - b * p
    return [((a + pull) / 2, t - w), ((a - pull) / 2, t + w)]


LAW = JointLaw(
    [p1, p2, s, w1, w2, t1, t2],
    [e1, e2],
    [b * w1 - p1 * s, b * w2 - p2 * s],
    [*bounds(p1, w1, t1, e1 + i1), *bounds(p2, w2, t2, e2 + i2), (s, 1 - p1**2 - p2**2)],
    [],
    [i1, i2],
)


def test_the_law_is_soft_and_then_shorter():
    """The proximal map in closed form over a fine grid; the slope of the length alone is refused, for it is open."""
    nodes = [JointAverage(body, LAW, [q, 0, q]) for body in (w1**2, slope(w1, i1), p1**2)]
    family = SharedNodes(LAW, nodes[0].covariance)
    for node in nodes:
        family.join(node)
    found = [family.average(node, (1.0, 1.0, 1.0, 1.0), ()) for node in nodes[:2]]
    line = np.linspace(-8, 8, 1600)
    fields = np.stack(np.meshgrid(line, line, indexing="ij"))
    weights = np.exp(-(fields**2).sum(axis=0) / 2) * (line[1] - line[0]) ** 2 / (2 * np.pi)
    soft = np.sign(fields) * np.maximum(0, np.abs(fields) - 1)
    kept = soft[0] * np.maximum(0, 1 - 1 / np.maximum(np.sqrt((soft**2).sum(axis=0)), 1e-9))
    right = np.sum(weights * kept**2), np.sum(weights * kept * fields[0])  # the response by parts
    assert found == pytest.approx(right, rel=3e-5)
    with pytest.raises(UnsupportedLaw, match="undetermined"):
        family.average(nodes[2], (1.0, 1.0, 1.0, 1.0), ())


def test_the_law_settles_where_its_corner_is_small_and_far_from_the_middle():
    """A teacher moves the corner away; nodes meet inside of it, for from beside it some of them would miss it."""
    pairs = [[m.xreplace({e1: e1 + curve}) for m in pair] for pair in LAW.pairs]
    moved = JointLaw(LAW.unknowns, LAW.fields, LAW.equations, pairs, [], LAW.sources)
    node = JointAverage(w1**2, moved, [q, 0, q])
    family = SharedNodes(moved, node.covariance)
    family.join(node)
    params = [{a: 0.1, b: 0.2, curve: 0.8, q: 0.8}[s] for s in family.leaves]
    found = family.average(node, tuple(params), ())
    line = np.linspace(-8, 8, 2401)
    fields = np.sqrt(0.8) * np.stack(np.meshgrid(line, line, indexing="ij")) + np.array([0.8, 0])[:, None, None]
    weights = np.exp(-(line[:, None] ** 2 + line**2) / 2) * (line[1] - line[0]) ** 2 / (2 * np.pi)
    soft = np.sign(fields) * np.maximum(0, np.abs(fields) - 0.1)
    kept = soft[0] * np.maximum(0, 1 - 0.2 / np.maximum(np.sqrt((soft**2).sum(axis=0)), 1e-9)) / 0.8
    assert found == pytest.approx(np.sum(weights * kept**2), rel=3e-5)


def test_independent_samples_share_the_code_of_their_law():
    """The law is the same with whatever set of samples; another law has code of its own."""
    other = JointLaw(LAW.unknowns, LAW.fields, LAW.equations, LAW.pairs, [], LAW.sources, 3)
    moved = JointLaw(LAW.unknowns, LAW.fields, [2 * e for e in LAW.equations], LAW.pairs, [], LAW.sources)
    one, two, three = (SharedNodes(law, JointAverage(w1, law, [q, 0, q]).covariance) for law in (LAW, other, moved))
    assert one.at.code is two.at.code
    assert one.at.code is not three.at.code
    assert two.law.scramble == 3 != one.law.scramble
