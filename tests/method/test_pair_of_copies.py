"""Two sites of copies that share their data in part: the record is written, and has the numbers of one fit."""

import numpy as np
import pytest
from sympy import Matrix, Rational, Sum, Symbol, symbols
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, i, mu
from symcavity.method.pair_resolvent import _inverse
from symcavity.witness.judge import judge

x, w, e, gamma, half = Coupling("x"), Feature("w"), Quenched("e", mu), Symbol("gamma", positive=True), Rational(1, 2)
loss, weights = (e[mu] - Sum(x[mu, i] * w[i], (i, 1, N))) ** 2 / 2, gamma * Sum(w[i] ** 2, (i, 1, N)) / 2


def test_an_inverse_of_sums_by_numbers():
    letters = symbols("a:16")
    matrix = Matrix(4, 4, [(k + 2) * (s + letters[k - 1]) / (1 + s) for k, s in enumerate(letters)])
    values = dict(zip(letters, map(Rational, range(3, 19)), strict=True))
    found = np.array(_inverse(matrix).xreplace(values).tolist(), dtype=float)
    assert found == pytest.approx(np.linalg.inv(np.array(matrix.xreplace(values).tolist(), dtype=float)), rel=1e-9)


def test_fits_with_masks_of_their_own_have_a_record():
    mask = Quenched("m", mu, law={1: half, 0: half})
    bagged = ConvexProblem(Sum(mask[mu] * loss, (mu, 1, P)) + weights).copies(2, share={mask: 0})
    theory = bagged.cavity()
    record = theory.pair(over=[e], of=bagged["w_1"]).derivation
    assert len(record["pair.resolvent"].claims) > 5
    values = {gamma: half, e: Normal("e", 0, 1)}
    of_one = ConvexProblem(Sum(loss, (mu, 1, P)) + weights).cavity().solve({alpha: Rational(3, 2), **values})
    found = theory.solve({alpha: 3, **values}).dimension(bagged["w_1"], over=[e])  # half of the data are in a fit
    assert float(found) == pytest.approx(float(of_one.dimension(w, over=[e])), rel=1e-9)


def test_resolvents_of_fits_with_penalties_of_their_own_are_judged():
    """Some of them vanish: no instance has an error there."""
    two = ConvexProblem(Sum(loss, (mu, 1, P)) + weights).copies(2, share={gamma: 0})
    assert all(v.ok for v in judge(two.cavity().pair(over=[e], of=two["w_1"]).derivation["pair.resolvent"]))
