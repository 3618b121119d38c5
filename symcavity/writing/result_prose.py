"""What is said about what comes of a theory: closed equations, elimination, identities, proofs, meanings."""

from __future__ import annotations

from symcavity.record.derivation import Step
from symcavity.writing.fragments import Cite, Fragments, Given, Prose, formula, listed, plural, quantity

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


def elimination(step: Step) -> Prose:
    """What elimination solves for."""
    solved = step.data.get("solved")
    if solved is None:
        return Prose([Given("Elimination gives")])
    return Prose([Given("Solving for "), solved, ","])


def result(step: Step) -> Prose:
    """The final formulas."""
    return Prose([Given(f"The final {plural(len(step.claims), 'formula is', 'formulas are')}")])


def symmetry(step: Step) -> Prose:
    """Whether a rescaling protects the naive analysis, and why."""
    if step.data.get("found"):
        before: Fragments = ["The declared law has a symmetry: it is left as it is by the rescaling"]
        before = before if step.claims else ["The declared law has a scaling symmetry."]
        after: Fragments = [
            "A quantity that is invariant under this rescaling cannot depend on the response that it "
        ]
        after += [
            "changes, so that any positive value of that response may be assumed for it; the naive analysis "
        ]
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


def consistency(step: Step) -> Prose:
    """The exact identity, by the cavity theory."""
    if step.data.get("proved", True):
        before = "With the response that the cavity method gives, the two sides of the exact identity agree, by the"
        return Prose([Given(f"{before} identity")], ["So the theory does not contradict itself."])
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
    after = ["They obey a recurrence of two terms, so that two of them give all others."]
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
        rows = [formula("\\langle\\delta", a, "\\,\\delta", b, "\\rangle =", v) for a, b, v in fields]
        before += [", with ", *listed(rows)]
    before += [". A site answers with its own response, and what the sites emit adds up in the next fields, with "]
    before += ["independent couplings: variances add, and after one step from kind to kind they are"]
    return Prose(before, ["Emissions that are given once and for all do not change."])


def stability_average(step: Step) -> Prose:
    """The averages of squared responses."""
    words = plural(len(step.claims), "The average of the squared response is", "The averages of the squares are")
    return Prose([Given(words)])


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


TEMPLATES = {
    "spread": spread,
    "stability_average": stability_average,
    "stability": stability,
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

__all__ = ["TEMPLATES"]
