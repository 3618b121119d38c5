"""The strategy for laws of several states that have to be solved together: a system of equations, in numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from sympy import Expr, Heaviside, Piecewise, S, latex, linear_eq_to_matrix, sign
from sympy.solvers.solveset import NonlinearError

from symcavity.algebra.joint import JointLaw, LawSymbol, slope
from symcavity.errors import UnsupportedLaw
from symcavity.model.equations import Equation
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.sites.branching.kinks import KINKS, one_argument, piece_of
from symcavity.sites.branching.strategy import sign_relations
from symcavity.sites.joint.solution import JointEnsemble, JointSolution
from symcavity.sites.loose import open_multipliers
from symcavity.sites.protocol import LawSolution, SiteProblem
from symcavity.sites.site import Site, response_steps


class Joint:
    """Laws of convex problems whose states have to be found together, field by field, in numbers.

    Several equations stay after all that is linear was eliminated; or what one state sends comes back to another, by
    an answer of unknown sign; or several fields come back in so many ways that a formula is of no use.
    """

    is_linear = False

    def applies(self, problem: SiteProblem) -> bool:
        """Whether several equations are left, on some branch, that are not linear; or the law is crossed, or large."""
        if problem.is_large:
            return True
        unknowns = list(problem.law.unknowns)
        equations = [e.difference for e in problem.equations()]
        if len(equations) + len(problem.law.pairs) < 2 or _are_linear([*equations, *_members(problem)], unknowns):
            return False
        if problem.convex and problem.is_crossed:
            return True
        pieces = (
            [_one_piece(e, unknowns, last) for e in [*equations, *some]]
            for last in (False, True)
            for some in product(*(p.pair for p in problem.law.pairs[:3]))
        )
        return any(len(_eliminated(ps, unknowns)[0]) > 1 and one_argument(ps, unknowns) is None for ps in pieces)

    def solve(self, problem: SiteProblem) -> LawSolution:
        """Put the law into symbols, without the states that others give.

        Raises
        ------
        UnsupportedLaw
            If the law belongs to no convex problem: it may have several solutions.
        """
        if not problem.convex:
            raise UnsupportedLaw(
                f"{problem.text} fixes several states together by equations that are not linear.",
                "such laws where they are the optimality conditions of a convex problem: they have one solution",
            )
        symbols = _symbols(problem)
        rule: dict[Any, Any] = {f: f.signed(s) for f, s in problem.proved.items()}
        sources = problem.plain_sources()
        equations = [e.difference.xreplace(sources).xreplace(rule).xreplace(symbols) for e in problem.equations()]
        pairs = [p.pair for p in problem.law.pairs]
        unknowns = [symbols[q] for q in problem.law.unknowns]
        edges = [symbols[m] for pair in pairs for m in pair if m in symbols]
        # nothing is divided by what may vanish, as responses from one field to another do; a large law is not to grow
        etas = [symbols[h.eta] for h in problem.ordered()]
        left, definitions = _eliminated(
            equations, unknowns, edges, etas, lambda rate: rate.is_number if problem.is_large else rate.is_nonzero
        )
        given = dict(definitions)
        law = JointLaw(
            [x for x in unknowns if x not in given],
            etas,
            left,
            [tuple(m.xreplace(rule).xreplace(symbols).xreplace(given) for m in pair) for pair in pairs],
            definitions,
            [symbols[s] for s in sources.values()],
        )
        if len(law.equations) + len(law.pairs) != len(law.unknowns):
            raise UnsupportedLaw(f"{problem.text} does not fix its states.", "as many equations as states")
        law = _smooth(law)
        return LawSolution(JointSolution(law, symbols, problem.law.unknowns, problem.inner().eta), dict(problem.proved))

    def ensemble(self, site: Site) -> JointEnsemble:
        """The averages of the site over its Gaussian fields."""
        etas = tuple(h.eta for h in site.problem.ordered())
        return JointEnsemble(site.kind, site.solution, etas, dict(site.covariance), site.sources())

    def steps(self, site: Site, make: StepMaker, wanted: Sequence[Expr]) -> list[Step]:
        """The equations that are left, what the others give, and the responses by differentiating them."""
        key, zero = site.kind.key, {site.kind.index: S.Zero}
        solution: JointSolution = site.solution
        law = solution.law

        def shown(expr: Expr) -> Expr:
            return solution.quiet(expr).xreplace(solution.names).xreplace(zero)

        relations = sign_relations(site)
        claims = [Equation(shown(x), shown(e)) for x, e in law.definitions]
        claims += [Equation(shown(e), S.Zero) for e in law.equations]
        signs = (("sign", {"relations": relations}),) if relations else ()
        loose = [m.xreplace(zero) for m in open_multipliers(site.law.pairs, site.law.unknowns)]
        flat = not law.pairs and not any(e.diff(x).has(*law.unknowns) for e in law.equations for x in law.unknowns)
        data = {"kind": site.kind, "unknowns": [shown(x) for x in law.unknowns], "linear": flat}
        pairs, fields = [tuple(map(shown, pair)) for pair in law.pairs], [h.eta for h in site.problem.heard]
        solved = make(
            f"{key}.solution",
            "joint",
            claims,
            data={**data, "pairs": pairs, "fields": fields, "loose": loose},
            assumptions=(("convexity", {}), *signs),
            rests_on=(f"{key}.effective_law",),
        )
        if not wanted:
            return [solved]
        symbols = {source: solution.symbols[plain] for source, plain in site.problem.plain_sources().items()}
        sent = ((q, h.source) for q in site.law.unknowns for h in site.heard if symbols[h.source] in law.sources)
        differentiated = make(
            f"{key}.differentiate",
            "joint_slopes",
            [Equation(shown(_differentiated(e, law, source)), S.Zero) for source in law.sources for e in law.equations],
            data={**data, "pairs": bool(law.pairs)},
            rests_on=(f"{key}.solution",),
            evidence={"slopes": {(q, source): slope(solution.symbols[q], symbols[source]) for q, source in sent}},
        )
        return [solved, differentiated, *response_steps(site, make, wanted, f"{key}.differentiate")]


def _differentiated(equation: Expr, law: JointLaw, source: LawSymbol) -> Expr:
    """The derivative of an equation along a source, with a symbol for the response of each unknown."""
    return equation.diff(source) + sum((equation.diff(x) * slope(x, source) for x in law.unknowns), S.Zero)


def _symbols(problem: SiteProblem) -> dict[Any, LawSymbol]:
    """A symbol of the law for each state, cavity field and source."""
    zero = {problem.kind.index: S.Zero}
    out: dict[Any, LawSymbol] = {}
    for q in problem.law.unknowns:
        here = q.xreplace(zero)
        out[q] = LawSymbol(str(here) if q.family.components else q.family.name, latex(here))
    for h in problem.heard:
        out[h.eta] = LawSymbol(str(h.eta), latex(h.eta))
    for source, plain in problem.plain_sources().items():
        out[plain] = LawSymbol(f"{plain}_{problem.kind.key}", latex(source.xreplace(zero)))
    return out


def _members(problem: SiteProblem) -> list[Expr]:
    return [m for pair in problem.law.pairs for m in pair.pair]


def _are_linear(exprs: Sequence[Expr], unknowns: Sequence[Expr]) -> bool:
    """Whether expressions are linear in all unknowns together: what is left of them is one equation at most."""
    try:
        linear_eq_to_matrix(list(exprs), list(unknowns))
    except NonlinearError:
        return False
    return True


def _smooth(law: JointLaw) -> JointLaw:
    """A law without the sources along which it jumps, whatever its unknowns are: by a sign, a step, or cases."""
    tests: set[Any] = set()
    for e in law.expressions:
        tests |= {k.args[0] for k in e.atoms(sign, Heaviside)}
        tests |= {test for k in e.atoms(Piecewise) for _, test in k.args}
    jumping = [s for s in law.sources if any(t.has(s) and not t.has(*law.unknowns) for t in tests)]
    quiet = law.xreplace(dict.fromkeys(jumping, S.Zero))
    rest = [s for s in law.sources if s not in jumping]
    return JointLaw(quiet.unknowns, quiet.fields, quiet.equations, quiet.pairs, quiet.definitions, rest)


def _one_piece(expr: Expr, unknowns: Sequence[Expr], last: bool) -> Expr:
    """An expression with one piece chosen of each kink: the first, or the last."""
    while True:
        kinks = sorted((k for k in expr.atoms(*KINKS) if k.has(*unknowns)), key=lambda k: (k.count_ops(), str(k)))
        if not kinks:
            return expr
        expr = expr.xreplace({kinks[0]: piece_of(kinks[0], last)})


def _eliminated(
    equations: Sequence[Expr],
    unknowns: Sequence[Any],
    edges: Sequence[Any] = (),
    heard: Sequence[Any] = (),
    fine: Callable[[Expr], bool | None] = bool,
) -> tuple[list[Expr], list[tuple[Any, Expr]]]:
    """The equations that remain once every unknown that stands alone and linearly in one of them is put in.

    Of several unknowns those come first that vanish with one of the ``edges``, the members of pairs: what is zero there
    is so without rounding.  One is put in where its factor is ``fine``; one whose factor is no number not where
    ``heard`` fields stand beside products of unknowns: what is left would hold fields times unknowns.
    """
    left, given = list(equations), dict[Any, Expr]()
    free = list(unknowns)
    while True:
        hits = (
            (k, x, rate)
            for k, e in enumerate(left)
            for x in free
            if e.has(x) and (rate := e.diff(x)) != 0 and not rate.has(*unknowns) and fine(rate)
            if rate.is_number or not (heard and e.has(*heard)) or not any(e.diff(y).has(*unknowns) for y in free)
        )
        hit = min(hits, key=lambda h: (not h[2].is_number, not _vanishes(left[h[0]], h[1], edges), h[0]), default=None)
        if hit is None:
            return left, list(given.items())
        k, x, rate = hit
        value = (-left[k].xreplace({x: S.Zero}) / rate).expand(deep=False)
        given = {q: e.xreplace({x: value}) for q, e in given.items()} | {x: value}
        left = [e.xreplace({x: value}) for n, e in enumerate(left) if n != k]
        left = [e for e in left if e.has(*unknowns)]
        free.remove(x)


def _vanishes(equation: Expr, unknown: Any, edges: Sequence[Any]) -> bool:
    return any(m != unknown and not equation.xreplace({unknown: S.Zero, m: S.Zero}) for m in edges)
