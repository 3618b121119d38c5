"""Two sites at once: how the fluctuations of two sites are correlated where the couplings are given.

Two new sites hear each other: through their coupling, and through all others.  What one sends shifts the other's field
by an amount of order ``1/sqrt(N)``, and their fields fluctuate together, as what all others send does.  So to leading
order the covariance ``C`` of two sites, and the response ``R`` of one to the other, are

    G_uv = L_u X_uv L_v,    X_uv = x_uv + sum over g, g' of x_ug G_gg' x_g'v,

with ``G = [[C, R], [R^T, 0]]``, ``L`` the same of a single site, and the couplings ``x`` between what a site sends and
the field that it shifts.  Squared and summed over all sites, ``N T = sum over u, v of G_uv G_uv``, with couplings that
are independent of all that they multiply,

    T = P + P W T,    P = <L L> of each kind,    W = N <x x>,

which is linear in the few numbers ``T``.  The doubled system needs no symmetry of the couplings.  Couplings whose
variance is a product of what belongs to one site each are those of one variance, times a scale of either site: the
scales belong to what is sent and to what is heard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sympy import Add, Expr, KroneckerDelta, S, Symbol

from symcavity.errors import DeclarationError, UnsupportedLaw
from symcavity.method.average import coupling_covariance, message_response
from symcavity.method.close import kind_of_body
from symcavity.method.observed_sums import without_fields
from symcavity.method.pair_ends import Leg, Two, in_scales, scales, weighed
from symcavity.method.pair_given import GivenFields
from symcavity.method.reach import Reach
from symcavity.method.theory import Theory
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.equations import Equation
from symcavity.model.families import families
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind, N, in_units_of_n
from symcavity.model.quantities import Family, Quenched, SiteQuantity, site_quantities
from symcavity.model.varied import varied_families
from symcavity.record.order_parameters import OrderParameter

EXAMPLE = "solution.dimension(w, over=[xi])"
OTHER = "another over=, or sim.dimension(...) of instances"


@dataclass(frozen=True)
class Pair:
    """What two sites have in common where some quenched families vary, and couplings and the others are given.

    Attributes
    ----------
    theory : Theory
    reach : Reach
        What varies, and leads to the observed quantity.
    given : GivenFields or None
        The given parts of the fields of all sites; None where what sites send has no mean over what varies.
    """

    theory: Theory
    reach: Reach
    given: GivenFields | None = None

    @property
    def over(self) -> tuple[Quenched, ...]:
        """What varies."""
        return self.reach.over

    @property
    def observed(self) -> Expr:
        """The quantity of one site whose covariances are asked for."""
        return self.reach.observed

    @property
    def legs(self) -> tuple[Leg, ...]:
        """The ends of what joins two sites."""
        return self.reach.legs

    def beside_means(self) -> Pair:
        """The same where what sites send has a mean over what varies: a part of each field is given with it.

        Raises
        ------
        UnsupportedLaw
            At a temperature.
        """
        if self.theory.system.weights:
            raise _refused("thermal means whose average over the varying parameters does not vanish")
        return replace(self, given=GivenFields(self.theory, self.reach))

    def without(self, still: Sequence[Quenched]) -> Pair:
        """The same where some of what is named does not vary, as it has one value."""
        if not still:
            return self
        left = tuple(q for q in self.over if q not in still)
        return _beside_what_is_given(replace(self, reach=replace(self.reach, over=left), given=None))

    @property
    def kind(self) -> Kind:
        """The kind of the sites that are observed."""
        return kind_of_body(self.observed)

    @cached_property
    def means(self) -> dict[Leg, Expr]:
        """The mean of what each site sends, squared and averaged over sites, in units of the mean square.

        What is given adds to a site's field where these are not zero: then no mean response does for all sites.
        """
        out = {}
        for leg, mean in self._sent_means.items():
            assert leg.sent is not None  # noqa: S101 - it is sent
            out[leg] = self.over_sites(mean * mean) / self.over_sites(self._varied(leg.kind, leg.sent**2))
        return {leg: e for leg, e in out.items() if e != 0}

    @cached_property
    def _sent_means(self) -> dict[Leg, Expr]:
        """The mean over what varies of what a site sends."""
        sent = {weighed(f) for f in self.theory.system.fields}
        return {leg: self._varied(leg.kind, leg.sent) for leg in self.legs if leg.sent is not None and leg.sent in sent}

    @property
    def differs(self) -> bool:
        """Whether the mean of what a site sends depends on what is given of the site."""
        return not self.theory.system.weights and any(map(_of_a_site, self._sent_means.values()))

    def local(self, a: Leg, b: Leg) -> Expr:
        """The covariance or the response of one site: a number, or a function of what is given of the site."""
        if self.given is not None:
            return self.given.local(a, b)
        if a.kind != b.kind or (a.sent is None and b.sent is None):
            return S.Zero
        if a.sent is not None and b.sent is not None:
            both = self._varied(a.kind, a.sent * b.sent)
            balanced = {a.sent, b.sent} & {weighed(f) for f in self.theory.system.fields}  # of mean zero
            return both if balanced else both - self._varied(a.kind, a.sent) * self._varied(a.kind, b.sent)
        sent, heard = (a.sent, b.field) if b.field is not None else (b.sent, a.field)
        assert heard is not None  # noqa: S101 - one of each
        assert sent is not None  # noqa: S101
        answer = message_response(self.theory.system, sent, heard.declared)
        return self._varied(a.kind, scales(heard.declared)[0] * heard.factor * answer) if answer != 0 else S.Zero

    def at_sites(self, row: Two, column: Two) -> Expr:
        """An entry of ``P``: of a kind's sites, in units of N."""
        one, other = (self.local(a, b) for a, b in zip(row, column, strict=True))
        if one == 0 or other == 0:
            return S.Zero
        return in_units_of_n(row[0].kind.size / N) * self.over_sites(one * other)

    def between(self, row: Two, column: Two) -> Expr:
        """An entry of ``W``: the covariance of the two couplings between two sites, times N, in their scales."""
        ends = [_joined(a, b) for a, b in zip(row, column, strict=True)]
        if None in ends:
            return S.Zero
        here, there = Symbol("u_site", integer=True), Symbol("g_site", integer=True)
        x, y = (_at(f, there, here) if back else _at(f, here, there) for f, back in ends)  # type: ignore[misc]
        covariance = coupling_covariance(x, y)
        covariance = covariance.replace(KroneckerDelta, lambda *_: S.Zero)  # two sites are different ones
        turns = [(there, here) if back else (here, there) for _, back in ends]  # type: ignore[misc]
        own = [_scale_at(f, *turn) for (f, _), turn in zip(ends, turns, strict=True)]  # type: ignore[misc]
        return in_units_of_n((N * in_scales(covariance, *own)).cancel())

    def _varied(self, kind: Kind, body: Expr) -> Expr:
        """An average over what varies at a site, at given parameters of the site."""
        if all(q in self.over for q in self.reach.parameters(kind)):
            return self.theory.observable(Average(body))
        return self.theory.inserted[kind].ensemble.at_site(body).xreplace(self.theory.binding)

    @staticmethod
    def over_sites(expr: Expr) -> Expr:
        """The average over sites, of what differs from site to site."""
        return Average(expr) if _of_a_site(expr) else expr

    @cached_property
    def twos(self) -> tuple[Two, ...]:
        """Pairs of ends of one site, in either order: what was joined twice to one other site."""
        found: list[Two] = []
        for k, a in enumerate(self.legs):
            found += [(a, b) for b in self.legs[k:] if a.kind == b.kind]
        return tuple(found)

    @property
    def target(self) -> Two:
        """The pair of ends that is asked for."""
        leg = next(leg for leg in self.legs if leg.sent == self.observed and leg.kind == self.kind)
        return leg, leg

    @cached_property
    def system(self) -> tuple[tuple[Two, ...], list[Expr], list[list[Expr]]]:
        """The pairs that count, the column ``P`` of the target, and the matrix ``P W``.

        Both orders of a pair are one number, as both sites are joined to one and the same.
        """
        rows, target = self.twos, self.target
        column = [self.at_sites(row, target) for row in rows]
        steps = {(a, b): self.at_sites(a, b) for a in rows for b in _ordered(rows) if a[0].kind == b[0].kind}
        edges = {(b, c): self.between(b, c) for b in _ordered(rows) for c in _ordered(rows)}
        matrix = []
        for a in rows:
            line = []
            for c in rows:
                through = [
                    steps[a, b] * edges[b, turned]
                    for b in _ordered(rows)
                    if (a, b) in steps and steps[a, b] != 0
                    for turned in dict.fromkeys((c, c[::-1]))
                    if edges[b, turned] != 0
                ]
                line.append(Add(*through))
            matrix.append(line)
        return reached(rows, column, matrix, rows.index(target))

    @cached_property
    def symbols(self) -> dict[Two, OrderParameter]:
        """A symbol for each number ``T``."""
        taken: set[str] = {str(s) for s in (*self.theory.scaled_unknowns, *self.theory.system.parameters)}
        out: dict[Two, OrderParameter] = {}
        for two in self.system[0]:
            letters = "".join("C" if leg.sent is not None else "R" for leg in two)
            base = f"{letters}_{'_'.join(dict.fromkeys(leg.name for leg in two))}"
            name, number = base, 2
            while name in taken:
                name, number = f"{base}_{number}", number + 1
            taken.add(name)
            out[two] = OrderParameter(name, real=True)
        return out

    @property
    def equations(self) -> list[Equation]:
        """The closed linear equations of the squares of what joins two sites, summed over all sites, over N."""
        rows, column, matrix = self.system
        now = [self.symbols[row] for row in rows]
        return [
            Equation(symbol, first + Add(*(e * other for e, other in zip(line, now, strict=True))))
            for symbol, first, line in zip(now, column, matrix, strict=True)
        ]

    @cached_property
    def variance(self) -> Expr:
        """The variance of the observed quantity of a site, averaged over the sites."""
        return self.over_sites(self.local(*self.target))

    @cached_property
    def square(self) -> Expr:
        """Its square, averaged over the sites."""
        return self.over_sites(self.local(*self.target) ** 2)


def pair_of(theory: Theory, observed: Any, over: Any) -> Pair:
    """Insert two sites, at given couplings, over quenched families that vary.

    Raises
    ------
    DeclarationError
        For families that the theory does not hold, and what is not a quantity of one kind of site.
    UnsupportedLaw
        For the naive analysis, states that move, vector fields, labels drawn on a field that are given, strengths of
        couplings that vary, and couplings whose variance is a sum of what differs from site to site.
    """
    _refuse(theory)
    varied = varied_families(over, theory.system.quenched, EXAMPLE)
    moments = [(f.coupling.family, e) for f in theory.system.fields for e in f.coupling.family.moments]
    for q in varied:
        if held := next((x for x, e in moments if q in families([e], Quenched)), None):
            raise _refused(f"{q} in over=, a strength of {held}, which is given with the couplings")
    body = observed.at_site() if isinstance(observed, Family) else theory.named_by(observed)
    own = theory.system.own(theory.system.rewritten.observable(Average(body)))
    body = without_fields(theory.system, own).args[0]
    kind_of_body(body)
    if body.atoms(Average) or body.has(SiteResponse):
        raise DeclarationError(f"{observed} is not a quantity of one site.", "w, w[i] - t[i], xi[mu]", EXAMPLE)
    found = Pair(theory, Reach(theory, varied, body, kind_of_body(body)))
    return _beside_what_is_given(found)


def first_sent(theory: Theory) -> Expr:
    """What the first kind of sites that are heard sends."""
    return next(f.emission for kind in theory.inserted for f in theory.system.fields if f.sender == kind and f.states())


def _refuse(theory: Theory) -> None:
    if theory.is_naive:
        raise _refused("the naive analysis, whose responses are not those of instances")
    if theory.system.time is not None:
        raise UnsupportedLaw(
            "The states of this theory depend on time.",
            "the dimension of their activity over time, where it is stationary",
            "theory.stationary(values).dimension(x)",
        )
    for f in theory.system.fields:
        if f.components or f.inner:
            raise _refused(f"the vector field {f.as_sum}")
        if isinstance(f.coupling.family.variance, Add):
            raise _refused(f"{f.coupling.family}, whose variance is a sum of what differs from site to site")


def _beside_what_is_given(pair: Pair) -> Pair:
    return pair.beside_means() if _is_mixed(pair) or pair.differs else pair


def _is_mixed(pair: Pair) -> bool:
    """Whether a kind of sites has parameters that vary beside others, or fields, that are given."""
    mixed, reach = False, pair.reach
    for kind in dict.fromkeys(leg.kind for leg in pair.legs):
        own = reach.parameters(kind)
        if labels := [q for q in own if q.given is not None and (q not in pair.over or q.low is not None)]:
            beside = f"over=[{', '.join(map(str, (*pair.over, labels[0])))}]" if labels[0].low is None else OTHER
            raise _refused(f"{labels[0]}, drawn on a field, where it is given or a count", beside)
        mixed |= 0 < sum(q in pair.over for q in own) < len(own) or not all(map(reach.varies, reach.fields(kind)))
    return mixed


def _refused(found: str, instead: str = OTHER) -> UnsupportedLaw:
    return UnsupportedLaw(
        f"The covariances of sites are not derived for {found}.",
        "scalar fields at rest, with variances that are products of what belongs to one site each",
        instead,
    )


def _of_a_site(expr: Expr) -> bool:
    return bool(site_quantities(expr.xreplace(dict.fromkeys(expr.atoms(Average), S.One))))


def _joined(a: Leg, b: Leg) -> tuple[RandomField, bool] | None:
    """The field through which two ends are joined, and whether the second one hears it."""
    for hears, sends, back in ((a, b, False), (b, a, True)):
        if hears.field is not None and sends.sent is not None:
            f = hears.field.declared
            if f.sender == sends.kind and weighed(f) == sends.sent:
                return f, back
    return None


def _at(f: RandomField, hearer: Symbol, sender: Symbol) -> SiteQuantity:
    return f.coupling.xreplace({f.hearer.index: hearer, f.sender_index: sender})


def _scale_at(f: RandomField, hearer: Symbol, sender: Symbol) -> Expr:
    heard, sent = scales(f)
    return heard.xreplace({f.hearer.index: hearer}) * sent.xreplace({f.sender.index: sender})


def _ordered(rows: Sequence[Two]) -> list[Two]:
    return list(dict.fromkeys(two for row in rows for two in (row, row[::-1])))


def reached(
    rows: Sequence[Two], column: list[Expr], matrix: list[list[Expr]], target: int
) -> tuple[tuple[Two, ...], list[Expr], list[list[Expr]]]:
    """The equations on which one of them rests, in the order of the rows."""
    needed, waiting = {target}, [target]
    while waiting:
        here = waiting.pop()
        new = {k for k, e in enumerate(matrix[here]) if e != 0} - needed
        needed |= new
        waiting += sorted(new)
    alive = _alive(needed, column, matrix)
    kept = sorted(needed & alive | {target})
    return tuple(rows[k] for k in kept), [column[k] for k in kept], [[matrix[k][m] for m in kept] for k in kept]


def _alive(needed: set[int], column: list[Expr], matrix: list[list[Expr]]) -> set[int]:
    """Those that are not zero, as nothing feeds them."""
    alive = {k for k in needed if column[k] != 0}
    while new := {k for k in needed - alive if any(matrix[k][m] != 0 for m in alive)}:
        alive |= new
    return alive
