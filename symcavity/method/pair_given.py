"""Two sites whose fields have a given part: the mean of the other sites' messages over the parameters that vary.

What others send has a mean over what varies, ``E e_j``, that differs from site to site.  It is given with the
couplings, and so a field is the sum of two independent Gaussians: ``m = sum x_ij E e_j``, which is given, and one
that varies.  The covariance of ``m`` is that of the fields, with the overlaps of two draws of what varies,

    p_ab = < E[e_a] E[e_b] >,

in the place of those of one, and these close: the sites are those of the theory, beside a given field ``m``.  The
covariances and the mean responses of a site are functions of ``m`` and of its other given parameters.  A field of given
emissions, such as a teacher's, is given as a whole; labels that are drawn on it vary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement

from sympy import Abs, Add, Expr, S, cancel

from symcavity.errors import UnsupportedLaw
from symcavity.method.average import message_response
from symcavity.method.pair_ends import Leg, Two, in_scales, scales, weighed
from symcavity.method.reach import Reach
from symcavity.method.theory import Theory
from symcavity.model.averages import Average
from symcavity.model.complementary import Complementary
from symcavity.model.equations import Equation
from symcavity.model.kinds import Kind
from symcavity.model.names import fresh_name
from symcavity.model.quantities import Quenched, SiteQuantity, Variable, site_quantities
from symcavity.record.order_parameters import OrderParameter
from symcavity.sites.labels import JUMPS
from symcavity.sites.protocol import Heard
from symcavity.sites.site import Site
from symcavity.sites.strategies import solved_by

Covariances = dict[tuple[Heard, Heard], Expr]


@dataclass(frozen=True)
class GivenPart:
    """A site of a kind beside the given parts of its fields.

    Attributes
    ----------
    theory : Theory
    kind : Kind
    reach : Reach
        What varies, and leads to the observed quantity.
    fields : dict
        The given part of each field, as a parameter of the site.
    left : dict
        The covariances of the parts of its fields that vary, as symbols.
    """

    theory: Theory
    kind: Kind
    reach: Reach
    fields: dict[Heard, Quenched]
    left: Covariances

    @property
    def given(self) -> list[Quenched]:
        """The parameters of a site that do not vary, beside its fields."""
        return [q for q in self.reach.parameters(self.kind) if q not in self.reach.over]

    @property
    def trained(self) -> tuple[Heard, ...]:
        """The fields a part of which varies."""
        return tuple(filter(self.reach.varies, self.fields))

    @cached_property
    def site(self) -> Site:
        """The site that hears the given part of each field beside the part that varies."""
        site = self.theory.inserted[self.kind]
        rule = {}
        for h, m in self.fields.items():  # of a field that does not vary what comes back is left
            varies = h.declared.symbol if h in self.trained else h.effective().xreplace({h.eta: S.Zero})
            rule[h.declared.symbol] = varies + m.at_site()
        known = self.reach.law(self.kind)
        equations = tuple(Equation(e.lhs.xreplace(rule), e.rhs.xreplace(rule)) for e in known.equations)
        pairs = tuple(Complementary(*(q.xreplace(rule) for q in p.pair)) for p in known.pairs)
        fields = tuple(h.declared for h in self.trained)
        law = replace(known, equations=equations, pairs=pairs, fields=fields)
        problem = replace(site.problem, law=law, heard=self.trained)
        strategy, solution = solved_by(problem)
        signs = {f.signed(s): s for f, s in solution.signs.items()}
        own = {h: scales(h.declared)[0] for h in self.fields}
        covariance = {(h.eta, g.eta): own[h] * own[g] * e for (h, g), e in self.left.items()}
        return Site(problem.signed(solution.signs), strategy, solution.solved, signs, covariance, site.means)

    @property
    def jumps(self) -> bool:
        """Whether the law, or a label, may jump with a field of given emissions."""
        law = self.reach.law(self.kind)
        held = [e.difference for e in law.equations] + [q for p in law.pairs for q in p.pair]
        return any(e.has(*JUMPS, Abs) for e in (*held, *(q.law for q in law.quenched() if q.given is not None)))

    def over_fields(self, body: Expr) -> Expr:
        """The average over the parts of its fields and the labels that vary, at given parameters of the site."""
        drawn = [q for q in self.reach.parameters(self.kind) if q.given is not None]
        return self._over_labels(body, drawn).xreplace(self.theory.binding) if body != 0 else S.Zero

    def _over_labels(self, body: Expr, labels: list[Quenched]) -> Expr:
        if not labels:
            return self.site.at_labels.at_site(body)
        label, *others = labels
        field = next(e.rhs for e in self.site.law.equations if e.lhs == label.given)
        values = ((value, weight.xreplace({label.given: field})) for value, weight in label.law.args)  # type: ignore[union-attr]
        return Add(*(w * self._over_labels(body, others).xreplace({label.at_site(): v}) for v, w in values))


@dataclass(frozen=True)
class GivenFields:
    """The given parts of the fields of all sites, and what a site has for each value of them.

    Attributes
    ----------
    theory : Theory
    reach : Reach
        What varies, and leads to the observed quantity.
    """

    theory: Theory
    reach: Reach

    @property
    def over(self) -> tuple[Quenched, ...]:
        """What varies."""
        return self.reach.over

    @property
    def legs(self) -> tuple[Leg, ...]:
        """The ends of what joins two sites."""
        return self.reach.legs

    @cached_property
    def parts(self) -> dict[Kind, GivenPart]:
        """A site of each kind."""
        taken, out = self._taken, dict[Kind, GivenPart]()
        for kind, site in self.theory.inserted.items():
            if kind not in {leg.kind for leg in self.legs}:
                continue
            heard = self.reach.fields(kind)
            fields = {h: Quenched(fresh_name(taken, f"m_{h.declared.symbol}"), kind.index) for h in heard}
            left: Covariances = {}
            for k, h in enumerate(heard):
                for g in heard[: k + 1]:
                    name = "_".join(dict.fromkeys(str(f.declared.symbol) for f in (h, g)))
                    symbol = OrderParameter(fresh_name(taken, f"v_{name}"), real=True, positive=h == g or None)
                    fixed = site.covariance[h.eta, g.eta] == 0 or not (self.reach.varies(h) and self.reach.varies(g))
                    left[h, g] = left[g, h] = S.Zero if fixed else symbol
            out[kind] = GivenPart(self.theory, kind, self.reach, fields, left)
        return out

    @cached_property
    def _taken(self) -> set[str]:
        theory = self.theory
        names = {str(s) for s in (*theory.scaled_unknowns, *theory.system.parameters, *theory.system.quenched)}
        return {*names, *theory.system.variables}

    # -- what a site has at given fields -----------------------------------------------------------

    @cached_property
    def means(self) -> dict[Leg, SiteQuantity]:
        """The name of the mean of what a site sends."""
        return {a: self._variable("e", a.kind, a.name) for a in self.legs if a.sent is not None}

    @cached_property
    def names(self) -> dict[Two, SiteQuantity]:
        """The name of each covariance, and of each mean response, of a site with itself; one for both orders."""
        out: dict[Two, SiteQuantity] = {}
        for k, a in enumerate(self.legs):
            for b in self.legs[: k + 1]:
                if a.kind == b.kind and not a.sent is b.sent is None and self._body(a, b) != 0:
                    letter = "c" if a.sent is not None and b.sent is not None else "r"
                    out[a, b] = out[b, a] = self._variable(letter, a.kind, "_".join(dict.fromkeys((b.name, a.name))))
        return out

    @cached_property
    def bounds(self) -> dict[SiteQuantity, tuple[SiteQuantity, SiteQuantity]]:
        """Of each covariance the two variances whose product bounds its square."""
        both = {two: name for two, name in self.names.items() if all(leg.sent is not None for leg in two)}
        return {name: (both[a, a], both[b, b]) for (a, b), name in both.items()}

    def local(self, a: Leg, b: Leg) -> Expr:
        """The covariance, or the mean response, of one site: its name."""
        return self.names.get((a, b), S.Zero)

    def _variable(self, letter: str, kind: Kind, name: str) -> SiteQuantity:
        return Variable(fresh_name(self._taken, f"{letter}_{name}"), kind.index).at_site()

    def _body(self, a: Leg, b: Leg) -> Expr:
        """What is averaged over what varies in a covariance or a response."""
        if a.sent is not None and b.sent is not None:
            return a.sent * b.sent
        sent, heard = (a.sent, b.field) if b.field is not None else (b.sent, a.field)
        answer = message_response(self.theory.system, sent, heard.declared)  # type: ignore[union-attr]
        return scales(heard.declared)[0] * heard.factor * answer  # type: ignore[union-attr]

    @cached_property
    def meanings(self) -> dict[SiteQuantity, tuple[Kind, Expr, Expr]]:
        """Of each name what is averaged over what varies, and the product of names that is taken off."""
        out: dict[SiteQuantity, tuple[Kind, Expr, Expr]] = {}
        for a, mean in self.means.items():
            out[mean] = a.kind, a.sent, S.Zero
        for (a, b), name in self.names.items():
            both = a.sent is not None and b.sent is not None
            out[name] = a.kind, self._body(a, b), self.means[a] * self.means[b] if both else S.Zero
        return out

    # -- overlaps of two draws ---------------------------------------------------------------------

    @cached_property
    def overlaps(self) -> dict[OrderParameter, tuple[Expr, Expr]]:
        """Of each overlap of two draws that of one, and the closure: the mean product of two means.

        Raises
        ------
        UnsupportedLaw
            If fields are correlated by something else than overlaps of what sites send.
        """
        taken, out = self._taken, dict[OrderParameter, tuple[Expr, Expr]]()
        sent = {weighed(f) for f in self.theory.system.fields}
        legs = {a: e for a in self.legs if (e := a.sent) is not None and e in sent}
        known = self.theory.order_parameters.items()
        found: set[Expr] = set()
        for a, b in combinations_with_replacement(legs, 2):
            whole = Average(legs[a] * legs[b])
            stated = whole if not site_quantities(whole, Variable) else None  # of parameters, such as a teacher's
            one = next((s for s, e in known if _same(e, whole)), stated)
            if a.kind == b.kind and one is not None:
                name = fresh_name(taken, "p_" + "_".join(dict.fromkeys((a.name, b.name))))
                symbol = OrderParameter(name, real=True, nonnegative=a == b or None)
                out[symbol] = one, Average(self.means[a] * self.means[b])
                found.add(one)
        for kind, part in self.parts.items():
            site = self.theory.inserted[kind]
            for h, g in ((h, g) for h, g in part.left if {h, g} <= {*part.trained}):
                others = site.covariance[h.eta, g.eta].atoms(OrderParameter) - found
                if others:
                    name = min(others, key=str)
                    raise UnsupportedLaw(
                        f"The given part of the fields of {kind.sites} is not derived with {name}.",
                        "fields that are correlated by the overlaps of messages",
                        "sim.dimension(...) of instances",
                    )
        return out

    def covariance(self, kind: Kind) -> Covariances:
        """The covariances of the given parts of the fields of a site, in overlaps of two draws."""
        rule = {one: p for p, (one, _) in self.overlaps.items()}
        return {two: e.xreplace(rule) for two, e in self.whole(kind).items()}

    def whole(self, kind: Kind) -> Covariances:
        """Those of the fields; both in the scales of what a site hears."""
        known = self.theory.inserted[kind].covariance
        own = {h: scales(h.declared)[0] for h in self.parts[kind].fields}
        return {(h, g): in_scales(known[h.eta, g.eta], own[h], own[g]) for h, g in self.parts[kind].left}


def _same(one: Expr, other: Expr) -> bool:
    return one == other or (isinstance(one, Average) and cancel(one.body - other.args[0]) == 0)
