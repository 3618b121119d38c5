"""How much the free energy of a Gibbs measure varies between instances: from the weights of its single sites.

Two copies of a measure that share a fraction ``u`` of their random couplings have replicas of their own.  The
covariance of their free energies is the stationary value over the overlaps of thermal means of

    V(u) = sum over kinds of N_k/N Cov(M_k, M_k') - sum over couplings of (overlap of emissions)(overlap of messages),

as that of two minima is (:mod:`symcavity.method.fluctuations`), with ``M = -log(weight)/beta`` of a site: by Gaussian
integration by parts its derivative by a field is minus the thermal mean that the site sends.  Those that meet in pairs
are joined by one coupling, which both of them hear, and share a half of it each.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from sympy import Add, Expr

from symcavity.errors import UnsupportedLaw
from symcavity.method.fluctuations import at_given, feedback, scatter
from symcavity.method.free_energy import meets
from symcavity.method.theory import Theory
from symcavity.model.averages import Average, LogWeight
from symcavity.model.kinds import Kind
from symcavity.model.laws import Weight
from symcavity.sites.site import Site

SUPPORTED = "Gibbs measures, and lowest minima, of scalar fields of states"


def variance_of_free_energy(theory: Theory, held: Collection[Kind] = ()) -> Expr:
    """N times the variance between instances of the free energy per feature, as an observable of the theory.

    For spins that meet in pairs it is ``Var(log(2*cosh(beta*field)))/beta**2 - q**2/2``.  Of the lowest minimum it is
    the variance of the energy.

    Parameters
    ----------
    theory : Theory
    held : collection of Kind
        The kinds of sites whose parameters are the same in all instances, site by site.

    Raises
    ------
    UnsupportedLaw
        For the naive analysis, minima that are not the lowest ones, and fields of given emissions.
    """
    _refuse(theory)
    weights, sites = theory.system.weights, theory.inserted
    minima = {kind: _minimum(sites[kind], weight) for kind, weight in weights.items()}
    overlaps = [_overlap(theory, sites[kind], weight) for kind, weight in weights.items() if not weight.is_field]
    return scatter(minima, (), {kind: partial(at_given, theory, kind) for kind in held}) - Add(*overlaps)


def _minimum(site: Site, weight: Weight) -> Expr:
    """What one site adds to the free energy: minus the logarithm of its weight over beta, or its lowest energy."""
    if not weight.is_cold:
        return -LogWeight(weight.mean) / weight.beta
    moving, total = [h for h in site.heard if h.declared.states()], weight.energy
    if not weight.is_field:
        gained = (h.factor * (h.declared.as_sum - feedback(h, site) / 2) for h in moving)
        return total - weight.state * Add(*gained)
    forces = [force for _, force in weight.forces]
    return total + Add(*(force * feedback(h, site) for force, h in zip(forces, moving, strict=True))) / 2


def _overlap(theory: Theory, site: Site, weight: Weight) -> Expr:
    """The overlap of what a site with states sends, times those of what it hears."""
    moving = [h for h in site.heard if h.declared.states()]
    terms = []
    for h in moving:
        once = 2 if meets(theory.system, h.declared) else 1
        terms += [h.factor * g.factor * site.covariance[h.eta, g.eta] * weight.mean**2 / once for g in moving]
    return site.kind.ratio * Add(*map(Average, terms))


def _refuse(theory: Theory) -> None:
    weights, found = theory.system.weights, ""
    given = [f for f in theory.system.fields if not f.states()]
    if theory.is_naive:
        found = "the naive analysis"
    elif any(w.is_local for w in weights.values()):
        found = "minima that are not the lowest ones"
    elif given:
        found = f"{given[0].as_sum}, a field of given emissions"
    elif vectors := [f for f in theory.system.fields if f.components or f.inner]:
        found = f"the vector field {vectors[0].as_sum}"
    if found:
        raise UnsupportedLaw(
            f"The variance of the free energy is not derived with {found}.",
            SUPPORTED,
            "sim.free_energy.samples, those of instances",
        )
