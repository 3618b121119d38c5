"""Capacity of manifolds: published and independently computed values, Stein's lemma, negative controls."""


import mpmath
import numpy as np
import pytest
import sympy

from symcavity import ManifoldCapacity, alpha, manifold_capacity
from symcavity.derivations import manifold
from symcavity.errors import DeclarationError, ValuesError
from symcavity.evaluate.binding import bind
from symcavity.shapes import (
    Ball,
    CallableShape,
    Ellipsoid,
    ExpressionShape,
    PointCloud,
    Polytope,
    Segment,
    TwoPoints,
)
from symcavity.shapes.base import WHOLE

EXACT = [
    (
        Ball(2, "0.5"),
        0,
        {
            "alpha": "0.949860290487784360625285235974",
            "touching": "0.6708203932499369089227521006",
            "fully_supporting": "0.05278640450004206071816526625",
            "S_w": "0",
        },
    ),
    (
        Ball(5, 1),
        0,
        {
            "alpha": "0.333333333333333333333333333333",
            "touching": "0.9244131815783875620503567023",
            "fully_supporting": "0.03779340921080621897482164884",
            "S_w": "0",
        },
    ),
    (
        Ball(5, 1),
        "0.5",
        {
            "alpha": "0.237566017581866176763170048110",
            "touching": "0.8979008087997322180543039168",
            "fully_supporting": "0.08845623932428316504961192421",
            "S_w": "0.1592226103043858358367499047",
            "mean_lambda": "16.83742498491639019856120213",
            "mean_lambda_sq": "346.2402610619491316395919459",
        },
    ),
    (
        Ball(1, 1),
        "0.5",
        {
            "alpha": "0.587934160713582609188894682487",
            "touching": "0.4618218630482956456294123289",
            "fully_supporting": "0.4072522635599706436778279695",
            "S_w": "0.2496041149998410444515538677",
            "mean_lambda": "6.803482885133180441930225739",
            "mean_lambda_sq": "77.74434047786698871221540532",
        },
    ),
    (
        TwoPoints("0.5"),
        "0.5",
        {
            "alpha": "0.601631347750461208299846553892",
            "touching": "0.5343829288879656072166603552",
            "fully_supporting": "0.3022975498029710210395780151",
            "S_w": "0.3147551136590471321700393946",
        },
    ),
]
ELLIPSOID = {
    "alpha": 0.4396236165839523716447258,
    "touching": 0.8709585939061734544114577,
    "fully_supporting": 0.03911278152635200045055109,
    "S_w": 0.2325368227835083693818616,
    "mean_lambda": 9.0986922656284167241,
}


@pytest.mark.parametrize(("shape", "kappa", "expected"), EXACT, ids=lambda x: repr(x)[:20])
def test_thirty_digits(shape, kappa, expected):
    got = manifold_capacity(shape, kappa=kappa, dps=30)
    assert got.stderr == 0.0
    assert not got.stderrs
    with mpmath.workdps(40):
        for name, value in expected.items():
            digits = 28 if name == "alpha" else 25
            gap = abs(getattr(got, name) - mpmath.mpf(value))
            assert gap < mpmath.mpf(10) ** -digits * max(1, mpmath.mpf(value)), name


@pytest.mark.parametrize(("shape", "kappa", "expected"), EXACT, ids=lambda x: repr(x)[:20])
def test_double_precision(shape, kappa, expected):
    got = manifold_capacity(shape, kappa=float(kappa))
    assert isinstance(got.alpha, float)
    for name, value in expected.items():
        assert getattr(got, name) == pytest.approx(float(value), rel=2e-13, abs=2e-14), name


def test_more_digits_than_the_references():
    many, fewer = (manifold_capacity(Ball(3, "0.7"), kappa="0.3", dps=dps).alpha for dps in (60, 40))
    with mpmath.workdps(70):
        assert abs(many - fewer) < mpmath.mpf(10) ** -39


@pytest.mark.parametrize("R", ["0.001", "0.25", 1, 7, 1000])
def test_closed_form_of_segments_without_margin(R):
    got = manifold_capacity(Segment(R), dps=25)
    with mpmath.workdps(35):
        exact = mpmath.mpf(1) / 2 + 2 / mpmath.pi * mpmath.atan(mpmath.mpf(sympy.N(sympy.Rational(R), 40)))
        assert abs(1 / got.alpha - exact) < mpmath.mpf(10) ** -24
    assert manifold_capacity(Segment(R)).alpha == pytest.approx(float(1 / exact), rel=1e-13)


def test_one_third_of_a_ball():
    assert manifold_capacity(Ball(5, 1)).alpha == pytest.approx(1 / 3, rel=1e-14)


@pytest.mark.parametrize("kappa", [0, 0.5, 3])
def test_a_point_is_gardners_problem(kappa):
    """1/alpha = int_{-kappa}^inf (z + kappa)^2 Dz, whichever shape the point is written as."""
    k = mpmath.mpf(kappa)
    inverse = mpmath.quad(lambda z: (z + k) ** 2 * mpmath.npdf(z), [-k, 0, 5, 15])
    for shape in (Ball(4, 0), Ellipsoid([0, 0]), TwoPoints(1)):
        got = manifold_capacity(shape, kappa=kappa)
        assert got.alpha == pytest.approx(float(1 / inverse), rel=1e-12)
        assert got.fully_supporting == 0
        assert got.touching == pytest.approx(float(mpmath.ncdf(k)), rel=1e-13)
    cloud = manifold_capacity(PointCloud([[0.0, 0, 1]]), kappa=kappa)
    assert abs(cloud.alpha - float(1 / inverse)) < 4 * cloud.stderr + 1e-6


def test_ellipsoid_reference():
    got = manifold_capacity(Ellipsoid([1, 0.5, 0.25]), kappa=0.5)
    assert got.stderr == 0.0
    for name, value in ELLIPSOID.items():
        assert getattr(got, name) == pytest.approx(value, rel=1e-11), name


@pytest.mark.parametrize(
    ("radii", "kappa", "center"),
    [
        ([1, 0.5], 0.5, 1),
        ([3, 0.8, 0.6], 2, 1),
        ([1, 0.02], 0.7, 1),
        ([1, 1, 1, 0.5, 0.5], 0, 2),
        ([1, 0.7, 0.4, 0.2], 0.5, 1),
    ],
)
def test_integrals_for_ellipsoids_agree_with_sampling(radii, kappa, center):
    shape = Ellipsoid(radii, center=center)
    exact, sampled = (
        manifold_capacity(shape, kappa=kappa),
        manifold_capacity(shape, kappa=kappa, samples=2**15),
    )
    assert exact.stderr == 0
    assert sampled.stderr > 0
    for name in ("alpha", "S_w", "touching", "fully_supporting"):
        assert abs(getattr(exact, name) - getattr(sampled, name)) < 4.5 * sampled.stderrs[name] + 1e-9, name


def test_ellipsoids_become_balls_and_lose_flat_directions():
    ball = manifold_capacity(Ball(3, "0.6"), kappa=0.5)
    assert manifold_capacity(Ellipsoid(["0.6"] * 3), kappa=0.5).alpha == ball.alpha
    assert manifold_capacity(Ellipsoid(["0.6", 0, "0.6", "0.6"]), kappa=0.5).alpha == ball.alpha
    near = manifold_capacity(Ellipsoid([0.6, 0.6, 0.6001]), kappa=0.5).alpha
    assert 0 < ball.alpha - near < 1e-4


def test_twenty_different_radii_are_sampled():
    got = manifold_capacity(Ellipsoid(np.linspace(0.1, 1, 20)), kappa=0.5, samples=4096)
    assert got.samples == 4096
    assert 0 < got.stderr < 3e-3 * got.alpha
    assert got.alpha == pytest.approx(0.13521, abs=5 * got.stderr + 1e-4)


SHAPES = [
    Ball(1, 1),
    Ball(4, "0.8", center="1.3"),
    TwoPoints("0.2"),
    Ellipsoid([1, 0.5]),
    PointCloud(np.column_stack([np.random.default_rng(0).normal(size=(12, 3)), np.ones(12)])),
    PointCloud(np.random.default_rng(1).normal(size=(7, 3)) + np.array([0, 0, 4])),
    Polytope([[1, 1], [-1, 1], [1, -1], [-1, -1]]),
    ExpressionShape(
        sympy.Symbol("c") - (sympy.Symbol("a") ** 4 + sympy.Symbol("b") ** 4) ** sympy.Rational(1, 4),
        sympy.symbols("a b c"),
    ),
]


@pytest.mark.parametrize("kappa", [0, 0.5, 1.5])
@pytest.mark.parametrize("shape", SHAPES, ids=repr)
def test_steins_lemma(shape, kappa):
    """(A.14): 1 + alpha <psi> from the divergence is alpha kappa <lam>, with every regime in it."""
    t = np.random.default_rng(5).normal(size=(20_000, shape.dimension))
    p = shape.project(t, kappa)
    norm = np.square(p.lam_s).sum(axis=1)
    difference = norm - kappa * p.lam + p.psi
    assert abs(difference.mean()) < 4.5 * difference.std() / np.sqrt(len(t))
    got = manifold_capacity(shape, kappa=kappa, samples=None if isinstance(shape, Ellipsoid) else 2**13)
    tolerance = 1e-12 if got.stderr == 0 else 5 * (got.alpha * got.stderrs["mean_psi"] + got.stderrs["S_w"])
    assert 1 + got.alpha * got.mean_psi == pytest.approx(got.S_w, abs=tolerance)
    if kappa == 0:
        assert got.S_w == 0


@pytest.mark.parametrize(
    ("shape", "kappa"), [(Ball(5, 1), "0.5"), (TwoPoints("0.5"), "0.5"), (Ball(2, "0.5"), 0)]
)
def test_without_the_tip_S_w_is_wrong(shape, kappa):
    """Negative control: two regimes only, as in (A.10), leave S^w and the capacity formulas inconsistent."""
    got = manifold_capacity(shape, kappa=kappa, dps=20)
    dropped = got.mean_psi + shape.dimension * got.fully_supporting
    assert abs(1 + got.alpha * got.mean_psi - got.S_w) < 1e-15
    assert abs(1 + got.alpha * dropped - got.S_w) > 0.05


def test_gradient_at_the_tip_instead_of_the_subgradient_is_wrong_too():
    """Negative control: a tip treated as one more touching point has a psi that the divergence refutes."""
    shape, kappa = Ball(3, 1), 0.5
    t = np.random.default_rng(6).normal(size=(100_000, 4))
    p = shape.project(t, kappa)
    wrong = np.where(p.regime == WHOLE, -1.0, p.psi)
    bias = (np.square(p.lam_s).sum(axis=1) - kappa * p.lam + wrong).mean()
    right = (np.square(p.lam_s).sum(axis=1) - kappa * p.lam + p.psi).mean()
    assert abs(right) < 0.02
    assert bias > 0.2


def test_capacity_against_a_double_integral():
    """The ball of D = 2 as an integral over radius and axis, without the closed inner integrals."""
    R, k = 0.7, 0.4
    x, wx = np.polynomial.legendre.leggauss(400)
    radius, wr = 4.5 * (1 + x), 4.5 * wx
    total = 0.0
    for r, w in zip(radius, wr, strict=True):
        low, high = k - r / R, k + R * r
        for a, b, square in (
            (-9.5, low, lambda z, r=r: r**2 + (k - z) ** 2),
            (max(low, -9.5), high, lambda z, r=r: (R * r + k - z) ** 2 / (1 + R**2)),
        ):
            if b > a:
                z, wz = a + (b - a) * (1 + x) / 2, (b - a) / 2 * wx
                total += (
                    w * r * np.exp(-r * r / 2) * (wz @ (square(z) * np.exp(-z * z / 2))) / np.sqrt(2 * np.pi)
                )
    assert manifold_capacity(Ball(2, R), kappa=k).alpha == pytest.approx(1 / total, rel=1e-9)


def test_the_square_is_two_segments():
    """A user's box, as points, as an expression and as a callable: one capacity."""
    a, b, c = sympy.symbols("a b c")
    square = Polytope([[1, 1], [-1, 1], [1, -1], [-1, -1]])
    box = ExpressionShape(c - sympy.Abs(a) - sympy.Abs(b), [a, b, c])
    corners = CallableShape(square.anchor, 3)
    values = [manifold_capacity(shape, kappa=0.5, samples=1024, seed=3) for shape in (square, box, corners)]
    for got in values[1:]:
        for name in ("alpha", "touching", "partially_supporting", "fully_supporting", "mean_lambda"):
            assert getattr(got, name) == pytest.approx(getattr(values[0], name), rel=1e-7), name
        assert got.mean_psi == pytest.approx(values[0].mean_psi, abs=1e-5)


def test_a_dense_polygon_tends_to_its_disc():
    angles = 2 * np.pi * np.arange(256) / 256
    got = manifold_capacity(
        Polytope(np.column_stack([np.cos(angles), np.sin(angles)])), kappa=0.5, samples=4096
    )
    disc = manifold_capacity(Ball(2, 1), kappa=0.5)
    assert got.alpha == pytest.approx(disc.alpha, abs=5 * got.stderr + 1e-3)
    assert got.fully_supporting == pytest.approx(
        disc.fully_supporting, abs=5 * got.stderrs["fully_supporting"] + 1e-3
    )
    # psi of a curved set is not that of its vertices, but its average is.
    assert got.mean_psi == pytest.approx(disc.mean_psi, abs=5 * got.stderrs["mean_psi"] + 1e-3)


def test_scale_and_margin():
    """Doubling a shape halves the margin that matters."""
    one = manifold_capacity(Ball(3, "0.5"), kappa="0.5", dps=25)
    two = manifold_capacity(Ball(3, 1, center=2), kappa=1, dps=25)
    assert abs(one.alpha - two.alpha) < mpmath.mpf(10) ** -24


def test_error_bars_are_honest():
    shape = PointCloud(np.column_stack([np.random.default_rng(0).normal(size=(12, 3)), np.ones(12)]))
    runs = [manifold_capacity(shape, kappa=0.5, samples=512, seed=seed) for seed in range(24)]
    for name in ("alpha", "S_w", "touching"):
        scatter = np.std([getattr(run, name) for run in runs], ddof=1)
        assert 0.6 < scatter / np.mean([run.stderrs[name] for run in runs]) < 1.7


def test_seeds_reproduce():
    shape = Polytope([[1, 0], [-1, 0], [0, 1]])
    first, again, other = (manifold_capacity(shape, samples=256, seed=seed).alpha for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_the_object():
    got = manifold_capacity(Ball(2, 1), kappa="0.5")
    assert isinstance(got, ManifoldCapacity)
    assert got.supporting + got.interior == pytest.approx(1)
    assert got.partially_supporting == 0
    assert got.kappa == "0.5"
    assert got.mean_lambda == pytest.approx(4 / got.alpha)
    assert manifold_capacity(Ball(2, 1)).mean_lambda == np.inf
    with pytest.raises(AttributeError):
        got.alpha = 1


R = sympy.Symbol("R", positive=True)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: manifold_capacity(Ball(2, 1), kappa=-1), ValuesError, "kappa >= 0"),
        (lambda: manifold_capacity(Ball(2, 1), kappa="x"), ValuesError, "kappa"),
        (lambda: manifold_capacity(Ball(2, 1), kappa=float("nan")), ValuesError, "finite"),
        (lambda: manifold_capacity(Ball(2, 1), kappa=R), ValuesError, "real number"),
        (lambda: manifold_capacity(Ball(2, 1), kappa=0.5, dps=30), ValuesError, "float 0.5"),
        (lambda: manifold_capacity(Ball(2, 0.5), dps=30), ValuesError, "declared with a float"),
        (lambda: manifold_capacity(Ball(2, 1), dps=0), ValuesError, "dps"),
        (lambda: manifold_capacity(Ball(2, 1), dps=2.5), ValuesError, "dps"),
        (lambda: manifold_capacity(Ellipsoid([1, 2]), dps=30), ValuesError, "dps <= 15"),
        (lambda: manifold_capacity(PointCloud([[1, 1]]), dps=30), ValuesError, "sampling"),
        (lambda: manifold_capacity(Ball(2, 1), samples=3), ValuesError, "samples"),
        (lambda: manifold_capacity(Ball(2, 1), samples=128, seed="a"), ValuesError, "seed"),
        (lambda: manifold_capacity(Ball(2, R)), ValuesError, "symbols"),
        (lambda: manifold_capacity(np.ones((3, 2))), DeclarationError, "shape"),
    ],
)
def test_bad_values(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_balls_agree_with_double_quadrature():
    """Twelve digits, beside a double adaptive quadrature that is even told where the kinks are."""
    from scipy.integrate import dblquad

    R, k = 1.0, 0.5
    weight = 3 * np.sqrt(np.pi / 2) * np.sqrt(2 * np.pi)

    def density(z, r):
        return r**4 * np.exp(-(r * r + z * z) / 2) / weight

    tip, _ = dblquad(
        lambda z, r: (r * r + (k - z) ** 2) * density(z, r),
        0,
        10,
        -10,
        lambda r: k - r / R,
        epsabs=1e-13,
        epsrel=1e-12,
    )
    side, _ = dblquad(
        lambda z, r: (R * r + k - z) ** 2 / (1 + R * R) * density(z, r),
        0,
        10,
        lambda r: k - r / R,
        lambda r: k + R * r,
        epsabs=1e-13,
        epsrel=1e-12,
    )
    got = manifold_capacity(Ball(5, R), kappa=k)
    assert got.alpha == pytest.approx(1 / (tip + side), rel=1e-11)


@pytest.mark.parametrize("shape", [Ball(5, 1), PointCloud([[1, 0, 1], [-0.5, 0.8, 1.2], [-0.4, -0.9, 0.9]])])
def test_a_theory_with_its_set_verifies_and_finds_what_is_falsified(shape):
    derivation = manifold_capacity(shape, kappa="1/2").theory.derivation
    verification = derivation.verify(20)
    assert verification
    assert not verification.unchecked
    for key in ("closure.q_Lambda", "eliminate.alpha", "work_identity"):
        *first, claim = derivation[key].claims
        wrong = type(claim)(claim.lhs, claim.rhs * sympy.Rational(11, 10))
        assert not all(v.ok for v in derivation.replaced(key, claims=(*first, wrong))[key].verdicts(20)), key


def test_theories_of_different_sets_share_nothing():
    kappa, free = manifold.kappa, manifold.problem.cavity()
    bound = {radius: bind(free, {manifold.g: Ball(2, radius)})[0] for radius in ("1/2", "2")}
    assert not free.binding
    for radius, theory in bound.items():  # one after the other: nothing of the first may be found in the second
        assert type(theory) is type(free)
        expected = manifold_capacity(Ball(2, radius), kappa=1).alpha
        assert float(theory.solve({kappa: 1})[alpha]) == pytest.approx(expected, rel=1e-9)
        assert float(free.solve({kappa: 1, manifold.g: Ball(2, radius)})[alpha]) == pytest.approx(expected, rel=1e-9)
        assert theory.derivation["closed_system"].verdicts(15)[0].ok
