"""Whether a Gibbs measure is the posterior of what made its data, and what follows: the identities of Nishimori.

At ``beta = 1``, with the law of the teacher as prior and with minus the logarithm of the likelihood as loss, a draw
from the measure is to the data what the teacher is. So the overlap of a mean with the teacher is its mean square, and a
draw has the second moment of the teacher (Y. Iba, J. Phys. A 32, 3875, 1999).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from sympy import Add, Dummy, Expr, Heaviside, Mul, Rational, S, Symbol, Tuple, exp, log, solve
from sympy.stats import density

from symcavity.errors import UnsupportedLaw
from symcavity.method.measure import emission_parts
from symcavity.method.theory import Theory
from symcavity.model.averages import Average, Expect, SiteResponse
from symcavity.model.equations import Equation
from symcavity.model.exact import is_normal, is_random
from symcavity.model.kinds import Kind
from symcavity.model.laws import Weight
from symcavity.model.quantities import Global, Quenched, SiteQuantity, site_quantities
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.sites.thermal.states import Mixture

PLACES = tuple(Rational(k, 7) for k in (-17, -9, -4, -1, 2, 5, 11, 16))  # where weight and likelihood are compared
DIGITS = 30

Law = Mapping[tuple[Expr, Expr], Expr]  # by mean and variance of Gaussians their shares


@dataclass(frozen=True)
class Posterior:
    """A Gibbs measure that is a posterior.

    Attributes
    ----------
    kind : Kind
        Of the sites with states.
    core, mean : Expr
        What they send, and its thermal mean.
    teacher : Expr
        What took its place when the data were made, in quenched parameters.
    """

    kind: Kind
    core: Expr
    mean: SiteQuantity
    teacher: Expr

    @property
    def claims(self) -> list[Equation]:
        """The identities."""
        return [
            Equation(Average(self.mean**2), Average(self.teacher * self.mean)),
            Equation(Average(Expect(self.core**2)), Average(self.teacher**2)),
        ]


def posterior(theory: Theory) -> Posterior | None:
    """The posterior that a Gibbs measure is; None where that is not seen.

    The law of the teacher is compared with the prior as a mixture of Gaussians, and each loss with the likelihood of
    what its sites were given, at rational places.
    """
    system = theory.system
    sent = [(kind, w) for kind, w in system.weights.items() if not w.is_field]
    if len(sent) != 1 or theory.is_naive or sent[0][1].is_cold:  # the lowest state alone is no posterior
        return None
    ((kind, weight),) = sent
    ends = {f.sender for f in system.laws[kind].fields if f.states()}
    try:
        if kind in ends and len([f for f in system.laws[kind].fields if f.states()]) > 1:
            return None  # of pairs and of data at once
        teacher = _of_pairs(theory, kind, weight) if kind in ends else _of_losses(theory, kind)
        if teacher is None or not _is_same_law(_prior(weight), _law_of(teacher)):
            return None
    except (UnsupportedLaw, NotImplementedError):
        return None
    return Posterior(kind, weight.state, weight.mean, teacher)


def bayes_steps(theory: Theory, make: StepMaker) -> list[Step]:
    """The identities, where the measure is a posterior."""
    found = posterior(theory) if theory.system.weights else None
    if found is None:
        return []
    data = {"teacher": found.teacher, "state": found.core, "mean": found.mean, "kind": found.kind}
    data["turned"] = bool(theory.system.globals)
    make = make.within("The posterior")
    return [make("bayes", "bayes", found.claims, data=data, rests_on=("problem", "closed_system"))]


# -- laws of one site ------------------------------------------------------------------------------


def _prior(weight: Weight) -> Law:
    """The law of what a site sends, without its fields and without conditions on sums."""
    energy = weight.energy.xreplace(dict.fromkeys(weight.energy.atoms(Global), S.Zero))
    if site_quantities(energy, Quenched) or weight.bounds:
        raise UnsupportedLaw("The prior differs from site to site, or is bounded.", "energies of states alone")
    alone = replace(weight, energy=energy, cold=None)
    shares: dict[tuple[Expr, Expr], Expr] = {}
    for part in Mixture(alone, S.Zero, {}, S.Zero).parts:
        core = weight.state.xreplace(dict(part.values))
        slope = S.Zero if part.state is None else core.diff(part.state)
        if part.factor != 1 or not part.is_whole or (part.state is not None and slope.has(part.state)):
            raise UnsupportedLaw("The prior is not a mixture of Gaussians.", "squares at given discrete states")
        centre = core if part.state is None else core.xreplace({part.state: part.centre})
        place = (centre.expand(), (slope**2 * part.width).expand())
        shares[place] = shares.get(place, S.Zero) + exp(part.log)
    total = Add(*shares.values())
    return {place: share / total for place, share in shares.items()}


def _law_of(teacher: Expr) -> Law:
    """The law of an expression in quenched parameters: a mixture of Gaussians."""
    families = sorted({q.family for q in site_quantities(teacher, Quenched)}, key=lambda f: f.name)
    finite = [f for f in families if f.given is None and isinstance(f.law, Tuple) and f.values]
    rest = [f for f in families if f not in finite]
    if len(rest) > 1 or any(not is_normal(f.law) for f in rest):
        raise UnsupportedLaw("The law of the teacher is not a mixture of Gaussians.", "finite and normal laws")
    shares: dict[tuple[Expr, Expr], Expr] = {}
    for row in product(*(f.law for f in finite)):
        rule = {f.at_site(): v for f, (v, _) in zip(finite, row, strict=True)}
        value, share = teacher.xreplace(rule), Mul(*(p for _, p in row))
        centre, width = value, S.Zero
        for f in rest:
            slope, law = value.diff(f.at_site()), f.law.pspace.distribution
            if site_quantities(slope):
                raise UnsupportedLaw("The law of the teacher is not a mixture of Gaussians.", "normal laws, linear")
            centre, width = value.xreplace({f.at_site(): law.mean}), (slope * law.std) ** 2
        place = (centre.expand(), width.expand())
        shares[place] = shares.get(place, S.Zero) + share
    return shares


def _is_same_law(one: Law, other: Law) -> bool:
    rows = list(other.items())
    for place, share in one.items():
        fits = [r for r in rows if all(_is_zero(a - b) for a, b in zip((*place, share), (*r[0], r[1]), strict=True))]
        if not fits:
            return False
        rows.remove(fits[0])
    return not rows


def _is_zero(expr: Expr) -> bool:
    """Whether an expression in parameters vanishes: at seeded places, to many digits."""
    rule = {s: Rational(7 + 3 * k, 11) for k, s in enumerate(sorted(expr.free_symbols, key=str))}
    return bool(abs(expr.xreplace(rule).evalf(DIGITS)) < Rational(1, 10 ** (DIGITS - 8)))


# -- what was given --------------------------------------------------------------------------------


def _of_losses(theory: Theory, kind: Kind) -> Expr | None:
    """The teacher behind all losses, if they are minus the logarithms of likelihoods."""
    system, found = theory.system, set[Expr]()
    if system.globals:
        return None
    for hearer, loss in system.weights.items():
        if not loss.is_field:
            continue
        fields = system.laws[hearer].fields
        (f,) = (f for f in fields if f.states())
        fixed, share, _ = emission_parts(f)
        given = [g for g in fields if not g.states()]
        if len(given) > 1 or f.sender != kind or any(g.coupling != f.coupling for g in given) or (given and fixed != 0):
            return None
        emitted = given[0].emission if given else -fixed
        u = system.laws[hearer].carrier(given[0]).lhs if given else None
        if not _is_likelihood(loss, u):
            return None
        found.add((emitted / share).expand())
    if len(found) != 1 or found == {S.Zero}:
        return None
    return found.pop()


def _is_likelihood(loss: Weight, u: Any) -> bool:
    """Whether a loss says how probable what was given is, had its own field made it, up to a factor."""
    h, energy = loss.state, loss.energy
    quenched = {q for e in (energy, *loss.bounds) for q in site_quantities(e, Quenched)}
    if len(quenched) != 1:
        return False
    (y,) = quenched
    symbols = sorted(set().union(*(e.free_symbols for e in (energy, loss.beta))) - set(h.indices), key=str)
    plain = [s for s in symbols if isinstance(s, Symbol)]
    rule: dict[Any, Any] = {s: Rational(7 + 3 * k, 11) for k, s in enumerate(plain)}
    weight = exp(-loss.beta * energy) * Mul(*(Heaviside(b, S.Half) for b in loss.bounds))
    if y.family.given is not None:
        if u is None or energy.has(u) or y.family.low is not None:
            return False
        marks = {h: (x := Dummy("x", real=True)), u: x}
        pairs = [(weight.xreplace({y: v}), p) for v, p in y.family.law]
        return all(_in_proportion(a.xreplace(marks), b.xreplace(marks), x, rule) for a, b in pairs)
    return loss.bounds == () and is_random(y.family.law) and _is_noise(energy * loss.beta, h, u, y, rule)


def _in_proportion(one: Expr, other: Expr, x: Any, rule: dict[Any, Any]) -> bool:
    pairs = [tuple(e.xreplace({**rule, x: v}).evalf(DIGITS) for e in (one, other)) for v in PLACES]
    if any((a == 0) != (b == 0) for a, b in pairs):
        return False
    ratios = [a / b for a, b in pairs if b != 0]
    return all(abs(r / ratios[0] - 1) < Rational(1, 10 ** (DIGITS - 8)) for r in ratios)


def _is_noise(energy: Expr, h: Any, u: Any, noise: Any, rule: dict[Any, Any]) -> bool:
    """Whether a loss is of the residual of a field with additive noise, and minus the logarithm of its density."""
    x, n, t = (Dummy(name, real=True) for name in "xnt")
    energy = energy.xreplace({h: x, noise: n, **({} if u is None else {u: t})}).xreplace(rule)
    slope = energy.diff(x)
    scales = {(-energy.diff(n) / slope).simplify()}
    if u is not None and (energy.diff(t) + slope).simplify() != 0:
        return False
    (scale,) = scales
    if scale.free_symbols or scale == 0:
        return False
    here = energy.xreplace({t: S.Zero})
    told = density(noise.family.law)(n - x / scale)
    gap = (here + log(told)).diff(x).xreplace(rule)
    values = [gap.xreplace({x: v, n: v / 3 + Rational(1, 5)}).evalf(DIGITS) for v in PLACES]
    return all(v.is_number and abs(v) < Rational(1, 10 ** (DIGITS - 8)) for v in values)


def _of_pairs(theory: Theory, kind: Kind, weight: Weight) -> Expr | None:
    """The signal in what pairs of sites hear of each other, if the site hears it as through a Gaussian channel.

    With the overlap in the place of the mean square and the second moment of the teacher in that of the states, what a
    site gains is ``A*t*x + B*z*x - C*x**2/2`` beside its prior, with a Gaussian z: a posterior where ``A = B**2
    = C``.
    """
    system, core = theory.system, weight.state
    signals = {k for g in weight.energy.atoms(Global) for k in _linear(weight.energy.diff(g), core)}
    if len(signals) != 1:
        return None
    (teacher,) = signals
    q, whole = Dummy("q", positive=True), Dummy("Q", positive=True)
    rules = []
    for parts in system.global_conditions:
        body = Add(*parts.values()).replace(lambda e: isinstance(e, Expect), lambda e: e.body).expand()
        body = body.xreplace({weight.mean: core})
        marks = {core**2: whole, teacher * core: q}
        rules.append(Add(*(_marked(term, marks) for term in Add.make_args(body))))
    if any(site_quantities(rule) for rule in rules):
        return None
    found = solve(rules, list(system.globals), dict=True)
    if len(found) != 1 or len(found[0]) != len(system.globals):
        return None
    site = theory.inserted[kind]
    thermal, beta = site.solution.fluctuation, weight.beta
    words = {meaning: symbol for symbol, meaning in theory.order_parameters.items()}
    own, answer = (words.get(Average(e)) for e in (weight.mean**2, SiteResponse(weight.mean)))
    if own is None or answer is None:
        return None
    told = {own: q, answer: beta * (whole - q)}
    base = weight.energy.xreplace(dict.fromkeys(system.globals, S.Zero))
    moved = (weight.energy - base).xreplace(found[0])
    eta = site.problem.inner().eta
    x = Dummy("x", real=True)
    gain = (-beta * (moved - thermal.field * core - thermal.feedback * core**2 / 2)).expand().xreplace({core: x})
    gain = gain.xreplace(told).expand()
    if site_quantities(gain, type(core)) and gain.has(core):
        return None
    variance = site.covariance[eta, eta].xreplace(told)
    b2 = gain.coeff(eta, 1).coeff(x, 1) ** 2 * variance
    a = (gain.coeff(eta, 0).coeff(x, 1) / teacher).expand()
    c = -2 * gain.coeff(x, 2)
    if any(e.has(SiteQuantity, x) for e in (a, b2, c)) or a == 0:
        return None
    discrete = getattr(core, "family", None) and {v**2 for v in core.family.values} == {S.One}
    same = _is_zero(a - b2) and (discrete or _is_zero(a - c))  # a square that is a number weighs nothing
    return teacher if same else None


def _linear(slope: Expr, core: Expr) -> set[Expr]:
    """The quenched parameters beside what is sent, in a slope of the energy."""
    terms = (t for t in Add.make_args(slope.expand()) if site_quantities(t, Quenched))
    return {(t / core).as_independent(SiteQuantity, as_Add=False)[1] for t in terms}


def _marked(term: Expr, marks: Mapping[Expr, Expr]) -> Expr:
    factor, rest = term.as_independent(SiteQuantity, as_Add=False)
    return factor * marks[rest] if rest in marks else term
