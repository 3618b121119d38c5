"""A convex problem as a saddle: the coordinates in which its closed equations are a monotone map.

Gordon's comparison of Gaussian processes writes the minimum, over N, as the saddle of a function of a few numbers.  A
field of a trained emission, ``h = sum x e``, brings a group of them:

* r >= 0, the deviation of the field, without what the quenched fields that stand beside it explain;
* tau >= 0, with tau/beta the self-coupling of those that hear it; s >= 0, which is r at the saddle;
* beta >= 0, the deviation of the field that comes back to the senders; kappa >= 0, with -kappa/s their self-coupling;
* a covariance c with each quenched field, and a multiplier n of the condition that it is this covariance.

Global variables come with the declaration.  The function, with T the covariances of the quenched fields,

    Phi = beta tau/2 + kappa s/2 - kappa r - n.c  (for each group)
          + < min over the hearer's states of its terms + beta (h - r z - c.T^-1.u)^2 / (2 tau) >
          + < min over the sender's states of its terms + beta z e + kappa e^2/(2 s) + (n - kappa T^-1.c/s).(t e) >
          + kappa c.T^-1.c / (2 s)

is convex in r, tau, s, c and the variables of the problem, and concave in beta, kappa, n and the multipliers.  All that
its slopes need are the single-site averages of the cavity method.  (For one field: C. Thrampoulidis, S. Oymak and
B. Hassibi, Regularized linear regression: a precise analysis of the estimation error, COLT 2015.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from sympy import Add, Expr, KroneckerDelta, Matrix, S, Symbol, factor, sqrt

from symcavity.algebra.joint import JointAverage
from symcavity.method.close import over_sites
from symcavity.method.lagrangian import Lagrangian
from symcavity.method.theory import Theory
from symcavity.method.tidy import pull_constants
from symcavity.model.averages import SiteResponse
from symcavity.model.couplings import correlation_of
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind, N
from symcavity.model.quantities import Global, SiteQuantity, site_quantities
from symcavity.record.order_parameters import OrderParameter

FACTORED = 12  # terms of a sum that is factored


@dataclass(frozen=True)
class Multiple:
    """A statistic that is a known number times one order parameter."""

    factor: Expr
    symbol: OrderParameter


@dataclass(frozen=True)
class FieldStatistics:
    """The statistics of one field of a trained emission, and of the field that comes back.

    Attributes
    ----------
    field : RandomField
        As the system hears it.
    size, answer : Multiple
        The variance of the field; the self-coupling of its hearers, tau/beta.
    back_size, back_answer : Multiple
        Of the field that comes back: beta^2, and the self-coupling of the senders, -kappa/s.
    overlaps, back_answers : tuple of Multiple
        For each quenched field beside it: the covariance c, and what comes back to the senders through it.
    gram : tuple of tuple of Expr
        The covariances T of these quenched fields.
    weight : Expr
        What the coordinates of this group are scaled by, against those of others.
    quenched : tuple of RandomField
        These quenched fields.
    is_apart : bool
        Whether the closures of the saddle hold what the quenched fields leave of the variance, r^2, in place of it.
    """

    field: RandomField
    size: Multiple
    answer: Multiple
    back_size: Multiple
    back_answer: Multiple
    overlaps: tuple[Multiple, ...]
    back_answers: tuple[Multiple, ...]
    gram: tuple[tuple[Expr, ...], ...]
    weight: Expr
    quenched: tuple[RandomField, ...] = ()
    is_apart: bool = False

    def explained(self, covariances: Sequence[Expr]) -> Expr:
        """The part of the variance that quenched fields of such covariances explain."""
        c = Matrix([m.factor * e for m, e in zip(self.overlaps, covariances, strict=True)])
        return (c.T * Matrix(self.gram).inv() * c)[0] if c else S.Zero

    def left_of(self, closures: Mapping[Symbol, Expr]) -> Expr:
        """What the closures of the variance and of the covariances leave of it: no difference of large numbers."""
        found = self.explained([closures[m.symbol] for m in self.overlaps])
        return pull_constants((self.size.factor * closures[self.size.symbol] - found).expand())

    def apart(self, expr: Expr, left: Symbol) -> Expr:
        """An expression with what is left of the variance in place of the variance."""
        size, covariances = self.size, [m.symbol for m in self.overlaps]
        if not expr.has(size.symbol):
            return expr
        out = expr.xreplace({size.symbol: (left + self.explained(covariances)) / size.factor})
        return out.replace(lambda e: _is_plain(e, size.symbol), lambda e: _in_squares(e.expand(), size.symbol))

    @property
    def heard(self) -> tuple[OrderParameter, ...]:
        """The order parameters that the hearers' averages depend on."""
        return (self.size.symbol, self.answer.symbol, *(c.symbol for c in self.overlaps))

    @property
    def sent(self) -> tuple[OrderParameter, ...]:
        """The order parameters that the senders' averages depend on."""
        return (self.back_size.symbol, self.back_answer.symbol, *(a.symbol for a in self.back_answers))


@dataclass(frozen=True)
class SharedNumber:
    """A global variable: its slope is that of the Lagrangian over N, with the sign that makes the map monotone."""

    variable: Global
    slope: Expr
    is_multiplier: bool

    @property
    def is_bounded(self) -> bool:
        """Whether it ranges from zero on."""
        return bool(self.variable.is_nonnegative)


@dataclass(frozen=True)
class Saddle:
    """The coordinates of a convex problem.

    Attributes
    ----------
    groups : tuple of Group
    shared : tuple of SharedNumber
    closures : dict
        By order parameter, the single-site average that it is.
    kinds : dict
        By order parameter, the kind of site that it is an average over.
    record : Lagrangian
        That of the problem.
    """

    groups: tuple[FieldStatistics, ...]
    shared: tuple[SharedNumber, ...]
    closures: Mapping[OrderParameter, Expr]
    kinds: Mapping[OrderParameter, Kind]
    record: Lagrangian

    def depends_on(self, parameter: Symbol) -> bool:
        """Whether the problem has a parameter; one in a condition of ``fixed=`` alone only names a result."""
        statistics = [m for g in self.groups for m in (g.size, g.answer, g.back_size, g.back_answer)]
        statistics += [m for g in self.groups for m in (*g.overlaps, *g.back_answers)]
        numbers = [*self.closures.values(), *(n.slope for n in self.shared), *(m.factor for m in statistics)]
        numbers += [e for g in self.groups for e in (g.weight, *(e for row in g.gram for e in row))]
        ratios = {s for kind in self.kinds.values() for s in kind.ratio.free_symbols}
        return parameter in ratios or any(e.has(parameter) for e in numbers)


def saddle_of(theory: Theory) -> Saddle | None:
    """Return the coordinates of a convex problem as a saddle; None where its fields are not of that form.

    That is so where one site hears several trained fields through the same couplings (matrices), through couplings that
    are correlated, or through couplings whose variance does not factorize into parts of both sites.
    """
    system = theory.system
    if not system.convex or system.record is None or theory.is_naive or theory.decided:
        return None
    if any(value.has(JointAverage) for value in theory.closures.values()):  # a slope is as many averages
        return None
    groups = _groups(theory)
    if groups is None or not _is_complete(theory, groups):
        return None
    kinds = {s: _kind(m) for s, m in theory.order_parameters.items()}
    return _apart(Saddle(groups, _shared(theory), dict(theory.closures), kinds, system.record))


def scales_of(theory: Theory) -> dict[OrderParameter, Expr]:
    """What order parameters of a convex problem are where each statistic of its fields is one, at ratios of one.

    A message may be sent as a multiple of the slope of the terms that hear a field, and that by another one for each
    field: there the one-site problems are convex whatever fields are correlated.  Numbers of sites do not matter.
    """
    convex = theory.system.convex and theory.system.record is not None
    groups = (_groups(theory) or ()) if convex else ()
    ratios = {kind.ratio: S.One for kind in theory.system.kinds}
    found: dict[OrderParameter, Expr] = {}
    for g in groups:
        for m in (g.size, g.answer, g.back_size, g.back_answer):
            found.setdefault(m.symbol, 1 / abs(m.factor.xreplace(ratios)))
    return found


def _is_plain(expr: Expr, size: Symbol) -> bool:
    """Whether an expression is a sum that holds a symbol in rational terms, and in no average."""
    return bool(expr.is_Add and expr.has(size) and expr.is_rational_function(size))


def _in_squares(expr: Expr, size: Symbol) -> Expr:
    """A sum with the factors of what stands beside each power of a symbol: ``(c - T y)**2`` for a sum of its terms."""
    if len(Add.make_args(expr)) > FACTORED:
        return expr
    parts: dict[Expr, list[Expr]] = {}
    for term in Add.make_args(expr):
        own, power = term.as_independent(size, as_Add=False)
        parts.setdefault(power, []).append(own)
    return Add(*(factor(Add(*rows)) * power for power, rows in parts.items()))


def _apart(saddle: Saddle) -> Saddle:
    """The same with r^2 in place of variances: where a field comes close to a quenched one, their difference counts."""
    sizes = [g.size.symbol for g in saddle.groups]
    groups, closures, shared = [], dict(saddle.closures), list(saddle.shared)
    for g in saddle.groups:
        size = g.size.symbol
        if g.overlaps and sizes.count(size) == 1:
            closures[size] = g.left_of(closures) / g.size.factor
            left = g.size.factor * size
            closures = {s: g.apart(e, left) for s, e in closures.items()}
            shared = [replace(n, slope=g.apart(n.slope, left)) for n in shared]
        groups.append(replace(g, is_apart=bool(g.overlaps and sizes.count(size) == 1)))
    return replace(saddle, groups=tuple(groups), shared=tuple(shared), closures=closures)


# -- groups ----------------------------------------------------------------------------------------


def _groups(theory: Theory) -> tuple[FieldStatistics, ...] | None:
    """One group for each field of states that the declaration has."""
    record = theory.system.record
    found: list[FieldStatistics] = []
    for declared in record.fields:
        message = record.messages.get(declared.symbol, S.Zero)
        if not declared.states() or message == 0:
            continue
        group = _group(theory, declared, message)
        if group is None:
            return None
        found.append(group)
    return tuple(found)


def _group(theory: Theory, declared: RandomField, message: Expr) -> FieldStatistics | None:
    there, here = theory.inserted.get(declared.hearer), theory.inserted.get(declared.sender)
    if there is None or here is None or there is here:
        return None
    h = next((h for h in there.heard if h.declared.as_sum == declared.as_sum), None)
    coupling = declared.coupling.family
    backs = [v for v in here.heard if v.declared.coupling.family == coupling and v.declared.sender == declared.hearer]
    message = theory.system.own(message)
    shares = [(v, (theory.system.own(v.declared.emission) / message).cancel()) for v in backs]
    shares = [(v, share) for v, share in shares if share.is_nonzero and not share.has(SiteQuantity)]
    if h is None or len(shares) != 1:
        return None
    ((v, turned),) = shares  # what is sent may be written as a multiple of the slope of the terms
    beside = [u for u in there.heard if u is not h and there.covariance[u.eta, h.eta] != 0]
    if any(u.declared.states() for u in beside):  # matrices
        return None
    size = there.covariance[h.eta, h.eta]
    back = here.covariance[v.eta, v.eta]
    to_there = next((k.symbol for k in h.feedback if k.through == v.declared), None)
    to_here = {k.through: k.symbol for k in v.feedback}
    if to_there is None or {*to_here} != {h.declared, *(u.declared for u in beside)} or len(h.feedback) != 1:
        return None
    weight = _scale(coupling)
    if weight is None:
        return None
    own, other = _profile(size), _profile(back)
    rows: list[Multiple | None] = [
        _multiple(size, own),
        _multiple(turned * there.means[to_there], own),
        _multiple(back / turned**2, other),
        _multiple(here.means[to_here[h.declared]] / turned, other),
    ]
    overlaps, answers = [], []
    for u in beside:
        overlaps.append(_multiple(there.covariance[u.eta, h.eta], own))
        share = _share(u.declared.coupling.family, coupling)
        answers.append(_multiple(here.means[to_here[u.declared]] / (turned * share), other))
    known = [m for m in (*rows, *overlaps, *answers) if m is not None]
    if len(known) < len(rows) + 2 * len(beside):
        return None
    gram = tuple(tuple(_without(there.covariance[a.eta, b.eta], own) for b in beside) for a in beside)
    if any(_profile(e) != 1 for row in gram for e in row):
        return None
    own_size, answer, back_size, back_answer, *others = known
    beside_it = tuple(others[: len(beside)]), tuple(others[len(beside) :])
    fields = tuple(u.declared for u in beside)
    return FieldStatistics(h.declared, own_size, answer, back_size, back_answer, *beside_it, gram, 1 / weight, fields)


def _scale(coupling: Any) -> Expr | None:
    """The variance of a coupling in units of 1/N, without what belongs to its sites."""
    number, rest = (coupling.variance * N).as_independent(SiteQuantity, as_Add=False)
    return None if rest.is_Add else number


def _profile(variance: Expr) -> Expr:
    """What of a variance belongs to the site that hears the field."""
    bare = variance.replace(KroneckerDelta, lambda *_: S.One)
    marked = bare.xreplace(dict.fromkeys(over_sites(bare), S.One))
    return marked.as_independent(SiteQuantity, as_Add=False)[1]


def _without(expr: Expr, profile: Expr) -> Expr:
    """A statistic without what belongs to the site that hears the field."""
    bare = expr.replace(KroneckerDelta, lambda *_: S.One)
    return bare if profile == 1 else (bare / profile).cancel()


def _share(other: Any, own: Any) -> Expr:
    """The covariance of another coupling with one, in units of the variance of the latter."""
    return S.One if other == own else correlation_of(other, own) * sqrt(other.variance / own.variance)


def _multiple(expr: Expr, profile: Expr) -> Multiple | None:
    """A statistic as a number times one order parameter; None where it is another expression."""
    bare = _without(expr, profile)
    found = sorted(bare.atoms(OrderParameter), key=str)
    if len(found) != 1:
        return None
    factor = bare / found[0]
    if factor.has(SiteQuantity, OrderParameter):
        return None
    return Multiple(factor, found[0])


def _is_complete(theory: Theory, groups: Sequence[FieldStatistics]) -> bool:
    """Whether the groups have every order parameter, and no statistic of one kind of site has two coordinates."""
    used: dict[tuple[Kind, OrderParameter], int] = {}
    fields: list[RandomField] = []
    for g in groups:
        there, here = g.field.hearer, g.field.sender
        for place in [*((there, s) for s in g.heard), *((here, s) for s in g.sent)]:
            used[place] = used.get(place, 0) + 1
        fields.append(g.field)
    if any(count > 1 for count in used.values()) or {s for _, s in used} != {*theory.order_parameters}:
        return False
    heard = [(site, a, b) for site in theory.inserted.values() for a, b in combinations(site.heard, 2)]
    tied = [(a.declared, b.declared) for site, a, b in heard if site.covariance[a.eta, b.eta] != 0]
    return not any(a in fields and b in fields for a, b in tied)


# -- global variables ------------------------------------------------------------------------------


def _shared(theory: Theory) -> tuple[SharedNumber, ...]:
    """The global variables, with the slopes of the Lagrangian; of multipliers with the other sign."""
    system = theory.system
    multipliers = {nu for nu, _ in system.record.conditions}
    free = iter(g for g in system.globals if not g.is_bounded)
    found = []
    for parts, partner, closed in zip(system.global_conditions, system.partners, theory.global_equations, strict=True):
        ratio = next(iter(parts)).ratio if len(parts) == 1 else S.One
        if partner is not None:
            (value,) = (e for e in closed.lhs.args if e != partner)
            found.append(SharedNumber(partner, ratio * value, partner in multipliers))
            continue
        variable = next(free)
        turned = (variable in system.record.turned) != (variable in multipliers)
        found.append(SharedNumber(variable, ratio * closed.lhs * (-1 if turned else 1), variable in multipliers))
    return tuple(found)


def _kind(meaning: Expr) -> Kind:
    """The kind of site that an order parameter is an average over."""
    body = meaning.args[0]
    body = body.xreplace({r: r.state for r in body.atoms(SiteResponse)})
    (kind,) = {k for q in site_quantities(body) for k in q.site}
    return kind
