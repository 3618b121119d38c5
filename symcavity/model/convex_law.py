"""The law of a site whose constraint is a convex set: a vector field, a multiple of its anchor point, and the rest."""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Add, Dummy, Expr, S, Symbol

from symcavity.errors import UnsupportedLaw
from symcavity.model.equations import Equation
from symcavity.model.kinds import Kind
from symcavity.model.laws import Law
from symcavity.model.quantities import Field, Quenched, SiteQuantity, site_quantities
from symcavity.model.support import Anchor, Components, Support, SupportFunction


@dataclass(frozen=True)
class ConvexLaw:
    """A law that is given by a convex set, taken apart.

    Attributes
    ----------
    g : SupportFunction
    components : Components
        The component index and its range.
    V, Lam, lam : SiteQuantity
        The vector field, the vector multiplier, the multiplier.
    scalar : tuple of Expr
        The remaining equations, in which g(V) is replaced by ``level``.
    level : Symbol
        Stands for g(V).
    parts : dict
        The vectors that the site hears, each with its factor in V; V itself where it is the only one.
    """

    g: SupportFunction
    components: Components
    V: SiteQuantity
    Lam: SiteQuantity
    lam: SiteQuantity
    scalar: tuple[Expr, ...]
    pairs: tuple[tuple[Expr, Expr], ...]
    level: Symbol
    law: Law
    parts: dict[SiteQuantity, Expr]


def holds_set(law: Law) -> bool:
    """Whether a law is given by a convex set."""
    return any(e.difference.has(Anchor) for e in law.equations)


def regime_of(kind: Kind) -> SiteQuantity:
    """How the set of a site touches, as a quantity of the site.

    It is 0 where it does not touch, 1 at one anchor point, 2 on a proper face, 3 as a whole, and 4 where slack
    holds the multiplier at its bound.
    """
    return Field("regime", index=kind.index).at_site()


def heard_vector(law: Law) -> tuple[SiteQuantity, dict[SiteQuantity, Expr], list[Equation]] | None:
    """The vector that a law hears, the fields that it is a combination of with their factors, and what says so.

    None where the site hears something else as well, or another combination of its fields.
    """
    carriers = [law.carrier(f) for f in law.fields]
    told = zip(carriers, law.fields, strict=True)
    named = bool(carriers) and all(e.rhs == f.symbol and isinstance(e.lhs, SiteQuantity) for e, f in told)
    if not (named and all(f.components for f in law.fields)):
        return None
    if len(carriers) == 1:
        return carriers[0].lhs, {carriers[0].lhs: S.One}, carriers
    heard = [e.lhs for e in carriers]
    users = [e for e in law.equations if e not in carriers and e.difference.has(*heard)]
    users = users if not any(p.has(*heard) for p in law.pairs) else []
    if len(users) != 1 or not isinstance(users[0].lhs, SiteQuantity):
        return None
    parts = {q: users[0].rhs.diff(q) for q in heard}
    combined = Add(*(c * q for q, c in parts.items()))
    if any(c == 0 or c.has(SiteQuantity) for c in parts.values()) or (users[0].rhs - combined).expand() != 0:
        return None
    return users[0].lhs, parts, [*carriers, users[0]]


def read_law(law: Law) -> ConvexLaw:
    """Take the law of a side apart.

    Raises
    ------
    UnsupportedLaw
        If it is not a vector field, a multiple of its anchor point, and a scalar law between multiplier and g.
    """
    text = f"The law of {law.kind.site}"
    own = heard_vector(law)
    if own is None:
        raise UnsupportedLaw(
            f"{text} hears a vector together with other fields.",
            "one vector a site, a sum over the sites of one kind or a combination of such sums",
            "one vector of more components: the set of points (s, 0) and (0, r) of two sets that share a bound",
        )
    V, parts, carriers = own
    values = {node for e in law.equations for node in e.difference.atoms(Support)}
    values |= {node for p in law.pairs for q in p.pair for node in q.atoms(Support)}
    anchored = [e for e in law.equations if e.difference.has(Anchor)]
    if len(values) != 1 or len(anchored) != 1:
        found = ", ".join(sorted(str(v) for v in values)) or "no value of a support function, only its gradient"
        raise UnsupportedLaw(
            f"{text} holds {found}.",
            "one support function of one vector a site, in a constraint g(V) >= ..., with or without slack",
            "two sets with one bound are one set: the hull of their union, whose support function is the smaller one"
            if len(values) > 1
            else "",
        )
    (node,), (gradient,) = values, anchored
    slope = gradient.rhs.as_independent(Anchor, as_Add=False)[0]
    names = site_quantities(slope)
    if node.body != V or not isinstance(gradient.lhs, SiteQuantity) or slope not in names:
        raise UnsupportedLaw(
            f"{text}: {gradient} is not a multiplier times the anchor point of {node}.",
            "constraints g(V) >= c on one vector V, with or without slack",
            _way_out(gradient.rhs, node),
        )
    level = Dummy("G", real=True)
    scalar = tuple(e.difference.xreplace({node: level}) for e in law.equations if e not in (gradient, *carriers))
    pairs = tuple((p.pair[0].xreplace({node: level}), p.pair[1].xreplace({node: level})) for p in law.pairs)
    return ConvexLaw(node.g, node.components, V, gradient.lhs, names[0], scalar, pairs, level, law, parts)


def _way_out(gradient: Expr, node: Support) -> str:
    """What to declare in place of a law that is none of a bound."""
    if gradient.has(Support):
        return (
            f"a loss by a slack: {node.g}(V) >= 1 - xi[mu], xi[mu] >= 0 at the cost C*Sum(xi[mu], (mu, 1, P)), or "
            f"{node.g}(V) >= 1 - xi[mu] at the cost C/2*Sum(xi[mu]**2, (mu, 1, P))"
        )
    if site_quantities(node.body, Quenched):
        return "a label of either sign in front of the vector is taken up by the even couplings: leave it out"
    return "leave out what is added to the vector; a constant belongs on the other side of the constraint"
