"""How much the minimum of a convex problem varies between instances: from the minima of its single sites.

Two copies of a problem share a fraction ``u`` of their random couplings.  The covariance of their minima, per feature,
is the stationary value over the overlaps of the copies of

    V(u) = sum over kinds of N_k/N Cov(M_k, M_k') - sum over couplings of (overlap of emissions)(overlap of messages),

where ``M_k`` is the part of the minimum that one site of a kind adds.  The derivative of ``V`` by an overlap is the
closure of that overlap.  The derivative by ``u`` is the squared step of the martingale that reveals the couplings bit
by bit.  At ``u = 1`` the copies coincide, and ``V(1)`` is the variance.
"""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Add, Expr, KroneckerDelta, Mul, S, Symbol, cancel, expand_mul

from symcavity.errors import UnsupportedLaw
from symcavity.method.average import coupling_covariance
from symcavity.method.theory import Theory
from symcavity.model.averages import Average
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind, N, in_units_of_n
from symcavity.model.quantities import site_quantities
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
        For systems without an objective, the naive analysis, labels that are drawn on a field, vector fields, and
        couplings with a reciprocity.
    """
    check_minimum(theory)
    return {kind: minimum_of(theory, site) for kind, site in theory.inserted.items()}


def variance_of_minimum(theory: Theory) -> Expr:
    """N times the variance between instances of the minimum per feature, as an observable of the theory.

    Couplings and quenched parameters are drawn anew in each instance.  For one coupling between features and data it is
    ``alpha Var(M_d) + Var(M_f) - alpha <lambda**2> <w**2>``.

    Raises
    ------
    UnsupportedLaw
        As :func:`single_site_minima`.
    """
    minima = single_site_minima(theory)
    parts = [in_units_of_n(k.size / N) * (Average(m**2) - Average(m) ** 2) for k, m in minima.items() if m != 0]
    return Add(*parts) - shared_overlaps(theory)


def shared_overlaps(theory: Theory) -> Expr:
    """The overlaps of messages times those of emissions, summed over the couplings, per feature."""
    messages = theory.system.record.messages
    fields = [f for f in theory.system.record.fields if messages[f.symbol] != 0]
    return Add(*(_shared(f, g, messages) for f in fields for g in fields))


def check_minimum(theory: Theory) -> None:
    """Refuse a theory whose minimum is not a sum over sites and couplings; raises UnsupportedLaw."""
    record, supported = theory.system.record, "convex problems that hear scalar fields of their states"
    if record is None:
        raise UnsupportedLaw("A system of equations minimizes nothing, so that no minimum varies.", supported)
    if theory.is_naive:
        raise UnsupportedLaw("The naive analysis drops a feedback and has no minimum.", supported, "problem.cavity()")
    found = [f"the label {label}, drawn on a field" for label in record.labels]
    for f in record.fields:
        if f.components or f.inner:
            found.append(f"the vector field {f.as_sum}")
        elif f.coupling.family.reciprocity != 0:
            found.append(f"{f.coupling.family}, which has a reciprocity")
        elif not f.states():
            found.append(f"{f.as_sum}, a field without states")
    if found:
        raise UnsupportedLaw(
            f"The variance of the minimum is not derived for {found[0]}.",
            supported,
            "a teacher within the residual, Sum(x[mu, i]*(w[i] - t[i]), (i, 1, N)); else the scatter of instances",
        )


def minimum_of(theory: Theory, site: Site) -> Expr:
    """The part of the minimum that one site adds, as :func:`single_site_minima` has it.

    Raises
    ------
    UnsupportedLaw
        If the site hears a field that the objective declares otherwise.
    """
    record, own = theory.system.record, theory.system.own
    total = record.problem.objective.get(site.kind, S.Zero)
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


def matching(site: Site, f: RandomField, sender: Kind, emission: Expr) -> tuple[Heard, Expr]:
    """The field of a site that sums an emission through the coupling of a declared field, and the factor between."""
    for h in site.heard:
        if h.declared.sender == sender and h.declared.coupling.family == f.coupling.family:
            ratio = cancel(emission / h.declared.emission)
            if not site_quantities(ratio):
                return h, ratio
    raise UnsupportedLaw(
        f"The variance of the minimum is not derived: {site.kind.site} does not hear {emission} as one field.",
        "convex problems whose sites answer through the fields that the objective declares",
    )


def feedback(field: Heard, site: Site) -> Expr:
    """What the site's own trained emissions add to a field, at the mean self-couplings."""
    return Add(*(site.means[k.symbol] * k.emission for k in field.feedback if k.through.states()))


def _shared(f: RandomField, g: RandomField, messages: Mapping[Symbol, Expr]) -> Expr:
    """The overlap of two messages times that of the two emissions, in units of the couplings' covariance."""
    if (f.hearer, f.sender) != (g.hearer, g.sender):
        return S.Zero
    covariance = coupling_covariance(f.coupling, g.coupling).replace(KroneckerDelta, lambda *_: S.One)
    sizes = f.hearer.size * f.sender.size / N
    parts = []
    for term in Add.make_args(expand_mul(covariance)):
        own = [[q for q in Mul.make_args(term) if _belongs(q, kind)] for kind in (f.hearer, f.sender)]
        rest = Mul(*(q for q in Mul.make_args(term) if q not in own[0] and q not in own[1]))
        heard = Average(Mul(*own[0], messages[f.symbol], messages[g.symbol]))
        sent = Average(Mul(*own[1], f.emission, g.emission))
        parts.append(in_units_of_n((rest * sizes).cancel()) * heard * sent)
    return Add(*parts)


def _belongs(factor: Expr, kind: Kind) -> bool:
    return any(kind in q.site for q in site_quantities(factor))
