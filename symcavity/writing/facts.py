"""The values in the sentences about a step: its data, and counts and choices that follow from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sympy import Expr, Symbol, oo, sqrt

from symcavity.model.averages import SiteResponse
from symcavity.model.complementary import Complementary
from symcavity.model.equations import Equation
from symcavity.model.families import SiteQuantity, site_quantities
from symcavity.model.kinds import DATUM, FEATURE, Kind, N, is_index, one_of, one_site, sorted_kinds
from symcavity.model.quantities import Variable
from symcavity.model.support import bold
from symcavity.record.derivation import Step
from symcavity.sites.sets.averages import SLOPE2
from symcavity.writing.assumptions import Facts, limit, quantities, relations
from symcavity.writing.declared_laws import choices_of, discrete, laws
from symcavity.writing.fragments import formula, listed, over_sites, quantity, small, states_of
from symcavity.writing.nodes import FormulaNode, Row, in_brackets, joined
from symcavity.writing.printing import tree
from symcavity.writing.words import Said, say, sentence

_FACTS: dict[str, Callable[[Step], Facts]] = {}


def facts(step: Step) -> Facts:
    """Return all that the sentences about a step may ask for, by name."""
    data = {name: quantities(value) for name, value in step.data.items()}
    kind = data.get("kind") or "site"
    hearers = list(step.data.get("hearers", ()))
    common: Facts = {
        "kind": kind,
        "one_kind": one_of(kind),
        "one_site": one_site(kind),
        "plural": getattr(kind, "plural", ""),
        "hearers": " and the ".join(one.plural for one in hearers) or "others",
        "hearer": " or ".join(one.name for one in hearers) or "site",
        "senders": " and the ".join(one.plural for one in step.data.get("senders", ())),
        "bipartite": step.data.get("bipartite", True),
        "states": states_of(step),
        "introduced": step.data.get("introduced", False),  # the first step of a run has named the states of this one
        "claims": len(step.claims),
        "few": max(1, len(step.claims)),
        "order": small(step.data.get("order")),
        "weak": 1 / sqrt(N),
        "root": sqrt(N),
        "inverse": 1 / N,
        "N": data.get("N", N),
        "energy": data.get("energy", Symbol("E")),
        "unit": step.data.get("beta") == 1,  # a temperature of one is not written
    }
    own = _FACTS.get(step.rule)
    return {**data, **common, **(own(step) if own is not None else {})}


def facts_of(*rules: str) -> Callable[[Callable[[Step], Facts]], Callable[[Step], Facts]]:
    """Register what the sentences of some rules need beside the data."""

    def register(found: Callable[[Step], Facts]) -> Callable[[Step], Facts]:
        _FACTS.update(dict.fromkeys(rules, found))
        return found

    return register


# ------------------------------------------------------------------------------- the declared problem


def _weighed(energy: Any) -> dict[Kind, list[Any]]:
    """The states that an energy weighs; the messages of sites that have none are not among them."""
    weighed: dict[Kind, list[Any]] = {}
    for family in sorted({q.family for q in site_quantities(energy, Variable)}, key=lambda f: f.name):
        weighed.setdefault(family.slots[0], []).append(family.at_site())
    return {kind: weighed[kind] for kind in sorted_kinds(weighed)}


def declared_states(step: Step) -> dict[Kind, list[Any]]:
    """The states of a declared problem by kinds of sites: those that its energy weighs, where it has one."""
    if step.data.get("beta") or step.data.get("lowest"):
        return _weighed(step.data.get("minimize"))
    return {kind: list(some) for kind, some in dict(step.data.get("states") or {}).items() if some}


@facts_of("problem")
def _problem(step: Step) -> Facts:
    data, states = step.data, declared_states(step)
    who = [{"kind": kind, "states": some, "range": Said(over_sites(kind))} for kind, some in states.items()]
    minimize, conditions = data.get("minimize"), list(data.get("subject_to") or ())
    named = {q.family for some in states.values() for q in some if isinstance(q, SiteQuantity)}
    typed = site_quantities(minimize, Variable) if states else []
    stated = [family.at_site() for family in dict.fromkeys(q.family for q in typed) if family not in named]
    first: Any
    first, *rest = (f"{sentence(f'problem.{word}')} " for word in ("minimise", "subject", "and"))
    first = formula(data.get("energy", "E"), "=") if data.get("beta") else first
    rows = [(first, minimize), *((rest[place > 0], condition) for place, condition in enumerate(conditions))]
    pairs = list(data.get("conditions") or ())
    word = "conditions" if all(isinstance(c, Complementary) for c in pairs) else "bounds"
    parts = [("equations", data.get("equations")), (word, pairs)] if minimize is None else []
    declared = [{"what": sentence(f"problem.{what}"), "rows": some} for what, some in parts if some]
    if declared:
        declared[0]["first"] = True
    quenched = list(data.get("quenched") or ())
    return {
        "given": [quantity(q) for q in quenched if getattr(q, "law", None) is None],
        "drawn": [quantity(q) for q in quenched if getattr(q, "law", None) is not None],
        "anew_laws": Said(laws(data.get("anew") or (), ())),
        "convex": minimize is not None and not (data.get("beta") or data.get("lowest")), "beta": data.get("beta"),
        "minimized": minimize is not None and not data.get("beta"), "discrete": list(discrete(states)),
        "who": who, "stated": stated, "rows": rows,
        "constraints": [c for c in conditions if any(map(is_index, c.free_symbols))], "declared": declared,
        "laws": Said(laws(quenched, data.get("heard") or ())), "choices": list(choices_of(data.get("choices") or ())),
        "limit": limit(data.get("kinds") or (FEATURE, DATUM)),
    }  # fmt: skip


@facts_of("roots")
def _roots(step: Step) -> Facts:
    pairs = list(step.data.get("pairs") or ())
    return {"pairs": pairs, "others": [pair.pair[1] for pair in pairs], "several": pairs}


@facts_of("centre")
def _centre(step: Step) -> Facts:
    data = step.data
    found = {name: list(data.get(name) or ()) for name in ("remainders", "norms")}
    averages = list(data.get("globals") or ())
    left = averages or found["remainders"]
    scaled = bool(data.get("units"))
    return {
        **found, "averages": averages, "left": left, "writes": bool(left or found["norms"]),
        "scaled": scaled, "shifted": not scaled or bool(data.get("means")),
    }  # fmt: skip


@facts_of("descent")
def _descent(step: Step) -> Facts:
    return {"shared": [q for q in step.data.get("states") or () if not getattr(q, "site", None)]}


@facts_of("disorder")
def _disorder(step: Step) -> Facts:
    some = [quantity(c) for c in step.data.get("couplings") or []]
    inner = dict.fromkeys(c.family.components for c in some if c.family.components)
    ranges = [formula(a, "=", low, ", \\ldots,", high) for a, low, high in inner]
    apart = [{"x": x, "z": z} for x, z in step.data.get("independent") or ()]
    return {
        "ranges": ranges, "identical": step.data.get("identical", True),
        "apart": apart, "all_apart": 2 * len(apart) == len(some) * (len(some) - 1),
    }  # fmt: skip


@facts_of("respond")
def _respond(step: Step) -> Facts:
    return {"apart": len(step.data.get("hearers") or ()) > 1}


@facts_of("self_coupling_mean")
def _self_coupling_mean(step: Step) -> Facts:
    gone = sum(len(step.data.get(name) or ()) for name in ("small", "early"))
    combined = [{"Kind": kind.name.capitalize()} for kind in step.data.get("combined") or ()]
    return {"living": len(step.claims) - gone, "combined": combined}


@facts_of("self_coupling")
def _self_coupling(step: Step) -> Facts:
    return {"numbered": any(getattr(c.lhs, "tag", "")[:2].isdigit() for c in step.claims)}


@facts_of("effective_law")
def _effective_law(step: Step) -> Facts:
    selves = step.data.get("selves", 1)
    return {"dropped": any(key.endswith(".naive_drop") for key in step.rests_on), "selves": selves}


@facts_of("interpretation")
def _interpretation(step: Step) -> Facts:
    return {"more": len(step.claims) > 1}


@facts_of("lagrangian")
def _lagrangian(step: Step) -> Facts:
    multipliers = [
        {"symbol": symbol, "constraint": constraint, "relation": "=" if rest and rest[0] else "\\ge"}
        for symbol, constraint, *rest in step.data.get("multipliers") or ()
    ]
    names = ("node", "product", "slack", "multiplier")
    norms = [dict(zip(names, norm, strict=True)) for norm in step.data.get("norms") or ()]
    kinks = [{"symbol": symbol, "kink": kink} for symbol, kink in step.data.get("auxiliary") or ()]
    return {"kinks": kinks, "norms": norms, "multipliers": multipliers}


@facts_of("measure", "lowest_state")
def _measure(step: Step) -> Facts:
    some = step.data.get("multipliers") or ()
    return {
        "multipliers": [
            {"symbol": nu, "condition": total, "relation": "=" if equality else "\\ge"} for nu, total, equality in some
        ]
    }


# ------------------------------------------------------------------------------- sites


@facts_of("branches")
def _branches(step: Step) -> Facts:
    branches = list(step.data.get("branches") or ())
    words = sentence("branches.counts").split()
    return {
        "several": len(branches) > 1,
        "count": words[len(branches)] if len(branches) < len(words) else str(len(branches)),
        "branches": branches,
        "rows": [_branch_row(branch) for branch in branches],
        "signs": relations(step.data) if step.data.get("sign_assumptions") else [],
    }


@facts_of("fluctuation", "thermal_sum", "lowest")
def _fluctuation(step: Step) -> Facts:
    return {"signs": relations(step.data) if step.data.get("sign_assumptions") else []}


def _branch_row(branch: Any) -> tuple[Any, ...]:
    names, region, values = (*branch, None, None)[:3] if isinstance(branch, list | tuple) else (branch, None, None)
    given = isinstance(values, dict) and values
    some = [Equation(state, value) for state, value in values.items()] if given else names
    row = listed([some] if isinstance(some, str) else list(some or ()), ", ")
    return (*row, *((*say("branches.if"), region) if region is not None else ()))


@facts_of("contact", "followed")
def _contact(step: Step) -> Facts:
    low, high = step.data["ends"]
    return {"low": low, "high": high, "site": step.data.get("field_site", False), "start": step.data.get("start")}


@facts_of("joint")
def _joint(step: Step) -> Facts:
    return {"pairs": [Complementary(p, q) for p, q in step.data.get("pairs") or ()]}


@facts_of("naive_drop")
def _naive_drop(step: Step) -> Facts:
    kept = step.data.get("kept") or ()
    return {"kept": [{"other": one_of(other), "symbols": list(symbols)} for other, symbols in kept]}


@facts_of("no_substitution")
def _no_substitution(step: Step) -> Facts:
    why, values = step.data["obstacle"]
    return {"reason": Said(say(f"no_substitution.{why}", plural=values["kind"].plural, **values))}


# ------------------------------------------------------------------------------- convex sets


@facts_of("support_function")
def _support(step: Step) -> Facts:
    return {"gradient": step.data["node"].g}


def _sourced(factor: Expr, eta: Any, source: Any, *, alone: bool) -> FormulaNode:
    """A cavity field and its source, in bold, with their factor in what the vector hears."""
    both = formula(eta.whole(), "+", bold(source, source.indices[-1]))
    return both if alone or factor == 1 else joined((tree(factor), in_brackets(both)), " ")


@facts_of(
    "set_minimum", "regime_interior", "regime_touching", "regime_tip", "regimes", "regime_saturated", "vector_response",
    "set_multiplier", "touching_response", "touching_trace",
)  # fmt: skip
def _sets(step: Step) -> Facts:
    data = step.data
    out: Facts = {"second": len(step.claims) > 1}
    if "softness" in data:
        out["soft"] = data["softness"] != 0
        out["hard"] = data["softness"] == 0 and data.get("cap", oo) == oo
    if "cap" in data:
        out["capped"] = data["cap"] != oo
    if "sourced" in data:
        rows = [_sourced(*row, alone=len(data["sourced"]) == 1) for row in data["sourced"]]
        out["sourced"] = formula(*[part for row in rows for part in ("+", row)][1:])
    if step.rule == "regime_interior":
        out["support"] = data["g"].g
    if step.rule == "vector_response":
        out["size"] = data["g"].components.size
    return out


# ------------------------------------------------------------------------------- results


@facts_of("symmetry")
def _symmetry(step: Step) -> Facts:
    return {"reason": obstacle(step.data)}


def obstacle(data: Facts) -> Said:
    """Why there is no rescaling symmetry, in words."""
    return Said(say(f"no_symmetry.{data['obstacle']}", **data["values"])) if data.get("obstacle") else Said()


@facts_of("inconsistency")
def _inconsistency(step: Step) -> Facts:
    first, *_, second = [claim.lhs for claim in step.claims] or ["once", "again"]
    return {"loads": step.data.get("loads", True), "first": first, "second": second}


@facts_of("consistency")
def _consistency(step: Step) -> Facts:
    return {"proved": step.data.get("proved", True)}


@facts_of("proof")
def _proof(step: Step) -> Facts:
    why = proof_line(*step.data["why"])
    return {"why": why, "Why": why[:1].upper() + why[1:]}


def proof_line(name: str, values: Facts) -> str:
    """Why a line of a proof holds."""
    return sentence(f"proof.{name}", **values)


@facts_of("truncated_moments")
def _truncated_moments(step: Step) -> Facts:
    variable = step.data.get("variable")
    return {"z": "z" if variable is None else variable}


@facts_of("messages")
def _messages(step: Step) -> Facts:
    own = {name: step.data.get(name, False) for name in ("drawn", "jumps", "several")}
    return {"turns": len(step.data.get("order") or ()) > 1, "echo": step.data.get("echo", True), **own}


@facts_of("result")
def _result(step: Step) -> Facts:
    return {"left": list(step.data.get("left") or ())}


@facts_of("spread")
def _spread(step: Step) -> Facts:
    def covariance(a: Any, b: Any, value: Any) -> Row:
        (found,) = say(f"spread.{'square' if a == b else 'product'}", a=a, b=b, value=value)
        return found

    fields = list(step.data.get("fields") or ())
    kinds = [getattr(a, "kind", None) for a, b, _ in fields if a == b]
    return {
        "rows": [covariance(*row) for row in fields],
        "kinds": len(set(kinds)) > 1,
        "joined": len(set(kinds)) < len(kinds),  # a site with several fields
    }


@facts_of("two_sites_local")
def _two_sites_local(step: Step) -> Facts:
    responses = [claim.lhs for claim in step.claims if claim.lhs.has(SiteResponse)]
    return {"responses": responses, "squares": [claim.lhs for claim in step.claims if claim.lhs not in responses]}


@facts_of("two_sites_given")
def _two_sites_given(step: Step) -> Facts:
    rows, given = step.data.get("rows") or (), step.data.get("given") or ()
    return {"held": [*(row["field"] for row in rows), *map(quantity, given)]}


@facts_of("two_sites_closed", "moving_two_sites_closed")
def _two_sites_closed(step: Step) -> Facts:
    rows = step.data.get("rows") or ()
    return {"rows": [{**row, "what": sentence(f"two_sites_closed.{row['what']}")} for row in rows]}


@facts_of("two_sites_resolvent")
def _two_sites_resolvent(step: Step) -> Facts:
    rows = step.data.get("rows") or ()
    return {"rows": [{**row, "what": sentence(f"two_sites_resolvent.{row['what']}")} for row in rows]}


@facts_of("stability_average")
def _stability_average(step: Step) -> Facts:
    return {"matrix": any(claim.rhs.has(SLOPE2) for claim in step.claims)}


# ------------------------------------------------------------------------------- assumptions
