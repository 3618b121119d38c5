"""What is said about a step: one template for each rule, filled from the data of the step.

A template returns fragments.  A fragment is a string, or a SymPy object that each writer prints in its own
way, or one of the marks below.  No template knows a problem; an unknown rule still reads as a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sympy import sqrt

from symcavity.model.kinds import DATUM, FEATURE, N, one_site
from symcavity.model.quantities import Quenched
from symcavity.record.derivation import Step
from symcavity.writing.fragments import (
    Fragments,
    Given,
    Prose,
    Show,
    formula,
    hearers_in,
    kind_in,
    limit,
    listed,
    over_sites,
    plural,
    quantity,
    small,
    states_of,
)
from symcavity.writing.naive_prose import TEMPLATES as NAIVE
from symcavity.writing.result_prose import TEMPLATES as RESULTS
from symcavity.writing.set_prose import TEMPLATES as SETS
from symcavity.writing.shown import is_sign
from symcavity.writing.site_prose import TEMPLATES as SITES

Template = Callable[[Step], Prose]
_TEMPLATES: dict[str, Template] = {**SETS, **NAIVE, **SITES, **RESULTS}


def rule(name: str) -> Callable[[Template], Template]:
    """Register the template of a rule."""

    def register(template: Template) -> Template:
        _TEMPLATES[name] = template
        return template

    return register


# The rules whose words need no data: what leads to the claims, and the reason after them.
_PLAIN = {
    "sources": (
        "We add an infinitesimal source to each equation in which a field stands,",
        "The sources define the response functions, and are set to zero at the end.",
    ),
    "emissions": (
        "What is sent through couplings and is no linear function of states is a variable of its own. We write",
        "",
    ),
    "kernel": (
        (
            "The kernel is expanded in its eigenfunctions, which are orthonormal under the average over one example. A "
            "function of the declared form is then a sum over features, and its squared norm another one,"
        ),
        (
            "By the representer theorem the minimum over all such functions has the declared form, so that the problem "
            "may be solved for the new variable; the last line gives it by the coefficients."
        ),
    ),
    "kernel_coefficients": (
        "In terms of the coefficients, stationarity says",
        "Where the kernel is singular this is one choice of the coefficients: others give the same function.",
    ),
    "fixed": ("The condition that the declaration fixes reads", ""),
    "units": (
        (
            "A variable that all sites share is compared with the field that it shifts. In units of the standard "
            "deviation of that field it is given by"
        ),
        "",
    ),
}


_STARTS = frozenset(["sources", "emissions"])


def rules() -> tuple[str, ...]:
    """Return the rules that have words of their own."""
    return (*_TEMPLATES, *_PLAIN)


def prose(step: Step) -> Prose:
    """Return what is to be said about a step."""
    if step.rule in _TEMPLATES:
        said = _TEMPLATES[step.rule](step)
    elif step.rule in _PLAIN:
        lead, after = _PLAIN[step.rule]
        said = Prose([lead if step.rule in _STARTS else Given(lead)], [after] if after else [])
    else:
        words = step.rule.replace("_", " ").strip().capitalize()
        said = Prose([Given(words + (":" if step.claims else "."))])
    said.after = [*said.after, *_reason(step)[0 if said.after else 1 :]]
    return said


def _reason(step: Step) -> Fragments:
    reason = step.data.get("reason", [])
    if not reason:
        return []
    return [" ", *([reason] if isinstance(reason, str) else list(reason))]


# ------------------------------------------------------------------------------- the declared problem


@rule("problem")
def _problem(step: Step) -> Prose:
    data = step.data
    said: Fragments = []
    states = {kind: list(some) for kind, some in dict(data.get("states") or {}).items() if some}
    who: Fragments = []
    for kind, some in states.items():
        if some:
            who += [
                " and " if who else "",
                f"the {kind} variables ",
                *listed(some),
                ", ",
                *over_sites(kind),
            ]
            who += [","]
    if who and who[-1] == ",":
        who.pop()
    globals_ = list(data.get("globals") or [])
    if data.get("minimize") is not None:
        shown = [("minimise ", data["minimize"])]
        conditions = enumerate(data.get("subject_to") or [])
        shown += [("and " if place else "subject to ", condition) for place, condition in conditions]
        said += ["We consider the convex problem"]
        if who:
            said += [" in ", *who]
        said += [Show(tuple(shown))]
        if data.get("subject_to"):
            said += ["A constraint that carries a site index holds at every site. "]
    else:
        parts = [("equations", data.get("equations")), ("complementarity conditions", data.get("conditions"))]
        for place, (word, rows) in enumerate(part for part in parts if part[1]):
            said += [f"together with the {word}" if place else f"The system is declared by its {word}"]
            said += [" for ", *who] if who and not place else []
            said += [Show(tuple(rows or ()))]
    if data.get("fixed"):
        said += ["We hold fixed ", *listed(data["fixed"]), ". "]
    if data.get("ranges"):
        said += ["The parameters satisfy ", *listed(data["ranges"]), ". "]
    if globals_:
        said += [f"The {plural(len(globals_), 'variable', 'variables')} ", *listed(globals_)]
        said += [f" {plural(len(globals_), 'is', 'are')} shared by all sites. "]
    quenched = [quantity(q) for q in data.get("quenched") or []]
    if quenched:
        said += [f"The quenched {plural(len(quenched), 'parameter', 'parameters')} ", *listed(quenched)]
        said += [f" {plural(len(quenched), 'is', 'are')} drawn once and then held fixed"]
        said += [*_laws(data.get("quenched") or [], data.get("heard") or []), ". "]
    choices = list(data.get("choices") or [])
    for label in dict.fromkeys(c.args[0] for c in choices):
        mine = [c for c in choices if c.args[0] == label]
        points = zip(*(c.args[1] for c in mine), strict=True)
        rows = [formula("(", *[part for v in point for part in (",", v)][1:], ")") for point in points]
        said += ["For ", label, f" = 1, …, {len(rows)}, the {plural(len(mine), 'value', 'values')} of ", *listed(mine)]
        said += [f" {plural(len(mine), 'is', 'are')} ", *listed(rows), ". "]
    return Prose([*said, "We take ", *limit(data.get("kinds") or (FEATURE, DATUM)), "."])


def _laws(quenched: Iterable[Any], heard: Iterable[Any]) -> Fragments:
    out: Fragments = []
    for family in quenched:
        law = family.law if isinstance(family, Quenched) else None
        if law is None or not getattr(law, "args", ()) or not isinstance(law.args[0], type(law)):
            continue
        out += ["; " if out else " (", quantity(family), " takes "]
        pairs = [[value, " with probability ", weight] for value, weight in law.args]
        for place, pair in enumerate(pairs):
            out += [*(["" if not place else ", " if place < len(pairs) - 1 else " and "]), *pair]
        on = [claim for claim in heard if claim.lhs == family.given]
        out += [", where ", *listed(on)] if on else []
        out += [f"{'; ' if on else ', so that '}its square is one"] if is_sign(family) else []
    return [*out, ")"] if out else []


@rule("centre")
def _centre(step: Step) -> Prose:
    couplings, centred = ([quantity(c) for c in step.data.get(word) or []] for word in ("couplings", "centred"))
    before: Fragments = []
    if couplings:
        before += [f"The {plural(len(couplings), 'coupling', 'couplings')} ", *listed(couplings)]
        mean = plural(len(couplings), "has a mean", "have means")
        stand = [plural(len(couplings), "stands", "stand"), " in sums that are divided by ", sqrt(N)]
        if not step.data.get("units"):
            before += [f" {mean}; without it we write "]
        elif not step.data.get("means"):
            before += [" ", *stand, "; in this unit we write "]
        else:
            before += [f" {mean}, and ", *stand, "; without the mean, and in this unit, we write "]
        before += [*listed(centred), ". "]
    averages, remainders = (list(step.data.get(word) or []) for word in ("globals", "remainders"))
    norms = list(step.data.get("norms") or [])
    if averages or remainders:
        left = "an average over these sites" if averages else "a number that belongs to no site"
        before += [f"In each sum over sites, a mean or a term without a coupling leaves {left}. "]
    if norms:
        before += ["The root of a sum over all sites is one number for all of them. "]
    before += ["We write" if averages or remainders or norms else "So"]
    after: Fragments = []
    if averages:
        after += ["To leading order ", *listed(averages), f" {plural(len(averages), 'is', 'are')} "]
        after += ["the same for all sites and for every instance: a global variable, with its condition. "]
    if norms:
        after += ["To leading order ", *listed(norms), f" {plural(len(norms), 'does', 'do')} not fluctuate: a global "]
        after += ["variable, whose condition is that its square is what stands under the root. "]
    if remainders:
        after += ["A sum with a mean of order ", 1 / sqrt(N), " in each term would be of order ", sqrt(N)]
        after += [" and outweigh all that its field is held against, unless it balances a threshold of this order "]
        after += ["(zero where none is written). This fixes an average over sites to leading order; what remains of "]
        after += ["the sum, ", *listed(remainders), ", is of order one and free."]
    return Prose(before, after)


@rule("disorder")
def _disorder(step: Step) -> Prose:
    some = [quantity(c) for c in step.data.get("couplings") or []]
    inner = dict.fromkeys(c.family.components for c in some if c.family.components)
    ranges = [formula(a, "=", low, ", \\ldots,", high) for a, low, high in inner]
    couplings = [*listed(some), *([", ", *listed(ranges), ","] if ranges else [])]
    alike = " and" if step.data.get("identical", True) else ", though not"
    before = ["The couplings ", *couplings, f" are independent{alike} identically distributed"]
    if step.data.get("correlated"):
        before = ["The couplings ", *couplings, " are independent at different pairs of sites"]
    after = [
        "No other property of their distribution enters: each sum over couplings has many small terms, and "
    ]
    after += ["the central limit theorem leaves only the first two moments."]
    return Prose([*before, ", with moments"], after)


@rule("lagrangian")
def _lagrangian(step: Step) -> Prose:
    multipliers = list(step.data.get("multipliers") or [])
    auxiliary = list(step.data.get("auxiliary") or [])
    before: Fragments = []
    for symbol, kink in auxiliary:
        before += [
            "The term ",
            kink,
            " has a kink; in its place stands a variable ",
            formula(symbol, "\\ge", kink),
            ", which is no larger at the minimum. ",
        ]
    for node, product, slack, multiplier in step.data.get("norms") or []:
        before += ["The norm ", node, " is the largest ", product, " of all vectors with ", formula(slack, "\\ge", 0)]
        before += ["; half of this bound has the multiplier ", multiplier, ". "]
    if multipliers:
        before += ["We attach a multiplier to each constraint: "]
        parts: list[Fragments] = []
        for symbol, constraint, *rest in multipliers:
            equality = bool(rest and rest[0])
            parts.append([symbol, " to ", formula(constraint, "=" if equality else "\\ge", 0)])
        for place, part in enumerate(parts):
            before += ["" if not place else ", " if place < len(parts) - 1 else " and ", *part]
        before += [". "]
    mean = step.data.get("mean")
    return Prose([*before, "The Lagrangian", *([" of ", N, " times the objective"] if mean else []), " is"])


@rule("stationarity")
def _stationarity(step: Step) -> Prose:
    states = states_of(step)
    if not states:
        return Prose([Given("Stationarity of the Lagrangian gives")])
    before: Fragments = [Given("Stationarity of the Lagrangian with respect to "), *listed(states), " gives"]
    return Prose(before, again=before)


@rule("global_condition")
def _global_condition(_step: Step) -> Prose:
    lead = "A condition on a sum over all sites becomes one on an average, which is self-averaging:"
    return Prose([Given(lead)], again=[Given("Likewise")])


@rule("dual")
def _dual(_step: Step) -> Prose:
    lead: Fragments = ["What a site sends is minus the derivative of the Lagrangian with respect to its field:"]
    return Prose(lead, again=lead)


@rule("complementarity")
def _complementarity(step: Step) -> Prose:
    pairs = list(step.data.get("pairs") or [])
    before: Fragments = [
        Given("Primal feasibility, dual feasibility and complementary slackness say that, at every site,")
    ]
    if pairs:
        before += [Show(tuple(pairs))]
    after: Fragments = ["Both members of each pair are non-negative, and at least one of them is zero."]
    if not step.claims:
        return Prose([*before, *after])
    return Prose([*before, f"with the {plural(len(step.claims), 'slack', 'slacks')}"], after)


# ----------------------------------------------------------------------------- insertion of one site


@rule("insert")
def _insert(step: Step) -> Prose:
    kind, hearers = kind_in(step), hearers_in(step)
    states = states_of(step)
    couplings = [quantity(c) for c in step.data.get("couplings") or []]
    before: Fragments = [f"We start from the unperturbed system and insert a new {kind}, with index 0"]
    if states:
        before += [f" and {plural(len(states), 'variable', 'variables')} ", *listed(states)]
    if couplings:
        before += [", through fresh couplings ", *listed(couplings)]
    before += [". " if not step.claims else f". The fields of the {hearers} change by"]
    bipartite = step.data.get("bipartite", True)
    why = f"Since the graph of interactions is bipartite, the new {kind}" if bipartite else f"The new {kind}"
    senders = [one.plural for one in step.data.get("senders", ())]
    heard = "them" if bipartite or not senders else "the " + " and the ".join(senders)
    after: Fragments = [f"{why} is heard by the {hearers} only, and hears {heard} only. The fresh couplings are "]
    after += ["independent of every quantity of the unperturbed system."]
    return Prose(before, after)


@rule("respond")
def _respond(step: Step) -> Prose:
    hearers = hearers_in(step)
    before = [
        Given(f"The shift of the fields is small, and the {hearers} respond linearly:")
    ]
    after: Fragments = ["The next order of this expansion is smaller by a factor of order "]
    return Prose(list(before), [*after, small(step.data.get("order")), " and is dropped."])


@rule("substitute")
def _substitute(step: Step) -> Prose:
    kind = kind_in(step)
    subject = f"The equation of the new {kind}" if kind else "The equation of the new site"
    return Prose([Given(f"{subject}, with the perturbed messages, reads")])


@rule("cavity_field")
def _cavity_field(step: Step) -> Prose:
    one = len(step.claims) < 2
    before = [f"The {plural(2 - one, 'term', 'terms')} of zeroth order in the perturbation "]
    return Prose([*before, "defines the cavity field" if one else "define the cavity fields"])


@rule("self_coupling")
def _self_coupling(step: Step) -> Prose:
    one = len(step.claims) < 2
    before = (
        "The term of first order, in which the new site acts back on itself through the others, defines the "
    )
    return Prose([before + ("self-coupling" if one else "self-couplings")])


@rule("cavity_equation")
def _cavity_equation(step: Step) -> Prose:
    kind = kind_in(step) or "site"
    return Prose([Given(f"In these terms the new {kind} obeys")])


@rule("field_statistics")
def _field_statistics(step: Step) -> Prose:
    one = not step.data.get("several", False)
    before = [Given(f"The cavity {plural(2 - one, 'field is', 'fields are')} Gaussian, with")]
    after = [
        "The fresh couplings are independent of the unperturbed messages that they multiply, so the averages "
    ]
    after += ["factorise; a sum of many such terms is Gaussian by the central limit theorem."]
    return Prose(list(before), after)


@rule("self_coupling_mean")
def _self_coupling_mean(step: Step) -> Prose:
    one = len(step.claims) < 2
    head = (
        "The self-coupling is of order one and self-averaging"
        if one
        else ("The self-couplings are of order one and self-averaging")
    )
    after = [
        (
            "The fresh couplings are independent of the responses of the unperturbed system, and only the "
            "diagonal "
        )
    ]
    after += ["of the response matrix survives the average. The fluctuations about the mean are of order "]
    return Prose([Given(f"{head}, with mean")], [*after, small(None), " and are dropped."])


@rule("effective_law")
def _effective_law(step: Step) -> Prose:
    pairs = list(step.data.get("pairs") or [])
    kind = kind_in(step)
    where = f"of {one_site(kind)} " if kind else ""
    before: Fragments = [Given(f"With the self-coupling at its mean, the effective law {where}is")]
    after: Fragments = ["It is to be read together with ", *listed(pairs), "."] if pairs else []
    return Prose(before, after)
