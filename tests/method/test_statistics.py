"""Covariances and self-couplings against exact averages over all signs of the couplings at N = 3, P = 2."""

from itertools import product

import pytest
from sympy import Eq, Rational, S, Sum, Symbol, sqrt

from symcavity import BipartiteSystem, ConvexProblem, Coupling, Datum, Feature, N, P, Quenched, i, mu
from symcavity.algebra.indexed import explicit
from symcavity.method.average import ParameterBook, field_covariance, is_coupling, self_coupling_mean
from symcavity.method.identify import identify
from symcavity.method.insert import insert
from symcavity.method.respond import respond
from symcavity.method.sources import carrier_state
from symcavity.model.averages import SiteResponse
from symcavity.model.kinds import DATUM, FEATURE
from symcavity.model.quantities import SiteQuantity
from symcavity.record.maker import StepMaker
from symcavity.record.symbols import ResponseElement, Source

a = Symbol("a", integer=True, positive=True)
x, u = Coupling("x"), Coupling("u", variance=3 / N)
l, s, y, c = Quenched("l", i), Quenched("s", mu), Quenched("y", mu), Quenched("c", i)
on_feature = Coupling("z", variance=l[i] / N)
on_datum = Coupling("z", variance=s[mu] / N)
on_both = Coupling("z", variance=l[i] * s[mu] / N)
unit = Coupling("z", variance=1)
U = Coupling("U", components=(a, 1, 2))
w, v, lam, xi = Feature("w"), Feature("v"), Datum("lam"), Datum("xi")
W, L = Feature("W"), Datum("L", components=(a, 1, 2))
SIZES = {N: 3, P: 2}
LEAVES = (SiteQuantity, ResponseElement, SiteResponse)
q = Sum(w[i] ** 2, (i, 1, N)) / 2


def margin(coupling):
    return ConvexProblem(q, [Sum(coupling[mu, i] * w[i], (i, 1, N)) >= 1]).kkt()


SYSTEMS = {
    "one coupling": margin(x),
    "variance one": margin(unit),
    "variance by features": margin(on_feature),
    "variance by data": margin(on_datum),
    "variance by both": margin(on_both),
    "label": ConvexProblem(q, [y[mu] * Sum(x[mu, i] * w[i], (i, 1, N)) >= 1]).kkt(),
    "two couplings": ConvexProblem(q, [Sum((x[mu, i] + 2 * y[mu] * u[mu, i]) * w[i], (i, 1, N)) >= 1]).kkt(),
    "two fields of one coupling": ConvexProblem(
        q, [Sum(x[mu, i] * (w[i] + y[mu] * c[i]), (i, 1, N)) >= 1]
    ).kkt(),
    "two states": ConvexProblem(
        q + Sum(v[i] ** 2, (i, 1, N)), [Sum(x[mu, i] * (w[i] - 2 * v[i]), (i, 1, N)) >= 1]
    ).kkt(),
    "affine message": ConvexProblem(Sum(Sum(x[mu, i] * (c[i] - w[i]), (i, 1, N)) ** 2, (mu, 1, P)) + q).kkt(),
    "components": BipartiteSystem(
        [
            Eq(L[mu, a], Sum(U[mu, i, a] * W[i], (i, 1, N))),
            Eq(W[i], c[i] - Sum(Sum(U[mu, i, a] * L[mu, a], (a, 1, 2)), (mu, 1, P))),
        ]
    ),
    "linear with a factor": BipartiteSystem(
        [
            Eq(lam[mu], Sum(x[mu, i] * w[i], (i, 1, N))),
            Eq(w[i], c[i] - l[i] * Sum(x[mu, i] * lam[mu], (mu, 1, P))),
        ]
    ),
}


class Numbers:
    """A rational for each quantity; couplings are signs times the root of their variance."""

    def __init__(self, carrier=None):
        self.known, self.signs, self.carrier = {}, {}, carrier

    def __call__(self, leaf):
        if is_coupling(leaf):
            rule = dict(zip((slot.index for slot in leaf.family.slots), leaf.indices, strict=False))
            return self.signs[leaf] * sqrt(
                explicit(leaf.family.variance.xreplace(rule), SIZES, self, SiteQuantity)
            )
        if isinstance(leaf, ResponseElement):
            message, source = leaf.args
            (at,) = source.indices
            states = [r for r in message.atoms(SiteQuantity) if not isinstance(r.family, Quenched)]
            if all(r.indices[0] == at for r in states):  # the diagonal is the response of single sites
                responses = [
                    SiteResponse(r, self.carrier(at)) if self.carrier(at) else SiteResponse(r) for r in states
                ]
                weights = [explicit(message.diff(r), SIZES, self, SiteQuantity) for r in states]
                return sum(one * self(each) for one, each in zip(weights, responses, strict=True))
        if isinstance(leaf, ResponseElement | SiteResponse):
            return self.known.setdefault(leaf, Rational(len(self.known) * 7 % 11 - 5, 3))
        positive = isinstance(leaf.family, Quenched) and leaf.family.name in ("l", "s")
        number = Rational(len(self.known) * 5 % 7 + 1, 2)
        return self.known.setdefault(leaf, number if positive else number - 2)


def couplings_in(expr):
    """All couplings of an expression, written out."""
    found = set()

    def value(leaf):
        if is_coupling(leaf):
            found.add(leaf)
        return S.One

    explicit(expr, SIZES, value, LEAVES)
    return sorted(found, key=str)


def exact_mean(expr, numbers):
    """The average over all signs of all couplings in the expression."""
    family = couplings_in(expr)
    total = S.Zero
    for signs in product((1, -1), repeat=len(family)):
        numbers.signs = dict(zip(family, signs, strict=True))
        total += explicit(expr, SIZES, numbers, LEAVES)
    return (total / 2 ** len(family)).expand()


PAIRS = [
    (name, side, k, n)
    for name, system in SYSTEMS.items()
    for side in (FEATURE, DATUM)
    for k in range(len(system.laws[side].fields))
    for n in range(len(system.laws[side].fields))
]


def heard(system, kind):
    """The fields of the inserted site with their echoes, as the first three verbs leave them."""
    make = StepMaker()
    return identify(system, respond(system, insert(system, kind, make), make), make).problem.heard


def other_sum(f):
    """The inserted site's field, written again with another index: what it is multiplied by for a second moment."""
    other = Symbol("rho" if f.hearer == FEATURE else "k", integer=True, positive=True)
    body = (f.coupling * f.emission).xreplace({f.hearer.index: S.Zero}).xreplace({f.sender.index: other})
    return Sum(body, (other, 1, f.sender.size))


def own_sum(f):
    body = (f.coupling * f.emission).xreplace({f.hearer.index: S.Zero})
    return Sum(body, f.sender.range)


def declared_self_coupling(system, f, g):
    """The self-coupling through f by the shift of g, from the declared fields: couplings out and back."""
    b = f.sender
    second = Symbol("rho" if b == DATUM else "k", integer=True, positive=True)
    there = g.coupling.xreplace({f.hearer.index: S.Zero}).xreplace({b.index: second})
    weight = system.laws[b].coefficient(g).xreplace({b.index: second})
    source = Source(b, str(system.laws[b].fields.index(g) + 1) if system.laws[b].fields.index(g) else "")
    body = f.coupling.xreplace({f.hearer.index: S.Zero}) * there * weight * ResponseElement(f.emission, source[second])
    return Sum(body, b.range, (second, 1, b.size))


@pytest.mark.parametrize(("name", "side", "k", "n"), PAIRS)
def test_the_covariance_of_cavity_fields_is_their_exact_second_moment(name, side, k, n):
    one, two = (heard(SYSTEMS[name], side)[place] for place in (k, n))
    numbers = Numbers()
    true = exact_mean(own_sum(one.declared) * other_sum(two.declared), numbers)
    found = explicit(S(field_covariance(one, two)), SIZES, numbers, LEAVES)
    assert (S(found) - true).doit().expand() == 0


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("side", [FEATURE, DATUM])
def test_the_mean_self_coupling_is_the_exact_mean_at_any_response_matrix(name, side):
    system = SYSTEMS[name]
    for h in heard(system, side):
        if not h.declared.states():
            assert not h.feedback
        for k in h.feedback:
            g = k.through
            named, index = carrier_state(system, g), g.hearer.index

            def carrier(at, named=named, index=index):
                return named.xreplace({index: at}) if named else None

            numbers = Numbers(carrier)
            true = exact_mean(declared_self_coupling(system, h.declared, g), numbers)
            found = explicit(S(self_coupling_mean(system, k)), SIZES, numbers, LEAVES)
            assert (S(found) - true).doit().expand() == 0


def test_fields_of_independent_couplings_do_not_correlate():
    one, two = heard(SYSTEMS["two couplings"], DATUM)
    assert field_covariance(one, two) == 0


def test_a_wrong_variance_is_seen():
    numbers = Numbers()
    (h,) = heard(SYSTEMS["variance by features"], DATUM)
    (plain,) = heard(SYSTEMS["one coupling"], DATUM)
    true = exact_mean(own_sum(h.declared) * other_sum(h.declared), numbers)
    wrong = explicit(field_covariance(plain, plain), SIZES, numbers, SiteQuantity)
    assert true != wrong


def test_every_field_of_a_side_has_a_name_of_its_own():
    for system in SYSTEMS.values():
        for law in system.laws.values():
            names = [carrier_state(system, f) for f in law.fields]
            assert len(set(names)) == len(names)


def test_equal_averages_share_a_symbol_and_different_ones_do_not():
    book = ParameterBook()
    one = book.close(Sum(w[i] ** 2 / N, (i, 1, N)))
    again = book.close(3 * Sum(w[i] ** 2 / N, (i, 1, N)))
    other = book.close(Sum(l[i] * w[i] ** 2 / N, (i, 1, N)))
    assert again == 3 * one
    assert other != one
    assert one.is_positive
    assert str(book.meanings[one]) == "average(w[i]**2)"
    assert book.close(Sum(l[i] / N, (i, 1, N))).atoms(SiteQuantity) == {l[i]}
