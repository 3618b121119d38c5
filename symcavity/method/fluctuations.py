"""How much the minimum of a convex problem varies between instances: from the minima of its single sites.

Two copies of a problem share a fraction ``u`` of their random couplings.  The covariance of their minima, per feature,
is the stationary value over the overlaps of the copies of

    V(u) = sum over kinds of N_k/N Cov(M_k, M_k') - sum over couplings of (overlap of emissions)(overlap of messages),

where ``M_k`` is the part of the minimum that one site of a kind adds.  The derivative of ``V`` by an overlap is the
closure of that overlap.  The derivative by ``u`` is the squared step of the martingale that reveals the couplings bit
by bit.  At ``u = 1`` the copies coincide, and ``V(1)`` is the variance.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from types import MappingProxyType

from sympy import Add, Expr, KroneckerDelta, S, expand_mul

from symcavity.errors import UnsupportedLaw
from symcavity.method.average import coupling_covariance
from symcavity.method.given_emissions import curvatures, split_by_ends
from symcavity.method.objective_fields import matching
from symcavity.method.observed_sums import in_states
from symcavity.method.theory import Theory
from symcavity.model.averages import Average
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind, N, in_units_of_n
from symcavity.sites.protocol import Heard
from symcavity.sites.site import Site


def single_site_minima(theory: Theory) -> dict[Kind, Expr]:
    """The part of the minimum that one site of each kind adds, in its states and fields.

    A site minimizes its own cost, with its self-couplings as curvature, against its cavity fields: with a message ``m``
    for each field ``h = eta + F*m`` that its cost hears, and an emission ``e`` into each field whose messages come back
    as the force ``v = zeta + F'*e``, the minimum is ``cost + m*F*m/2 - e*(zeta + F'*e/2)``.

    Raises
    ------
    UnsupportedLaw
        For systems without an objective, the naive analysis, vector fields, and couplings with a reciprocity.
    """
    check_minimum(theory)
    return {kind: minimum_of(theory, site) for kind, site in theory.inserted.items()}


def variance_of_minimum(theory: Theory, held: Collection[Kind] = ()) -> Expr:
    """N times the variance between instances of the minimum per feature, as an observable of the theory.

    Couplings and quenched parameters are drawn anew in each instance.  For one coupling between features and data it is
    ``alpha Var(M_d) + Var(M_f) - alpha <lambda**2> <w**2>``.

    What emissions that are given add to ``M`` is in :mod:`symcavity.method.given_emissions`.

    Parameters
    ----------
    theory : Theory
    held : collection of Kind
        The kinds of sites whose parameters are the same in all instances, site by site.

    Raises
    ------
    UnsupportedLaw
        As :func:`single_site_minima` and :func:`symcavity.method.given_emissions.curvatures`.
    """
    minima = single_site_minima(theory)
    bent = [(c.sender, c.value * c.emissions / 2) for c in curvatures(theory, minima)]
    return scatter(minima, bent, {kind: partial(at_given, theory, kind) for kind in held}) - shared_overlaps(theory)


def scatter(
    minima: Mapping[Kind, Expr],
    bent: Sequence[tuple[Kind, Expr]],
    held: Mapping[Kind, Callable[[Expr], Expr]] = MappingProxyType({}),
) -> Expr:
    """The variances of what single sites add to the minimum, summed over all sites, per feature.

    Of a kind whose parameters are the same in all instances, those at the parameters of each site.
    """
    parts = []
    for kind in minima:
        whole = minima[kind] + Add(*(more for sender, more in bent if sender == kind))
        if whole != 0:
            mean = Average(held[kind](whole) ** 2) if kind in held else Average(whole) ** 2
            parts.append(in_units_of_n(kind.size / N) * (Average(whole**2) - mean))
    return Add(*parts)


def at_given(theory: Theory, kind: Kind, body: Expr) -> Expr:
    """The mean of a function of a site at the parameters of the site."""
    return theory.inserted[kind].ensemble.at_site(in_states(theory.system, body)).xreplace(theory.binding)


@dataclass(frozen=True)
class Shared:
    """The overlap of two messages times that of the two emissions, for the couplings of two fields, per feature.

    Attributes
    ----------
    fields : tuple of RandomField
    factor : Expr
    heard : Expr
        The average of the product of the messages.
    sent : Expr
        That of the emissions.
    weights : tuple of Expr
        The factors of the couplings' covariance in these two.
    """

    fields: tuple[RandomField, RandomField]
    factor: Expr
    heard: Expr
    sent: Expr
    weights: tuple[Expr, Expr]


def shared_overlaps(theory: Theory) -> Expr:
    """The overlaps of messages times those of emissions, summed over the couplings, per feature."""
    return Add(*(term.factor * term.heard * term.sent for term in shared_terms(theory)))


def shared_terms(theory: Theory) -> Iterator[Shared]:
    """The terms of this sum; of a covariance of couplings of several terms, one for each."""
    messages = theory.system.record.messages
    fields = [f for f in theory.system.record.fields if messages[f.symbol] != 0]
    for f, g in product(fields, repeat=2):
        if (f.hearer, f.sender) == (g.hearer, g.sender):
            covariance = coupling_covariance(f.coupling, g.coupling).replace(KroneckerDelta, lambda *_: S.One)
            sizes = f.hearer.size * f.sender.size / N
            for term in Add.make_args(expand_mul(covariance)) if covariance != 0 else ():
                at_sender, at_hearer, rest = split_by_ends(term, f.hearer, f.sender)
                heard = Average(at_hearer * messages[f.symbol] * messages[g.symbol])
                sent = Average(at_sender * f.emission * g.emission)
                yield Shared((f, g), in_units_of_n((rest * sizes).cancel()), heard, sent, (at_hearer, at_sender))


def check_minimum(theory: Theory) -> None:
    """Refuse a theory whose minimum is not a sum over sites and couplings; raises UnsupportedLaw."""
    record, supported = theory.system.record, "convex problems that hear scalar fields"
    if record is None and theory.system.weights:
        raise UnsupportedLaw(
            "Of a measure, and of the lowest of several minima, the variance of the free energy is derived alone.",
            "solution.variance(theory.free_energy), and observables of " + supported,
            "simulate(...), and the scatter of its instances",
        )
    if record is None:
        raise UnsupportedLaw("A system of equations has no objective, and so no minimum that could vary.", supported)
    if theory.is_naive:
        raise UnsupportedLaw(
            "The naive analysis leaves out a feedback: its equations do not describe a minimum.",
            supported,
            "problem.cavity()",
        )
    found: list[str] = []
    for f in record.fields:
        if f.components or f.inner:
            found.append(f"the vector field {f.as_sum}")
        elif f.coupling.family.reciprocity != 0:
            found.append(f"{f.coupling.family}, which has a reciprocity")
    if found:
        raise UnsupportedLaw(
            f"The variance of the minimum is not derived for {found[0]}.",
            supported,
            "the scatter of instances",
        )


def minimum_of(theory: Theory, site: Site) -> Expr:
    """The part of the minimum that one site adds, as :func:`single_site_minima` has it.

    Raises
    ------
    UnsupportedLaw
        If the site hears a field that the objective declares otherwise.
    """
    record, own = theory.system.record, theory.system.own
    # a kink is the variable that bounds it, which is linear in the fields wherever the site has a formula
    total = record.problem.objective.get(site.kind, S.Zero).xreplace({kink: b for b, kink in record.auxiliary})
    total -= Add(*(nu * condition.parts.get(site.kind, S.Zero) for nu, condition in record.conditions))
    for f in record.fields:
        message = own(record.messages[f.symbol])
        if f.hearer == site.kind:
            field, ratio = matching(site, f, f.sender, own(f.emission))
            total += message * ratio * feedback(field, site) / 2
            total = total.xreplace({f.symbol: ratio * field.declared.as_sum})
        if f.sender == site.kind and message != 0:
            force, ratio = matching(site, f, f.hearer, message)
            total -= own(f.emission) * ratio * (force.declared.as_sum - feedback(force, site) / 2)
    return own(total)


def feedback(field: Heard, site: Site) -> Expr:
    """What the site's own trained emissions add to a field, at the mean self-couplings."""
    return Add(*(site.means[k.symbol] * k.emission for k in field.feedback if k.through.states()))
