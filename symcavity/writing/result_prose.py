"""What is said about what comes of a theory: closed equations, elimination, identities, proofs, meanings."""

from __future__ import annotations

from typing import Any

from symcavity.record.derivation import Step
from symcavity.sites.sets.averages import SLOPE2
from symcavity.writing.fragments import Cite, Formula, Fragments, Given, Prose, formula, listed, plural, quantity

ALMEIDA_THOULESS = "J. R. L. de Almeida and D. J. Thouless, J. Phys. A: Math. Gen. 11, 983 (1978)"


def closed_system(step: Step) -> Prose:
    """The closed equations, their unknowns and parameters."""
    unknowns = list(step.data.get("unknowns") or [])
    parameters = [quantity(p) for p in step.data.get("parameters") or []]
    before: Fragments = ["The theory is closed by"]
    after: Fragments = []
    if unknowns:
        after += [f"There are as many equations as unknowns, {plural(len(unknowns), 'namely', 'which are')} "]
        after += [*listed(unknowns)]
        if parameters:
            after += [f"; the {plural(len(parameters), 'parameter is', 'parameters are')} ", *listed(parameters)]
        after += ["."]
    return Prose(before, after)


def load(step: Step) -> Prose:
    """The load that a fixed average determines."""
    after: Fragments = []
    if step.data.get("written"):
        after = ["The states of the site are put into the average, and what does not depend on its field is taken out."]
    return Prose([Given("With the closure of "), step.data["fixed"], ", the condition on it gives the load,"], after)


def load_identity(_step: Step) -> Prose:
    """The load by the exact identity."""
    return Prose([Given("The load is")])


def elimination(_step: Step) -> Prose:
    """What elimination solves for."""
    return Prose([Given("Elimination gives")], again=["Then"])


def named(_step: Step) -> Prose:
    """The quantities that the declaration names."""
    return Prose(["The declaration names the quantities"])


def named_result(_step: Step) -> Prose:
    """The closed equations in these names."""
    return Prose([Given("In these names the equations are")])


def site_average(step: Step) -> Prose:
    """The second moment of one site."""
    who = step.data["kind"].plural
    return Prose([Given(f"The {who} differ by their parameters. Averaged over its field, one of them has")])


def result(_step: Step) -> Prose:
    """The final formulas."""
    return Prose([Given("The theory is reduced to")])


def symmetry(step: Step) -> Prose:
    """Whether a rescaling protects the naive analysis, and why."""
    if step.data.get("found"):
        before: Fragments = ["The declared law has a scaling symmetry."]
        if step.claims:
            before = ["The declared law has a scaling symmetry. Let what a feature hears act with a factor,"]
        after: Fragments = ["Whatever the factor ", step.data["factor"], ", the same states of the features, with the "]
        after += ["same fields of the data, solve the problem: only ", *listed(step.data["scaled"])]
        after += [f" {plural(len(step.data['scaled']), 'is', 'are')} divided by it. "]
        after += ["A quantity that is invariant under this rescaling cannot depend on the response that the factor "]
        after += ["changes, so that any positive value of that response may be assumed for it; the naive analysis "]
        after += ["assumes the bare one. This is why it succeeds for such quantities, and for them only."]
        return Prose(before, after)
    before = ["No scaling symmetry was found that would make the naive analysis right"]
    return Prose(
        [*before, ":" if step.claims else "."], []
    )


def inconsistency(step: Step) -> Prose:
    """The exact identity contradicts the naive statistics."""
    after: Fragments = ["The two are not equal: the naive analysis ignores the correlations between the states and "]
    after += ["the quenched disorder."]
    if not step.data.get("loads", True):
        return Prose([Given("The naive statistics give the two sides of the exact identity the values")], after)
    first, *_, second = [claim.lhs for claim in step.claims] or ["once", "again"]
    before: Fragments = [Given("The load follows twice, "), first, " from the naive statistics, and ", second]
    return Prose([*before, " from the exact identity with the naive states:"], after)


def work_identity(step: Step) -> Prose:
    """The coupling energy, by the sites of either kind."""
    after: Fragments = ["The first identity is exact at any size: the same bilinear form in the couplings is summed "]
    after += ["in two orders. No average over the disorder has been taken, and no independence was assumed. The laws "]
    after += ["of the sites then give the fields"]
    after += [", and complementary slackness the last line." if step.data.get("slack") else "."]
    lead = "Multiplying each equation by its state and summing over the sites of either kind gives"
    return Prose([Given(lead)], after)


def consistency(step: Step) -> Prose:
    """The exact identity, by the cavity theory."""
    if step.data.get("proved", True):
        before = "With the response that the cavity method gives, the two sides of the exact identity agree"
        by = ", by the identity" if step.claims else "."
        return Prose([Given(before + by)], ["So the theory does not contradict itself."])
    before = "With the response that the cavity method gives, the exact identity reads"
    after: Fragments = ["This is a consequence of the closed equations: it holds at their solution, "]
    return Prose([Given(before)], [*after, "not for all values of the unknowns."])


def proof(step: Step) -> Prose:
    """A line of a proof."""
    text = str(step.data.get("text", ""))
    lead = "To prove it, start from " if step.data.get("first") else ""
    words = f"{lead}{text}" if lead else text[:1].upper() + text[1:]
    return Prose([f"{words}:"])


def truncated_moments(step: Step) -> Prose:
    """The averages named phi."""
    variable = step.data.get("variable")
    who: Fragments = [] if variable is None else [" over a standard Gaussian ", variable]
    z = Formula("z") if variable is None else formula(variable)
    measure = Formula(f"\\mathcal{{D}} {z.tex} = e^{{-{z.tex}^2 / 2}} d {z.tex} / \\sqrt{{2 \\pi}}")
    after: Fragments = ["Here ", measure, " is the standard Gaussian measure. The moments obey a recurrence of two "]
    after += ["terms, so that two of them give all others."]
    return Prose(["Averages over the field are written in truncated moments", *who, ","], after)


def interpretation(step: Step) -> Prose:
    """What a response counts."""
    symbol = step.data.get("symbol")
    subject: Fragments = ["The response"] if symbol is None else ["The order parameter ", symbol]
    return Prose([*subject, " has a direct meaning:"])


def spread(step: Step) -> Prose:
    """How the variances of small changes of the fields pass from kind to kind."""
    fields = step.data.get("fields") or []
    before: Fragments = ["Is the solution stable? Change every cavity field by a small independent random amount"]
    if fields:
        rows = [_covariance(a, b, v) for a, b, v in fields]
        before += [", with ", *listed(rows)]
    before += [". A site answers with its own response, and what the sites emit adds up in the next fields, with "]
    before += ["independent couplings: variances add, and after one step from kind to kind they are"]
    return Prose(before, ["Parts of emissions that are given do not change."] if step.data.get("fixed") else [])


def _covariance(a: Any, b: Any, value: Any) -> Formula:
    """Return ``<(d a)^2> = value``, or ``<d a d b> = value``."""
    if a == b:
        return formula("\\langle(\\delta", a, ")^2\\rangle =", value)
    return formula("\\langle\\delta", a, "\\,\\delta", b, "\\rangle =", value)


def stability_average(step: Step) -> Prose:
    """The averages of squared responses."""
    words = plural(len(step.claims), "The average of the squared response is", "The averages of the squares are")
    matrix = any(claim.rhs.has(SLOPE2) for claim in step.claims)
    after: Fragments = ["The square of a matrix is here the sum of those of its entries."] if matrix else []
    if step.data.get("open"):
        words = words if step.claims else "The averages in these equations are taken over the fields of one site."
        after += ["The other averages in these equations are taken over the fields of one site."] if step.claims else []
    return Prose([Given(words)], after)


def stability(step: Step) -> Prose:
    """The condition that a small change dies out."""
    gain = step.data.get("gain")
    there = step.data.get("round")
    after: Fragments = ["The solution is stable, and message passing converges to it, where ", gain, " is below one"]
    after += [" ", Cite(ALMEIDA_THOULESS), "."]
    if step.data.get("convex"):
        after += [" A convex problem with one minimum is stable; at one its minimum begins to be flat."]
    if step.claims:
        way = "After a round from kind to kind and back" if there else "After one step"
        return Prose([f"{way} the changes have grown by the factor"], after)
    power = "the square of the largest eigenvalue" if there else "the largest eigenvalue"
    return Prose(["The changes grow by ", gain, f", {power} (in modulus) of the matrix of these equations."], after)


def messages(_step: Step) -> Prose:
    """The theory as an algorithm for one instance."""
    before: Fragments = ["The theory is an algorithm for one instance and its own couplings. The kinds of sites take "]
    before += ["turns. A site removes from what it hears what comes back of its own last emission, the "]
    before += ["self-coupling times this emission (Onsager's term):"]
    after: Fragments = ["It solves its law at this cavity field, with this self-coupling, and sends. In a "]
    after += ["self-coupling stand the local responses of those who sent last. What is at rest obeys the declared "]
    after += ["equations exactly, at any size: the terms that were removed are those that the law adds."]
    return Prose(before, after)


def state_evolution(_step: Step) -> Prose:
    """The closed equations as a map."""
    before: Fragments = ["For many sites the cavity fields of each step are Gaussian, and the closed equations, where "]
    before += ["every number is the last that was known, follow the steps (state evolution):"]
    return Prose(before, ["Their fixed points are the solutions of the theory, approached where it is stable."])


TEMPLATES = {
    "messages": messages,
    "state_evolution": state_evolution,
    "spread": spread,
    "stability_average": stability_average,
    "stability": stability,
    "work_identity": work_identity,
    "load": load,
    "named": named,
    "named_result": named_result,
    "site_average": site_average,
    "load_identity": load_identity,
    "closed_system": closed_system,
    "elimination": elimination,
    "result": result,
    "symmetry": symmetry,
    "inconsistency": inconsistency,
    "consistency": consistency,
    "proof": proof,
    "truncated_moments": truncated_moments,
    "interpretation": interpretation,
}
