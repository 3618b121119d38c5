"""Gaussian averages over polyhedra: the canonical form, products over orthogonal conditions, numbers."""

import mpmath
import numpy as np
import pytest
from sympy import Rational, Symbol, lambdify, sqrt, symbols

from symcavity import NotConverged, ValuesError, phi
from symcavity.algebra.cells import mp_cell
from symcavity.algebra.piecewise import NotPiecewisePolynomial
from symcavity.algebra.polyhedral import CellAverage
from symcavity.algebra.signs import sign_of
from symcavity.evaluate.averages import polyhedra
from symcavity.evaluate.averages.compiler import Compiled
from symcavity.evaluate.averages.polyhedra import np_cell

k, s = Symbol("kappa", positive=True), Symbol("s", positive=True)
z1, z2, z3, z4 = symbols("z_1:5", real=True)
PLANE, SPACE = (z1, z2), (z1, z2, z3)


def test_the_form_is_canonical():
    node = CellAverage(((z1 + z2 - k) / s) ** 2, PLANE, (z1 - 2 * z2) / s, s * (k - 3 * z1 - z2))
    assert node * s**2 == CellAverage((k - z1 - z2) ** 2, PLANE, z1 - 2 * z2, k - 3 * z1 - z2)
    assert node.free_symbols == {k, s}
    assert CellAverage(1, PLANE, z1 - z2, z2 - z1) == 0
    assert CellAverage(1, PLANE, -k, z1 - z2) == 0
    assert CellAverage(z1**2, PLANE) == 1
    assert CellAverage(z2**2, PLANE, k - z1) == phi(0, k)
    with pytest.raises(NotPiecewisePolynomial):
        CellAverage(1, PLANE, z1**2 - z2)
    with pytest.raises(NotPiecewisePolynomial):
        CellAverage(1 / (1 + z1**2), PLANE, z1 - z2, z1 + 2 * z2)


def test_bound_variables_are_not_replaced():
    node = CellAverage(1, PLANE, z1 - 2 * z2, k - 3 * z1 - z2)
    assert node.xreplace({z1: Rational(1)}) == node
    moved = node.xreplace({k: z1})
    assert moved.free_symbols == {z1}
    assert float(moved.xreplace({z1: Rational(1, 2)}).evalf()) == pytest.approx(float(node.subs(k, 0.5).evalf()))


@pytest.mark.parametrize(
    ("body", "zs", "conditions"),
    [
        ((k - z1 + z2) ** 2, PLANE, (k - z1 - z2, k - z1 + z2)),
        (z1**2 + z1 * z2 + 1, PLANE, (k - z1 - z2, k - z1 + z2)),
        (z1**2 * z2 + z2, PLANE, (k - z1 - z2,)),
        (z1**2 + 1, PLANE, (k - z1 - z2, 2 * k - z1 - z2)),
        ((z1 + z2 - k) ** 2 * z3, SPACE, (k - z1 - z2 + z3, k - z2 - z3)),
        (z1 * z3 + 3, SPACE, (k - z1 - z2 + z3, k - z2 - z3)),
    ],
)
def test_orthogonal_conditions_split(body, zs, conditions):
    """Against a seeded sample: fewer variables are left, and the value is the same."""
    node = CellAverage(body, zs, *conditions)
    assert all(len(cell.zs) < len(zs) for cell in node.atoms(CellAverage))
    points = np.random.default_rng(3).standard_normal((len(zs), 2_000_000))
    inside = np.ones(points.shape[1], dtype=bool)
    for condition in conditions:
        inside &= lambdify((*zs, k), condition, "numpy")(*points, 0.7) >= 0
    values = np.where(inside, lambdify((*zs, k), body, "numpy")(*points, 0.7), 0.0)
    gap = float(node.subs(k, Rational(7, 10)).evalf()) - values.mean()
    assert abs(gap) < 4 * values.std() / np.sqrt(len(values))


@pytest.mark.parametrize("depth", [0, 2, 5, 12, 30])
def test_far_into_the_tails(depth):
    """Double against many digits, where the average itself is as small as 1e-190."""
    rows = [[-depth, 1, 0.2], [-0.3 * depth, 0.5, -0.7]]
    terms = {(2, 0): 1.0, (1, 1): 0.5, (0, 0): 1.0}
    with mpmath.workdps(25):
        exact = mp_cell([[mpmath.mpf(c) for c in row] for row in rows], [(p, mpmath.mpf(c)) for p, c in terms.items()])
    value = np_cell(np.array(rows), {p: np.array(c) for p, c in terms.items()})
    assert float(value) == pytest.approx(float(exact), rel=1e-11)


@pytest.mark.parametrize("narrow", [1e-1, 1e-3, 1e-8])
def test_nearly_parallel_sides(narrow):
    rows = [[-0.3, 1, narrow], [0.2, 1, -narrow], [1, -1, 0.5]]
    with mpmath.workdps(20):
        exact = mp_cell([[mpmath.mpf(c) for c in row] for row in rows], [((1, 1), mpmath.mpf(1))])
    assert float(np_cell(np.array(rows), {(1, 1): np.array(1.0)})) == pytest.approx(float(exact), rel=1e-12)


def test_orthants_in_space():
    """The probability of a cone of three sides is known from the angles between them."""
    normals = np.array([[1, 0, 0], [0.6, 0.8, 0], [0.3, 0.2, np.sqrt(1 - 0.13)]])
    cosines = normals @ normals.T
    exact = 1 / 8 + np.arcsin(cosines[np.triu_indices(3, 1)]).sum() / (4 * np.pi)
    rows = np.column_stack([np.zeros(3), normals])
    assert float(np_cell(rows, {(0, 0, 0): np.array(1.0)})) == pytest.approx(exact, rel=1e-13)


def test_shifted_cones_in_space():
    """Two orders of the conditions are two orders of integration."""
    rows = np.array([[0.7, -1, 0.3, 0.2], [0.2, 0.5, -1, 0.4], [-0.3, 0.1, 0.6, 1.0], [1.0, 0.2, 0.1, -1.0]])
    terms = {(2, 0, 0): np.array(1.0), (0, 1, 1): np.array(-0.3), (0, 0, 0): np.array(0.2)}
    values = [float(np_cell(rows[order], terms)) for order in ([0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0])]
    assert values == pytest.approx([values[0]] * 3, rel=1e-9)


def test_compiled_averages_broadcast():
    node = CellAverage((2 * k - z1) ** 2, PLANE, k - z1 - 2 * z2, k + z1 - 3 * z2)
    margins = np.array([[0.2, 0.5], [1.0, 2.0]])
    values = Compiled(node, "numpy")({k: margins})
    single = [[float(Compiled(node, "mpmath")({k: mpmath.mpf(v)})) for v in row] for row in margins]
    assert values == pytest.approx(np.array(single), rel=1e-12)


def test_limits_are_said():
    wide = CellAverage(1, SPACE, k - z1 - z2, z2 - 2 * z3, z1 + z3)
    with pytest.raises(ValuesError, match="3 fields"):
        Compiled(wide, "mpmath")({k: mpmath.mpf(1)})
    more = CellAverage(1, (*SPACE, z4), k - z1 - z2, z2 - 2 * z3, z1 + z3 - z4, z4 + z1)
    with pytest.raises(ValuesError, match="4 fields"):
        Compiled(more, "numpy")


def test_a_rule_that_is_too_coarse_is_refused(monkeypatch):
    """Negative control: with coarse rules the difference shows, and is not passed over."""
    monkeypatch.setitem(polyhedra.RULES, 2, (1, 2))
    node = CellAverage(z1**2, PLANE, sqrt(3) * z1 - z2 + k, 2 * z1 - z2)
    with pytest.raises(NotConverged):
        Compiled(node, "numpy")({k: 0.3})


def test_cells_of_independent_half_spaces_are_positive():
    z, y, s = Symbol("z", real=True), Symbol("y", real=True), Symbol("s", positive=True)
    wedge = CellAverage(1, (z, y), 1 - z - s * y, 1 - z + s * y)
    assert sign_of(wedge) == 1
    assert sign_of(wedge + s) == 1
    strip = CellAverage(1, (z, y), 1 - z - y, z + y + s, z - 1)  # may be empty, for all that is known
    assert sign_of(strip) is None
    assert strip.is_extended_nonnegative
    t = Symbol("t", real=True)  # parallel where t = 1
    assert CellAverage(1, (z, y), 1 - z - y, 1 + z + t * y).is_extended_positive is None


@pytest.mark.parametrize("count", [1, 2, 3])
def test_slopes_against_difference_quotients(count):
    """Where conditions and coefficients of three cells move at once, in two directions."""
    rng = np.random.default_rng(4 + count)
    rows = rng.normal(size=(3, 2, count + 1))
    powers = [(0,) * count, (2, *(0,) * (count - 1)), (1,) * count]
    terms = {p: rng.normal(size=3) for p in powers}
    changes = [(rng.normal(size=rows.shape), {p: rng.normal(size=3) for p in powers}) for _ in range(2)]
    value, slopes = polyhedra.np_cell_slopes(rows, terms, changes)
    assert value == pytest.approx(np_cell(rows, terms), rel=1e-12)
    for (moved, changed), slope in zip(changes, slopes, strict=True):

        def at(step, moved=moved, changed=changed):
            return np_cell(rows + step * moved, {p: c + step * changed[p] for p, c in terms.items()})

        found = (8 * (at(1e-3) - at(-1e-3)) - at(2e-3) + at(-2e-3)) / 12e-3
        assert slope == pytest.approx(found, rel=1e-6, abs=1e-8)


def test_the_slope_has_the_share_of_the_planes():
    """<1; z > a> falls by the density at a; a condition on parameters alone has no plane."""
    rows, change = np.array([[-0.4, 1.0], [0.5, 0.0]]), np.array([[-1.0, 0.0], [3.0, 0.0]])
    _, (slope,) = polyhedra.np_cell_slopes(rows, {(0,): np.array(1.0)}, [(change, {(0,): np.array(0.0)})])
    assert slope == pytest.approx(-np.exp(-0.08) / np.sqrt(2 * np.pi), rel=1e-13)


def test_cells_that_no_field_meets_are_zero():
    rows = np.array([[[-1.0, 1.0, 0.0], [-1.0, -1.0, 0.0]], [[-1.0, 0.0, 0.0], [0.3, 1.0, 1.0]]])
    assert np_cell(rows, {(0, 0): np.ones(2)}).tolist() == [0.0, 0.0]
