"""The indexed algebra against brute force: sums written out at N = 3, P = 2 with random integers."""

import random

import pytest
from sympy import Integer, KroneckerDelta, Rational, S, Sum, Symbol

from symcavity import Coupling, Datum, Feature, N, P, Quenched, i, mu
from symcavity.algebra.indexed import (
    NothingMatched,
    Unequal,
    average_pairs,
    contract,
    explicit,
    flatten,
    fresh_index,
    joined,
    separated,
    split,
    substituted,
)
from symcavity.method.average import coupling_covariance, is_coupling
from symcavity.model.quantities import SiteQuantity
from symcavity.record.symbols import ResponseElement

j, k, nu, rho = (Symbol(name, integer=True, positive=True) for name in ("j", "k", "nu", "rho"))
a = Symbol("a", integer=True, positive=True)
x, z = Coupling("x"), Coupling("z", variance=Quenched("l", i)[i] / N)
w, lam, s = Feature("w"), Datum("lam"), Quenched("s", mu)
U = Coupling("U", components=(a, 1, 2))
SIZES = {N: 3, P: 2}


class Values:
    """A random rational for every leaf, always the same one for the same leaf."""

    def __init__(self, seed):
        self.rng = random.Random(seed)  # noqa: S311 - seeded sampling
        self.known = {}

    def __call__(self, leaf):
        return self.known.setdefault(leaf, Rational(self.rng.randint(-9, 9), self.rng.randint(1, 4)))


def brute(expr, values):
    return explicit(expr, SIZES, values, (SiteQuantity, ResponseElement))


def over(body, *limits):
    return Sum(body, *limits)


PRODUCTS = {
    "constant times a sum": 3 * over(w[i], (i, 1, N)),
    "product of two sums with one dummy": over(w[i], (i, 1, N)) * over(w[i] ** 2, (i, 1, N)),
    "square of a sum": over(x[mu, i] * w[i], (i, 1, N)) ** 2,
    "cube of a sum": over(w[i], (i, 1, N)) ** 3,
    "factor that depends on the dummy outside": w[i] * over(x[mu, i] * w[i], (i, 1, N)),
    "nested sums": over(lam[mu] * over(x[mu, i] * w[i], (i, 1, N)), (mu, 1, P)),
    "square of a nested sum": over(over(x[mu, i] * w[i], (i, 1, N)) ** 2, (mu, 1, P)),
    "sum of a product with a sum of the same dummy": over(w[i] * over(x[mu, i] * w[i], (i, 1, N)), (i, 1, N)),
    "sums over both sides": over(lam[mu], (mu, 1, P)) * over(w[i], (i, 1, N)),
    "product of sums of sums": over(w[i] + 1, (i, 1, N)) * (over(lam[mu], (mu, 1, P)) - 2),
    "double limits": over(x[mu, i] * lam[mu] * w[i], (mu, 1, P), (i, 1, N)) * over(w[i], (i, 1, N)),
    "constant summand": over(lam[mu] * over(w[i] + 2, (i, 1, N)), (mu, 1, P)),
    "components": over(over(U[mu, i, a] * w[i], (a, 1, 2)), (i, 1, N)) ** 2,
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("seed", range(3))
def test_flattening_keeps_the_value(name, seed):
    values = Values(seed)
    point = {mu: Integer(2), i: Integer(1)}
    whole = PRODUCTS[name]
    flat = flatten(whole)
    assert brute(substituted(whole, point), values) == brute(substituted(flat, point), values)


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_flat_expression_has_no_sum_inside_a_sum_and_no_index_twice(name):
    flat = flatten(PRODUCTS[name])
    for total in flat.atoms(Sum):
        assert not total.function.has(Sum)
        names = [lim[0] for lim in total.limits]
        assert len(names) == len(set(names))


def test_flattening_moves_constants_out():
    flat = flatten(over(3 * lam[mu] * over(2 * w[i], (i, 1, N)), (mu, 1, P)))
    assert flat.as_coeff_Mul()[0] == 6


@pytest.mark.parametrize("index", [i, mu, a, Symbol("n7")])
def test_a_fresh_index_is_new_and_of_the_same_kind(index):
    taken = {index}
    for _ in range(8):
        new = fresh_index(index, taken)
        assert new.name not in {t.name for t in taken}
        assert new.assumptions0 == index.assumptions0
        taken.add(new)


CONTRACTIONS = {
    "one delta, two sums": over(KroneckerDelta(mu, nu) * lam[mu] * lam[nu], (mu, 1, P), (nu, 1, P)),
    "delta written the other way": over(
        KroneckerDelta(nu, mu) * lam[mu] * lam[nu] ** 2, (mu, 1, P), (nu, 1, P)
    ),
    "delta with a free index": over(KroneckerDelta(mu, nu) * x[nu, i] * lam[mu], (nu, 1, P)),
    "two deltas": over(
        KroneckerDelta(mu, nu) * KroneckerDelta(i, j) * x[mu, j] * w[i] * lam[nu],
        (mu, 1, P),
        (nu, 1, P),
        (i, 1, N),
        (j, 1, N),
    ),
    "a chain of deltas": over(
        KroneckerDelta(i, j) * KroneckerDelta(j, k) * w[i] * w[j] * w[k], (i, 1, N), (j, 1, N), (k, 1, N)
    ),
    "a delta that leaves a constant": over(KroneckerDelta(mu, nu), (mu, 1, P), (nu, 1, P)),
    "a delta of free indices": KroneckerDelta(i, j) * over(lam[mu] * x[mu, i], (mu, 1, P)),
    "sum and rest": over(KroneckerDelta(mu, nu) * lam[mu] * lam[nu], (mu, 1, P), (nu, 1, P)) + 5 * w[i],
    "components": over(KroneckerDelta(a, 2) * over(U[mu, i, a], (i, 1, N)), (a, 1, 2)),
}


@pytest.mark.parametrize("name", CONTRACTIONS)
@pytest.mark.parametrize("free", [(1, 1, 1), (2, 1, 3), (1, 3, 3)])
def test_contraction_keeps_the_value(name, free):
    whole = CONTRACTIONS[name] if name != "components" else flatten(CONTRACTIONS[name])
    point = dict(zip((mu, i, j), map(Integer, free), strict=True))
    values = Values(5)
    assert brute(substituted(whole, point), values) == brute(substituted(contract(whole), point), values)


@pytest.mark.parametrize("name", [n for n in CONTRACTIONS if n != "a delta of free indices"])
def test_contraction_leaves_no_delta_that_a_sum_could_take(name):
    whole = CONTRACTIONS[name] if name != "components" else flatten(CONTRACTIONS[name])
    assert not contract(whole).has(KroneckerDelta)


def test_a_wrong_contraction_is_seen():
    whole = CONTRACTIONS["one delta, two sums"]
    wrong = over(lam[mu], (mu, 1, P)) ** 2  # the delta dropped, both sums kept
    assert brute(whole, Values(5)) != brute(wrong, Values(5))


def test_rules_that_match_nothing_raise():
    with pytest.raises(NothingMatched):
        contract(over(w[i], (i, 1, N)))
    with pytest.raises(NothingMatched):
        average_pairs(over(w[i], (i, 1, N)), is_coupling, coupling_covariance)
    with pytest.raises(ValueError, match="beyond the second"):
        average_pairs(over(x[mu, i], (i, 1, N)) ** 4, is_coupling, coupling_covariance)
    with pytest.raises(ValueError, match="beyond the second"):
        average_pairs(
            over(x[mu, i] ** 2 * w[i], (i, 1, N)) * over(x[mu, i], (i, 1, N)),
            is_coupling,
            coupling_covariance,
        )


def test_an_odd_moment_vanishes_and_a_term_without_couplings_stays():
    mixed = over(x[mu, i] * w[i], (i, 1, N)) + over(w[i], (i, 1, N))
    assert average_pairs(mixed, is_coupling, coupling_covariance) == over(w[i], (i, 1, N))


def test_a_coinciding_index_is_averaged_as_a_square():
    whole = over(x[mu, i] ** 2 * w[i], (i, 1, N))
    found = average_pairs(whole, is_coupling, coupling_covariance)
    assert brute(found, Values(1)) == brute(over(w[i] / N, (i, 1, N)), Values(1))


def test_independent_couplings_do_not_correlate():
    assert average_pairs(over(x[mu, i] * z[mu, i], (i, 1, N)), is_coupling, coupling_covariance) == S.Zero


TWO_INDICES = over(x[mu, i] * x[nu, i] * s[nu] * lam[nu], (i, 1, N), (nu, 1, P))


@pytest.mark.parametrize("site", [1, 2])
def test_a_sum_splits_into_one_site_and_all_others(site):
    whole = TWO_INDICES + 3 * w[i]
    own, others = split(whole, P, mu)
    at = {mu: Integer(site), i: Integer(1)}
    values = Values(site)
    one, rest, both = (brute(substituted(part, at), values) for part in (own, others, whole))
    assert one + rest == both
    by_hand = sum(values(x[site, k]) ** 2 for k in (1, 2, 3)) * values(s[site]) * values(lam[site])
    assert one == by_hand
    assert own.has(lam[mu])
    assert not own.has(nu)


def test_a_sum_over_all_others_joins_to_the_whole():
    _, others = split(TWO_INDICES, P, mu)
    assert joined(others) == TWO_INDICES
    values = Values(2)
    assert brute(substituted(others, {mu: S.One}), values) != brute(substituted(TWO_INDICES, {mu: S.One}), values)


def test_there_is_nothing_to_split():
    with pytest.raises(NothingMatched):
        split(over(w[i], (i, 1, N)), P, mu)
    with pytest.raises(ValueError, match="several sums"):
        split(over(lam[mu] * lam[nu], (mu, 1, P), (nu, 1, P)), P, rho)


def test_unequal_indices():
    assert Unequal(nu, nu) == 0
    assert Unequal(1, 1) == 0
    assert Unequal(1, 2) == 1
    assert Unequal(nu, mu) ** 2 == Unequal(nu, mu)


def test_a_double_sum_separates_where_it_can():
    double = over(w[i] ** 2 * s[mu] * lam[mu], (i, 1, N), (mu, 1, P)) / N
    apart = separated(double)
    values = Values(4)
    assert brute(apart, values) == brute(double, values)
    assert len(apart.atoms(Sum)) == 2
    assert all(len(total.limits) == 1 for total in apart.atoms(Sum))
    tied = over(x[mu, i] * lam[mu], (i, 1, N), (mu, 1, P))
    assert separated(tied) == tied
    free = over(lam[mu], (i, 1, N), (mu, 1, P))
    assert brute(separated(free), values) == brute(free, values)
