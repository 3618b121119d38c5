"""Fresh sites: averages over sites that took no part, whose fields nothing of their own comes back in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sympy import Add, Dummy, Expr, Mul, S, Sum, Symbol, sign
from sympy.core.relational import Relational

from symcavity.algebra.gathering import gathered
from symcavity.algebra.wedges import by_angles
from symcavity.errors import DeclarationError, UnsupportedLaw
from symcavity.method.average import ParameterBook, at_index, field_covariance
from symcavity.method.close import over_sites
from symcavity.method.identify import field_of_site
from symcavity.method.tidy import tidy_arguments
from symcavity.model.averages import Average, average, fresh
from symcavity.model.equations import Equation
from symcavity.model.fields import FieldBook, RandomField, extract_fields
from symcavity.model.joined import join_fields
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Field, Quenched, SiteQuantity, site_quantities
from symcavity.model.site_sums import free_kind
from symcavity.model.system import System
from symcavity.sites.branching.averages import SiteEnsemble, cholesky
from symcavity.sites.branching.branches import Branch
from symcavity.sites.branching.solution import Region, SiteSolution
from symcavity.sites.linear import LinearEnsemble
from symcavity.sites.quenched_laws import quenched_average


@dataclass(frozen=True)
class FreshField:
    """A field of a fresh site.

    Attributes
    ----------
    declared : RandomField
    definition : Expr
        The sum over fresh couplings that it is.
    """

    declared: RandomField
    definition: Expr


@dataclass(frozen=True)
class FreshSite:
    """What is asked of a fresh site, in its fields and quenched parameters.

    Attributes
    ----------
    kind : Kind
    body : Expr
        In the placeholders of the fields, and in quenched parameters.
    fields : tuple of RandomField
    drawn : mapping
        By what a label is drawn on: what that is in the fields.
    """

    kind: Kind
    body: Expr
    fields: tuple[RandomField, ...]
    drawn: Mapping[SiteQuantity, Expr]

    def covariance(self) -> dict[tuple[Symbol, Symbol], Expr]:
        """The covariances of the fields over fresh couplings, in averages over those that send."""
        out: dict[tuple[Symbol, Symbol], Expr] = {}
        written = [FreshField(f, field_of_site(f, f.emission)) for f in self.fields]
        for k, a in enumerate(written):
            for b in written[k:]:
                book = ParameterBook()
                found = at_index(book.close(field_covariance(a, b)), self.kind).xreplace(book.meanings)
                out[a.declared.symbol, b.declared.symbol] = out[b.declared.symbol, a.declared.symbol] = found
        return out


def fresh_average(system: System, declared: Expr, closed: Callable[[Expr], Expr]) -> Expr:
    """Average an expression of a fresh site over its fields, its labels and its quenched parameters.

    Parameters
    ----------
    system : System
    declared : Expr
        In sums over couplings, and in the quenched parameters of one site.
    closed : callable
        Gives an average over sites that took part in the order parameters.

    Raises
    ------
    DeclarationError, UnsupportedLaw
        For states of the site, sums that are vectors, and states that move.
    """
    numbers = {a: Dummy("m", real=True, nonnegative=a.is_nonnegative) for a in declared.atoms(Average)}
    site = read_fresh(system, declared.xreplace(numbers))
    covariance = _closed_covariance(site, closed)
    found = tidy_arguments(by_angles(gathered(quenched_average(_over_labels(site, site.body, covariance)))))
    return found.xreplace({mark: closed(a) for a, mark in numbers.items()})


def _closed_covariance(site: FreshSite, closed: Callable[[Expr], Expr]) -> dict[tuple[Symbol, Symbol], Expr]:
    """The covariances in order parameters, and in the parameters of the fresh site itself, such as its variance."""
    found = site.covariance()
    known = {a: closed(a) for value in found.values() for a in over_sites(value)}
    return {ends: value.xreplace(known) for ends, value in found.items()}


def fresh_claims(system: System, declared: Iterable[Expr], closed: Callable[[Expr], Expr]) -> list[Equation]:
    """The covariances of the fields of fresh sites that some expressions are about, each once."""
    claims: dict[Expr, Equation] = {}
    for expr in declared:
        site = read_fresh(system, expr.xreplace({a: Dummy(real=True) for a in expr.atoms(Average)}))
        by_symbol = {f.symbol: f for f in site.fields}
        for (a, b), value in _closed_covariance(site, closed).items():
            meaning = average(fresh(by_symbol[a].as_sum * by_symbol[b].as_sum))
            claims.setdefault(meaning, Equation(meaning, quenched_average(value)))
    return list(claims.values())


def read_fresh(system: System, declared: Expr) -> FreshSite:
    """Read an expression of a fresh site."""
    where = f"fresh({declared!s:.80})"
    kind = free_kind(declared, where)
    if kind is None or system.time is not None:
        raise UnsupportedLaw(
            f"{where} is not a quantity of one site, or its site moves in time.",
            "fields of one site that do not depend on time",
        )
    law, book = system.laws[kind], FieldBook()
    body = declared.replace(lambda e: isinstance(e, Relational) and e.rhs.has(Sum), lambda e: e.func(e.lhs - e.rhs, 0))
    body = extract_fields(body, kind, book, where)
    if states := [q for q in site_quantities(body) if not isinstance(q.family, Quenched)]:
        raise DeclarationError(
            f"{states[0]} in {where} is a state of a {kind} that took part: it is fixed with the others.",
            "fields of the site, sums such as " + ", ".join(str(f.as_sum) for f in law.fields) + ", and its quenched "
            "parameters",
        )
    sums = {f.symbol: f.as_sum for f in law.fields}
    told = {e.lhs: e.rhs.xreplace(sums) for e in law.equations}
    labels = [q.family for q in site_quantities(body, Quenched) if q.family.given is not None]
    drawn = {label.given: extract_fields(told[label.given], kind, book, where) for label in labels}
    read = [body, *(r.lhs - r.rhs for r in sorted(body.atoms(Relational), key=str)), *drawn.values()]
    gone = join_fields(book, kind, read)
    known = {f.coupling.family for f in system.fields}
    for f in book.all(kind):
        if f.coupling.family not in known:
            raise DeclarationError(
                f"{f.coupling} in {where} stands in no sum of the declaration.", ", ".join(sorted(map(str, known)))
            )
        if f.components or f.inner:
            raise UnsupportedLaw(
                f"{f.as_sum} in {where} is a vector field.", "fields that are numbers, also one component by its number"
            )
    body = _by_signs(body, {f.symbol for f in book.all(kind)})
    fields = sorted(book.all(kind), key=lambda f: bool(f.states()))  # those of teachers first: the others are inner
    return FreshSite(kind, body.xreplace(gone), tuple(fields), {u: e.xreplace(gone) for u, e in drawn.items()})


def _by_signs(body: Expr, fields: Collection[Symbol]) -> Expr:
    """A product of fields that is compared with zero, by signs: polyhedra have sides that are planes."""

    def planar(test: Relational) -> Expr:
        factors = Mul.make_args(test.lhs)
        heard = [f for f in factors if f.has(*fields) and not isinstance(f, sign)]
        return test.func(test.lhs.xreplace({f: sign(f) for f in heard[:-1]}), S.Zero)

    return body.replace(lambda e: isinstance(e, Relational) and e.lhs.is_Mul and e.rhs == 0, planar)


def _over_labels(site: FreshSite, body: Expr, covariance: Mapping[tuple[Symbol, Symbol], Expr]) -> Expr:
    """The average over the fields, summed over the values of labels of a declared law."""
    held = [body, *(value for ends, value in covariance.items() if body.has(*ends))]
    labels = (q for e in held for q in site_quantities(e, Quenched) if q.family.values and q.family.low is None)
    label = next(labels, None)
    if label is not None:
        law = label.family.law.args
        at = ({ends: value.xreplace({label: v}) for ends, value in covariance.items()} for v, _ in law)
        rows = zip(law, at, strict=True)
        return sum((_over_labels(site, w * body.xreplace({label: v}), there) for (v, w), there in rows), S.Zero)
    for q in site_quantities(body, Quenched):
        if q.family.low is not None and q.family.given is not None and not body.has(q.family.given):
            return _over_labels(site, q.family.weight(q) * body, covariance)  # summed with averages over parameters
    return over_fields(site, body.xreplace(dict(site.drawn)), covariance)


def over_fields(site: FreshSite, body: Expr, covariance: Mapping[tuple[Symbol, Symbol], Expr]) -> Expr:
    """The average over Gaussian fields: moments of polynomials, probabilities of polyhedra, or integrals."""
    heard = [f.symbol for f in site.fields if body.has(f.symbol)]
    if not heard:
        return body
    mark, kind = {f: Field(f"h_{k}", site.kind.index).at_site() for k, f in enumerate(heard, 1)}, site.kind
    asked = body.xreplace(mark)
    plain = _solution(heard, [mark[f] for f in heard], heard)
    moments = LinearEnsemble(kind, plain, tuple(heard), dict(covariance), {})
    if (found := moments.by_pairings(asked)) is not None:
        return found
    lower = cholesky([[covariance[a, b] for b in heard] for a in heard])
    lengths = {Dummy(f"l_{k}", positive=True): lower[k, k] for k in range(len(heard))}
    for k, length in enumerate(lengths):
        lower[k, k] = length
    units = [Dummy(f"e_{k}", real=True) for k in range(len(heard))]
    values = [Add(*(lower[r, c] * units[c] for c in range(r + 1))) for r in range(len(heard))]
    independent = {(a, b): S.One if a == b else S.Zero for a in units for b in units}
    standard = replace(_solution(values, [mark[f] for f in heard], units), regions=())
    return SiteEnsemble(kind, standard, tuple(units), independent, {}).over_fields(asked).xreplace(lengths)


def _solution(values: Sequence[Expr], states: Sequence[SiteQuantity], fields: Sequence[Symbol]) -> SiteSolution:
    """A site whose states are functions of its fields, without a law of their own."""
    known = dict(zip(states, values, strict=True))
    return SiteSolution(fields[-1], tuple(states), (Region(None, None, known),), (Branch(dict(known), ()),))
