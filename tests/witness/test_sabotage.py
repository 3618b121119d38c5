"""Break each rule on purpose, derive, and see that the record notices, at the step of that rule.

What is broken is the rule, never the claim: everything that follows is derived from the wrong rule, so that the
record agrees with itself, and only a witness that starts from the declaration can tell.
"""

from dataclasses import replace

import pytest
from sympy import Identity, Rational, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Feature, N, P, System, i, mu
from symcavity.derivations import anisotropic, gardner, kernel_ridge, manifold, output_bias, soft_manifold, soft_margin
from symcavity.method import (
    average,
    declared,
    derive,
    eliminate,
    epigraph,
    fluctuations,
    identify,
    identity,
    insert,
    kernel,
    kkt,
    load,
    minimum,
    named,
    respond,
    results,
    stability,
    stein,
    symmetry,
)
from symcavity.method.symmetry import Symmetry
from symcavity.method.theory import Theory
from symcavity.model import system as model
from symcavity.model.complementary import Complementary
from symcavity.model.equations import Equation
from symcavity.model.quantities import site_quantities
from symcavity.model.rewritings import kernels
from symcavity.record.symbols import Perturbation
from symcavity.sites import linear
from symcavity.sites.branching.averages import SiteEnsemble
from symcavity.sites.branching.layout import SiteSolution
from symcavity.sites.protocol import SiteProblem
from symcavity.sites.sets import solution as sets
from symcavity.sites.sets import steps as set_steps
from symcavity.sites.sets import strategy as set_strategy

HALF = Rational(1, 2)
x, w = Coupling("x"), Feature("w")
squares = ConvexProblem(
    Sum((1 - Sum(x[mu, i] * w[i], (i, 1, N))) ** 4, (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 2,
    name="A quartic loss",
)


def times(factor, expr):
    """An expression or an equation, wrong by a factor on the right."""
    return Equation(expr.lhs, factor * expr.rhs) if isinstance(expr, Equation) else factor * expr


def wrapped(target, name, change):
    """Replace a rule by one that changes what it returns."""

    def sabotage(monkeypatch):
        rule = getattr(target, name)
        monkeypatch.setattr(target, name, lambda *args, **more: change(rule(*args, **more)))

    return sabotage


def replaced(target, name, value):
    """Replace a rule, or a word that it uses."""

    def sabotage(monkeypatch):
        monkeypatch.setattr(target, name, value)

    return sabotage


def other_identity(monkeypatch):
    """What the theory makes of another identity than the one that was shown."""
    rule = identity._consistency

    def other(theory, found, make):
        averaged = Equation(found.averaged.lhs, found.averaged.rhs + 1)
        return rule(theory, replace(found, averaged=averaged), make)

    monkeypatch.setattr(identity, "_consistency", other)


def half_an_echo(monkeypatch):
    """A naive law that keeps half of the mean of the echo that it says it has dropped."""
    rule = derive._site

    def site(opened, averaged, dropped):
        whole = rule(opened, averaged, False)
        return replace(whole, means={f: m / 2 for f, m in whole.means.items()}) if dropped else whole

    monkeypatch.setattr(derive, "_site", site)


class Negative:
    """A source with a sign that nobody asked for."""

    def __init__(self, source):
        self.source = source

    def at_site(self):
        return -self.source.at_site()


def negative_source(monkeypatch):
    rule = declared.source_of
    monkeypatch.setattr(declared, "source_of", lambda system, f: Negative(rule(system, f)))


def wider_margin(monkeypatch):
    rule = epigraph._normalised
    monkeypatch.setattr(epigraph, "_normalised", lambda c: replace(rule(c), expr=rule(c).expr + HALF))


def wrong_message(monkeypatch):
    rule = kkt._message

    def message(f, record, names, equations, local):
        found = rule(f, record, names, equations, local)
        if any(found == dual for dual, _ in record.duals):
            equations[-1] = times(2, equations[-1])
        return found

    monkeypatch.setattr(kkt, "_message", message)


def wrong_touching(**changes):
    """A response at a point of contact of which some parts are wrong."""

    def sabotage(monkeypatch):
        rule = set_steps.touching_response

        def touching(*args):
            right = rule(*args)
            return replace(right, **{name: change(getattr(right, name)) for name, change in changes.items()})

        monkeypatch.setattr(set_steps, "touching_response", touching)

    return sabotage


def fewer_closures(monkeypatch):
    rule = Theory.equations.fget
    monkeypatch.setattr(Theory, "equations", property(lambda theory: [times(2, rule(theory)[0]), *rule(theory)[1:]]))


def wrong_line(proof):
    last = proof.steps[-1]
    return replace(proof, steps=(*proof.steps[:-1], replace(last, rhs=last.rhs + 1)))


def found_nothing(found):
    return {k: times(2, v) for k, v in found.items()}


def both(change):
    """Change the first of what a rule returns."""
    return lambda found: (change(found[0]), *found[1:])


SABOTAGES = {
    # what is declared, and the optimality conditions
    "a displayed variance times seven": (
        gardner, "cavity", wrapped(declared, "coupling_covariance", lambda v: 7 * v), ["disorder"],
    ),
    "a displayed source with the wrong sign": (gardner, "cavity", negative_source, ["sources"]),
    "a margin of one half": (gardner, "cavity", wider_margin, ["lagrangian", "complementarity", "sources"]),
    "an objective times three": (
        soft_margin, "cavity",
        wrapped(kkt, "epigraph", lambda f: ({k: 3 * v for k, v in f[0].items()}, f[1])), ["lagrangian"],
    ),
    "a wrong constraint of the other sign": (
        soft_margin, "cavity",
        wrapped(kkt, "epigraph", lambda f: (f[0], [replace(c, expr=2 * c.expr - 1) for c in f[1]])), ["lagrangian"],
    ),
    "a wrong slope of a loss": (squares, "cavity", wrong_message, ["dual.lambda", "sources"]),
    "a wrong stationarity": (
        gardner, "cavity", wrapped(kkt, "_heard_back", lambda e: 2 * e), ["stationarity.w", "sources"],
    ),
    "a wrong stationarity of a bias": (
        output_bias, "cavity",
        wrapped(kkt, "_sum_over", lambda e: e if site_quantities(e, Coupling) else Sum(e.function + 1, *e.limits)),
        ["stationarity.b"],
    ),
    "a wrong complementary pair": (
        gardner, "cavity", replaced(kkt, "Complementary", lambda p, q: Complementary(p, q + 1)), ["complementarity"],
    ),
    # the verbs
    "a shift times five": (gardner, "cavity", wrapped(insert, "_shift", lambda e: 5 * e), ["feature.insert"]),
    "a shift of a vector times five": (
        manifold, "cavity", wrapped(insert, "_shift", lambda e: 5 * e), ["datum.insert"],
    ),
    "the left side of an insertion": (
        gardner, "cavity", replaced(insert, "Perturbation", lambda e: 2 * Perturbation(e)),
        ["feature.insert", "datum.insert"],
    ),
    "a sign in a response": (
        gardner, "cavity", wrapped(respond, "_answer", lambda e: -e), ["feature.respond", "datum.respond"],
    ),
    "a response to the wrong shift": (
        output_bias, "cavity", wrapped(respond, "_answer", lambda e: e / 3), ["feature.respond", "datum.substitute"],
    ),
    "a wrong cavity field": (
        gardner,
        "cavity",
        wrapped(identify, "field_of_site", lambda e: 2 * e),
        ["datum.cavity_field", "datum.substitute"],
    ),
    "a wrong self-coupling": (
        gardner, "cavity", wrapped(identify, "_factor", lambda e: 2 * e),
        ["feature.self_coupling", "feature.cavity_equation"],
    ),
    "a law times three": (
        gardner, "cavity", wrapped(SiteProblem, "equations", lambda rows: [times(3, e) for e in rows]),
        ["feature.cavity_equation", "feature.effective_law", "datum.effective_law"],
    ),
    "a wrong covariance": (
        gardner, "cavity", wrapped(average, "field_covariance", lambda e: e / 2), ["datum.field_statistics"],
    ),
    "a dropped factor of a covariance": (
        output_bias, "cavity", wrapped(average, "coupling_covariance", lambda e: e.subs(N, P)),
        ["feature.field_statistics", "feature.self_coupling_mean"],
    ),
    "a wrong mean echo": (
        gardner, "cavity", wrapped(average, "self_coupling_mean", lambda e: 2 * e),
        ["feature.self_coupling_mean", "feature.effective_law"],
    ),
    "half of an echo that was dropped": (
        gardner, "naive", half_an_echo, ["feature.naive_drop", "feature.effective_law"],
    ),
    # the single site
    "a wrong linear solution": (
        gardner, "cavity", wrapped(linear, "tidy_fraction", lambda e: 2 * e), ["feature.solution"],
    ),
    "wrong branches": (gardner, "cavity", wrapped(SiteSolution, "expression", lambda e: e + 1), ["datum.solution"]),
    "a wrong response": (
        gardner, "cavity", wrapped(SiteEnsemble, "response", lambda e: 2 * e), ["datum.response", "closure.S_lambda"],
    ),
    "a wrong closure": (
        gardner, "cavity", wrapped(derive, "averaged_over", lambda e: 2 * e), ["closure.q_lambda", "closure.q_w"],
    ),
    "a wrong global condition": (
        output_bias, "cavity", wrapped(derive, "conditions", lambda rows: [Equation(e.lhs + 1, e.rhs) for e in rows]),
        ["global.1"],
    ),
    "a wrong fixed value": (
        gardner, "cavity", wrapped(model, "read_fixed", lambda rows: [times(2, e) for e in rows]), ["fixed.1"],
    ),
    # what follows from the closed system
    "a changed closed system": (gardner, "cavity", fewer_closures, ["closed_system"]),
    "a wrong elimination": (
        gardner, "cavity", wrapped(eliminate, "linear_solution", lambda f: f and (2 * f[0], f[1])),
        ["eliminate.q_w", "eliminate.q_lambda", "eliminate.S_lambda", "eliminate.S_w", "result"],  # solved without
    ),
    "a wrong result": (gardner, "cavity", wrapped(Theory, "closed_form", lambda e: 2 * e), ["result"]),
    "wrong moments": (
        gardner, "cavity", wrapped(results, "TruncatedIntegral", lambda e: e.func(e.args[0] ** 2, *e.args[1:])),
        ["truncated_moments"],
    ),
    "a wrong work": (gardner, "cavity", wrapped(identity, "field_by_law", lambda e: e + 1), ["work_identity"]),
    "a load without its responses": (
        gardner, "cavity", wrapped(load, "with_responses", lambda e: 2 * e), ["load.1"],
    ),
    "wrong states in the load": (
        gardner, "cavity", wrapped(load, "_state", lambda e: 2 * e), ["load.1"],
    ),
    "a wrong vector in the load": (
        manifold, "cavity", wrapped(load, "_state", lambda e: 2 * e), ["load.1"],
    ),
    "a wrong load by the identity": (
        gardner, "cavity", wrapped(identity, "linear_solution", lambda f: f and (2 * f[0], f[1])), ["load.identity"],
    ),
    "a line that forgets a pair": (
        gardner, "cavity", wrapped(identity, "_slack", lambda e: e + 1), ["work_identity"],
    ),
    "a wrong identity": (
        gardner, "cavity", other_identity, ["consistency"],
    ),
    "an average that is not integrated by parts": (
        soft_margin, "cavity",
        wrapped(identity, "by_parts", lambda rows: tuple(Equation(c.lhs, 2 * c.rhs) for c in rows)), ["consistency"],
    ),
    "a wrong proof": (gardner, "cavity", wrapped(identity, "prove", wrong_line), ["proof.4"]),
    "a wrong count": (
        gardner, "cavity", wrapped(identity, "_positive_members", lambda rows: [-q for q in rows]),
        ["interpretation.S_lambda"],
    ),
    "two formulas that are one": (
        gardner, "naive", wrapped(identity, "_two_formulas", lambda f: (f[0], f[0])), ["inconsistency"],
    ),
    "a symmetry that is none": (
        soft_margin, "cavity", replaced(symmetry, "find_symmetry", lambda _: Symmetry(True)), ["symmetry"],
    ),
    "a factor that stands elsewhere": (
        gardner, "cavity", wrapped(symmetry, "generalised", lambda f: [Equation(2 * e.lhs, e.rhs) for e in f]),
        ["symmetry"],
    ),
    "a wrong average over an example": (
        kernel_ridge.from_coefficients, "cavity", wrapped(kernel, "over_example", lambda e: 2 * e), ["kernel"],
    ),
    "wrong coefficients of a kernel": (
        kernel_ridge.from_coefficients, "cavity", wrapped(kernel, "cancel", lambda e: 2 * e), ["kernel.coefficients"],
    ),
    "a wrong norm": (
        kernel_ridge.from_coefficients, "cavity", wrapped(kernels.Kernels, "_read", lambda e: 2 * e), ["kernel"],
    ),
    "a name for something else": (
        kernel_ridge, "cavity", wrapped(named, "linear_solution", lambda f: f and (2 * f[0], f[1])), ["named.result"],
    ),
    "a wrong moment of a site": (
        anisotropic, "cavity", wrapped(results, "simplest", lambda e: 2 * e), ["site.q_l_w_w"],
    ),
    # stability
    "a spread that forgets half": (
        gardner, "cavity", wrapped(stability, "message_response", lambda e: e / 2), ["stability.spread"],
    ),
    "a variance counted twice": (
        anisotropic, "cavity", wrapped(stability, "field_covariance", lambda e: 2 * e), ["stability.spread"],
    ),
    "a wrong average of squares": (
        soft_margin, "cavity", wrapped(SiteEnsemble, "response", lambda e: 2 * e), ["stability.average"],
    ),
    "a round that is too long": (
        gardner, "cavity", replaced(stability.Gains, "product", property(lambda g: g.matrix[0][1] ** 2)),
        ["stability"],
    ),
    # the minimum
    "loops that are counted twice": (
        soft_margin, "cavity", wrapped(minimum, "_loops", lambda rows: [*(rows := list(rows)), *rows]),
        ["minimum", "minimum.slopes", "minimum.value"],
    ),
    "loops with another sign": (
        soft_margin, "cavity", wrapped(minimum, "_loops", lambda rows: [(f, -body) for f, body in rows]),
        ["minimum", "minimum.slopes", "minimum.value"],
    ),
    "a minimum of a site without its self-couplings": (
        soft_margin, "cavity", wrapped(fluctuations, "feedback", lambda e: 0 * e), ["minimum", "minimum.value"],
    ),
    "slopes of half the size": (
        soft_margin, "cavity", wrapped(minimum.Minimum, "slope", lambda e: e / 2), ["minimum.slopes"],
    ),
    "another slope in a bias": (
        output_bias, "cavity", wrapped(minimum, "_averaged", lambda e: 2 * e), ["minimum.slopes"],
    ),
    "another objective": (
        soft_margin, "cavity", wrapped(minimum, "objective_of", lambda e: 2 * e), ["minimum.value"],
    ),
    # convex sets
    "a wrong bound": (
        manifold, "cavity", wrapped(set_strategy, "_soft_bound", lambda f: f and (f[0] / 2, f[1])), ["datum.solution"],
    ),
    "wrong states of a projection": (
        manifold, "cavity", wrapped(sets.ProjectionSolution, "value", lambda e: 2 * e + 1), ["datum.solution"],
    ),
    "a wrong response in the interior": (
        manifold, "cavity", replaced(set_steps, "Identity", lambda n: 2 * Identity(n)), ["datum.interior"],
    ),
    "a wrongly differentiated law": (
        manifold, "cavity", wrong_touching(law=lambda e: times(2, e)), ["datum.differentiate"],
    ),
    "a wrong response where the set touches": (
        manifold, "cavity", wrong_touching(field=lambda e: times(2, e)), ["datum.touching"],
    ),
    "a wrong trace where the set touches": (
        manifold, "cavity", wrong_touching(trace=lambda e: e + 1), ["datum.touching_trace", "datum.regimes"],
    ),
    "a wrong response at the tip": (
        manifold, "cavity", wrapped(set_steps, "tip_response", lambda f: (*f[:2], f[2] / 2)),
        ["datum.tip", "datum.regimes"],
    ),
    "a wrong response of saturated slack": (
        soft_manifold, "cavity",
        wrapped(set_steps, "saturated_response", lambda f: replace(f, message=times(2, f.message))),
        ["datum.saturated"],
    ),
    "a wrong average over a set": (
        manifold, "cavity", wrapped(sets.VectorEnsemble, "at_site", lambda e: 2 * e),
        ["datum.response", "closure.S_Lambda", "closure.q_Lambda"],
    ),
    "a support function that is twice itself": (
        manifold, "cavity", wrapped(declared, "Extremum", lambda e: e.func(2 * e.body, *e.args[1:])), ["support.g_S"],
    ),
    "an anchor point of another component": (
        manifold, "cavity", wrapped(declared, "Extremum", lambda e: e.func(*e.args[:3], 1)), ["support.g_S"],
    ),
    "a minimum of another function": (
        manifold, "cavity", wrapped(set_steps, "Extremum", lambda e: e.func(-e.body, *e.args[1:])), ["datum.minimum"],
    ),
    "a minimum at another bound": (
        manifold, "cavity",
        wrapped(set_steps, "Extremum", lambda e: e.func(*e.args[:2], e.domain.lts < e.domain.gts - 1, e.at)),
        ["datum.minimum"],
    ),
    "a wrong multiplier": (
        manifold, "cavity", wrapped(set_steps, "form", lambda e: 2 * e), ["datum.multiplier"],
    ),
    "a response by a wrong multiplier": (
        manifold, "cavity", wrong_touching(solved=lambda e: times(2, e)), ["datum.touching"],
    ),
    "a wrong density": (manifold, "cavity", replaced(stein, "pi", stein.pi / 2), ["stein.parts"]),
    "a wrong divergence": (manifold, "cavity", replaced(stein, "DIVERGENCE", 2 * stein.DIVERGENCE), ["stein.parts"]),
    "a wrong theorem of Euler": (
        manifold, "cavity", replaced(stein, "LAM", 2 * stein.LAM), ["euler", "stein.conclusion"],
    ),
    "a wrong integration by parts": (manifold, "cavity", replaced(stein, "PSI", 2 * stein.PSI), ["stein"]),
}  # fmt: skip


def derived(source, method):
    """The record of a problem, derived anew by the rules as they are now."""
    return getattr(anew(source), method)().derivation


def anew(source):
    """A problem that knows nothing of what was derived of it before."""
    problem = getattr(source, "problem", source)
    if isinstance(problem, System):
        return System(problem.declared, problem.conditions, problem.fixed, source=problem.source, named=problem.named)
    return ConvexProblem(*problem.typed, problem.fixed, name=problem.name, source=problem.source)


@pytest.mark.parametrize("name", SABOTAGES)
def test_a_broken_rule_is_named(name, monkeypatch):
    source, method, sabotage, named = SABOTAGES[name]
    sabotage(monkeypatch)
    record = derived(source, method)
    silent = [key for key in named if all(v.ok for v in record[key].verdicts(20))]
    assert not silent, f"{name}: nothing was said of {', '.join(silent)}"


def test_the_whole_record_fails_where_one_rule_is_broken(monkeypatch):
    wider_margin(monkeypatch)
    theory = anew(gardner).cavity()
    assert str(theory.closed_form(Symbol("alpha", positive=True))) == "1/phi(2, kappa/2)"
    outcome = theory.derivation.verify(20)
    assert not outcome
    assert "lagrangian" in {row.step.key for row in outcome.failed}
