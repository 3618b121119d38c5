"""Witnesses of laws that are given by a convex set: explicit sets, explicit matrices, direct quadrature."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Piecewise, S, Symbol, diff

from symcavity.algebra.matrices import evaluate
from symcavity.algebra.precision import exact_function, mp
from symcavity.model.equations import Equation
from symcavity.record.derivation import Step, Verdict
from symcavity.shapes.base import INTERIOR, WHOLE
from symcavity.witness.declared import declared_of
from symcavity.witness.effective import SolvedLaw
from symcavity.witness.explicit_sets import projected, shapes
from symcavity.witness.inserted import InsertedSite
from symcavity.witness.moments import free_points
from symcavity.witness.registry import largest, to_digits, witness
from symcavity.witness.set_averages import projecting
from symcavity.witness.set_points import (
    gap_of,
    in_strength,
    of_size,
    response_point,
    shares,
    site_values,
    with_response,
    with_strength,
)

EXPLICIT = "explicit convex sets"
WHICH = {"regime_interior": INTERIOR, "regime_tip": WHOLE}


# -- the projection --------------------------------------------------------------------------------


def site_of(step: Step) -> Any:
    """The site of a kind that projects: the one that the step is about."""
    sites = step.evidence["theory"].inserted
    kind = step.data.get("kind")
    return sites[kind] if kind is not None else projecting(step.evidence["theory"])


@witness("projection")
def projection(step: Step, _dps: int) -> list[Verdict]:
    """The claimed states at projections of seeded fields, in the declared equations of the new site.

    The vectors and the multiplier are the projection's; everything else is what the step claims.
    """
    theory, kind = step.evidence["theory"], step.data["kind"]
    solution = theory.inserted[kind].solution
    convex, zero = solution.convex, {kind.index: S.Zero}
    claims = {c.lhs: c.rhs for c in step.claims}
    if convex.Lam.xreplace(zero) not in claims:
        return [Verdict(EXPLICIT, False, "no claim about the vector multiplier")]
    worst, supporting = mp.mpf(0), 0
    declared = declared_of(theory)
    for seed in range(3):
        site = InsertedSite(declared, kind, declared.world(seed + 50))
        world, law = site.world, SolvedLaw(theory, site, sourced=False)
        heard = [f for f in theory.system.laws[kind].fields if f.components]
        factors = dict(zip(heard, solution.etas.values(), strict=True))
        components = [next(iter(env.values())) for env in site.components(heard[0])]
        low = components[0]
        for shape in (s for s in shapes(convex.components.size) if s.dimension == len(components)):
            bound, cap, strength, softness = (
                float(world.value(e.xreplace(zero)))
                for e in (solution.bound, solution.cap, solution.strength, solution.softness)
            )
            T = np.random.default_rng(seed).normal(size=(14, len(components))) * (0.5 + 1.5 * abs(bound))
            V, lam, s = projected(shape, T, bound, cap, strength, softness)
            for t, v, multiplier, anchor in zip(T, V, lam, s, strict=True):
                world.touching = float(shape.support(v[None])[0]), anchor
                full = multiplier >= cap * (1 - 1e-12)  # at its bound, but for rounding
                lam_at = world.value(solution.cap.xreplace(zero)) if full else mp.mpf(float(multiplier))
                world.given[world.key(convex.lam.xreplace(zero), {})] = lam_at
                shared = shares(t, [float(world.value(c.xreplace(zero))) for c in factors.values()], seed)
                for k in components:
                    for f, part in zip(factors, shared, strict=True):
                        eta = law.etas[f]
                        at = {convex.components.index: k, **dict.fromkeys(eta.indices, k)}
                        world.given[world.cavity_key(eta, at)] = mp.mpf(float(part[k - low]))
                    world.given[world.key(convex.V.xreplace(zero), at)] = mp.mpf(float(v[k - low]))
                for q, expr in claims.items():
                    for env in free_points(world, [Equation(q, q)]):
                        world.given[world.key(q, env)] = world.value(expr, env)
                if len(heard) > 1:  # the vectors that add up to V
                    for f, q in zip(heard, convex.parts, strict=True):
                        for env in site.components(f):
                            world.given[world.key(q, {**env, kind.index: 0})] = law.heard(f, env)
                worst = largest(worst, law.residual())
                supporting += int(multiplier > 0)
    ok = bool(worst < 1e-8) and supporting > 20
    good = "the declared equations at projections of seeded fields on explicit sets"
    return [Verdict(EXPLICIT, ok, good if ok else f"residual {mp.nstr(worst, 3)}")]


# -- the response ----------------------------------------------------------------------------------


@witness("regime_touching", "touching_response", "touching_trace")
def matrices(step: Step, dps: int) -> list[Verdict]:
    """Explicit matrices of numbers, and derivatives of explicit projections."""
    side, response = site_of(step), step.evidence["response"]
    size = side.solution.convex.components.size
    worst = mp.mpf(0)
    with mp.workdps(dps + 12):
        for rows in [int(size)] if size.is_Integer else [2, 3]:
            for seed in range(2):
                values = response_point(side, response, rows, seed)
                worst = largest(worst, *(gap_of(c, values) for c in step.claims))
    ok = bool(worst < mp.mpf(10) ** (-dps + 8))
    out = to_digits(ok, dps - 8, dps, "with explicit matrices", f"differs by {mp.nstr(worst, 3)}")
    return out + _differences(step, min(dps, 50))


def _differences(step: Step, dps: int) -> list[Verdict]:
    """The claims at explicit sets, where dV/dI and dlambda/dI are difference quotients of the solved law."""
    side, response = site_of(step), step.evidence["response"]
    strength, lam = side.solution.strength, side.solution.convex.lam.xreplace({side.law.index: S.Zero})
    worst, count = mp.mpf(0), 0
    unit = evaluate(side.solution.softness, in_strength(side, lambda: mp.mpf(1)))
    for shape, point in explicit_points(dps, unit):
        size = side.solution.convex.components.size
        if size.is_Integer and shape.dimension != int(size):
            continue
        values: dict[Any, Any] = {
            response.J: point["J"], response.l: point["l"], response.s: point["s"], response.H: point["H"],
            response.message.lhs: point["M"], lam: point["lam"],
        }  # fmt: skip
        with mp.workdps(dps + 12):
            values |= with_strength(side, point["F"])
            rows = shape.dimension
            values |= of_size(side.solution.convex.components.size, rows)
            values[response.P] = mp.inverse(mp.eye(rows) - point["F"] * point["lam"] * point["H"])
            if strength.is_number:
                continue
            worst = largest(worst, *(gap_of(c, values) for c in step.claims))
            count += 1
    if not count:
        return []
    ok = bool(worst < mp.mpf(10) ** (-dps + 10))
    how = "difference quotients of explicit projections (ball D = 1, ellipsoid D = 2)"
    return to_digits(ok, dps - 10, dps, how, f"differs by {mp.nstr(worst, 3)} from {how}")


def _solved_law(law: tuple[Any, ...], T: list[Any], guess: list[Any], dps: int) -> list[Any]:
    """Solve ``V = T + F*lambda*grad g(V)``, ``g(V) = bound - softness*lambda`` by Newton's method."""
    value, slope, F, bound, softness, rows = law

    def gap(*z: Any) -> list[Any]:
        v, lam = z[:rows], z[rows]
        s = slope(*v)
        return [*(v[k] - T[k] - F * lam * s[k] for k in range(rows)), value(*v) - bound + softness * lam]

    tolerance = mp.mpf(10) ** (-3 * dps - 20)
    return list(mp.findroot(gap, guess, tol=tolerance, maxsteps=80, verify=False))


@lru_cache(maxsize=4)
def explicit_points(dps: int, softness: Any) -> list[tuple[Any, dict[str, Any]]]:
    """Points where explicit sets touch, with the derivatives of the law's solution by central differences."""
    from symcavity.shapes import Ball, Ellipsoid
    from symcavity.shapes.slack import with_slack

    out = []
    cases = (
        (Ball(1, "0.7"), (1.3, -0.4)),
        (Ellipsoid(["1", "0.4"]), (0.9, -1.1, -0.2)),
        (Ball(2, "0.5"), (-0.8, 0.7, 0.1)),
    )
    for shape, start in cases:
        rows = shape.dimension
        X = [Symbol(f"x{k}", real=True) for k in range(rows)]
        g = shape.symbolic_support(X)
        gradient = [diff(g, x) for x in X]
        hessian = [
            [diff(e, y).replace(lambda e: e.func.__name__ == "DiracDelta", lambda _: S.Zero) for y in X]
            for e in gradient
        ]
        F, bound = mp.mpf("0.8"), mp.mpf(1)
        with mp.workdps(2 * dps + 30):
            value, slope, curve = (exact_function(X, e) for e in (g, gradient, hessian))
            p = with_slack(shape, np.array([start]), 1, np.inf, float(softness) / 0.8)
            guess = [float(v) for v in p.v[0]] + [float(p.lam[0]) / 0.8]
            base = [mp.mpf(str(t)) for t in start]

            law = (value, slope, F, bound, softness, rows)
            here = _solved_law(law, base, guess, dps)
            step = mp.mpf(10) ** (-dps // 2 - 8)
            J, l = mp.zeros(rows, rows), mp.zeros(rows, 1)
            for c in range(rows):
                up, down = ([t + w * step * (k == c) for k, t in enumerate(base)] for w in (1, -1))
                a, b = _solved_law(law, up, here, dps), _solved_law(law, down, here, dps)
                for r in range(rows):
                    J[r, c] = (a[r] - b[r]) / (2 * step)
                l[c] = (a[rows] - b[rows]) / (2 * step)
            s, H = mp.matrix(slope(*here[:rows])), mp.matrix(curve(*here[:rows]))
            M = (J - mp.eye(rows)) / F
        out.append((shape, {"J": J, "l": l, "s": s, "H": H, "M": M, "lam": here[rows], "F": F}))
    return out


@witness("regime_interior", "regime_tip")
def regime(step: Step, _dps: int) -> list[Verdict]:
    """The claims at explicit sets: difference quotients of their projections in the regime."""
    side, response, which = site_of(step), step.evidence["response"], WHICH[step.rule]
    strength = side.solution.strength
    worst, count = 0.0, 0
    for shape in shapes(side.solution.convex.components.size):
        values = in_strength(side, lambda: mp.mpf("0.8"))
        rho = float(evaluate(side.solution.softness, values) / evaluate(strength, values))
        for _, _, J in _quotients(shape, which, rho=rho):
            rows = shape.dimension
            values |= of_size(side.solution.convex.components.size, rows)
            F = evaluate(strength, values)
            values[response.J] = mp.matrix(J.tolist())
            values[response.message.lhs] = (values[response.J] - mp.eye(rows)) / F
            if "n" in step.evidence:
                values[step.evidence["n"]] = normal(shape)
            worst = largest(worst, *(float(gap_of(c, values)) for c in step.claims))
            count += 1
    ok = worst < 1e-6 and count > 4
    detail = f"difference quotients of {count} projections on explicit sets" if ok else f"differs by {worst:.2g}"
    return [Verdict(EXPLICIT, ok, detail)]


def normal(shape: Any) -> Any:
    """The vector that has the product one with every point of a flat set."""
    points = shape.anchor(np.random.default_rng(4).normal(size=(60, shape.dimension)))
    return mp.matrix(np.linalg.lstsq(points, np.ones(60), rcond=None)[0].tolist())


def _quotients(
    shape: Any, which: int, bound: float = 1.0, cap: float = np.inf, many: int = 6, rho: float = 0.0
) -> Iterator[Any]:
    """Sources, projections (one at a time) and difference quotients dv/dt in one regime."""
    from symcavity.shapes.slack import with_slack

    rng = np.random.default_rng(8)
    t = rng.normal(size=(4000, shape.dimension)) * 1.5
    p = with_slack(shape, t, bound, cap, rho)
    found = 0
    for k in np.flatnonzero(p.regime == which):
        J = _quotient(shape, t[k], which, bound, cap, rho)
        if J is None:
            continue
        yield t[k], with_slack(shape, t[k : k + 1], bound, cap, rho), J
        found += 1
        if found == many:
            return


def _quotient(shape: Any, t: Any, which: int, bound: float, cap: float, rho: float) -> Any:
    """The difference quotient dv/dt, or None next to another regime."""
    from symcavity.shapes.slack import with_slack

    step, n = 1e-6, shape.dimension
    around = with_slack(shape, np.concatenate([t + step * np.eye(n), t - step * np.eye(n)]), bound, cap, rho)
    return None if (around.regime != which).any() else ((around.v[:n] - around.v[n:]) / (2 * step)).T


@witness("regime_saturated")
def saturated(step: Step, _dps: int) -> list[Verdict]:
    """The claims at explicit sets: difference quotients of projections with slack, which are minima indeed.

    This is tested with the optimality conditions, and not taken from the nearest points.
    """
    side, response, theirs = site_of(step), step.evidence["response"], step.evidence["saturated"]
    solution, size = side.solution, side.solution.convex.components.size
    zero = {side.law.index: S.Zero}
    worst, count = 0.0, 0
    for seed, shape in enumerate(shapes(size)):
        values = site_values(side, seed)
        bound, F, C = (float(e.xreplace(values)) for e in (solution.bound, solution.strength, solution.cap))
        rows = shape.dimension
        values |= {q.xreplace(zero): v for q, v in values.items()}
        values |= {s: rows - int(size.subs(s, 0)) for s in size.free_symbols}
        for t, p, J in _quotients(shape, 4, bound, F * C):
            v, s = p.v[0], p.anchor[0]
            level = float(shape.support(v))
            # the minimum: a step C along a point s of the set that v sees at g(v), below the bound
            away = np.random.default_rng(seed).normal(size=(200, rows))
            miss = [v @ s - level, level - bound, *(shape.support(away) - away @ s), *np.abs(v - t - F * C * s)]
            values[side.solution.convex.lam.xreplace(zero)] = mp.mpf(float(p.lam[0]) / F)
            values[theirs.N] = mp.matrix(shape.nearest(-t / (F * C)).jacobian[0].tolist())
            values[response.J] = mp.matrix(J.tolist())
            values[response.message.lhs] = (values[response.J] - mp.eye(rows)) / F
            worst = largest(worst, *miss, *(float(gap_of(c, values)) for c in step.claims))
            count += 1
    ok = worst < 1e-6 and count > 4
    detail = f"difference quotients of {count} projections with slack on explicit sets"
    return [Verdict(EXPLICIT, ok, detail if ok else f"differs by {worst:.2g} from {detail}")]


@witness("regimes")
def regimes(step: Step, _dps: int) -> list[Verdict]:
    """The claimed psi against the divergence of explicit projections, in all regimes."""
    from symcavity.shapes.slack import with_slack

    side, response = site_of(step), step.evidence["response"]
    claim = step.claims[0].rhs
    if not isinstance(claim, Piecewise):
        return [Verdict(EXPLICIT, False, "no cases")]
    cases = {int(next(a for a in test.args if a.is_Integer)): value for value, test in claim.args}
    size = side.solution.convex.components.size
    slack = step.evidence.get("saturated")
    cap = np.inf if slack is None else 1.2
    unit = in_strength(side, lambda: mp.mpf(1))
    softness = evaluate(side.solution.softness, unit)
    rho = float(softness / evaluate(side.solution.strength, unit))
    worst, seen = 0.0, set()
    for shape in shapes(size):
        rng = np.random.default_rng(9)
        t = rng.normal(size=(600, shape.dimension)) * 1.5
        p = with_slack(shape, t, 1, cap, rho)
        for code in sorted(set(p.regime.tolist())):
            picked = np.flatnonzero(p.regime == code)[:5]
            for k in picked:
                J = _quotient(shape, t[k], code, 1, cap, rho)
                if J is None:
                    continue
                rows = shape.dimension
                divergence = float(np.trace(J)) - rows
                values: dict[Any, Any] = {**unit, step.evidence["n"]: normal(shape)}
                values |= {s: rows - int(size.subs(s, 0)) for s in size.free_symbols}
                if code == 1:
                    try:
                        H = shape.hessian(p.v[k])
                    except Exception:  # noqa: BLE001, S112 - no Hessian here: a flat set, which touches at a corner
                        continue
                    lam = side.solution.convex.lam.xreplace({side.law.index: S.Zero})
                    values[lam] = mp.mpf(float(p.lam[k])) / evaluate(side.solution.strength, values)
                    args = (values[lam], mp.matrix(p.anchor[k].tolist()), mp.matrix(H.tolist()), rows, softness)
                    values |= with_response(response, evaluate(side.solution.strength, values), *args)
                if code == 4 and slack is not None:
                    values[slack.N] = mp.matrix(shape.nearest(-t[k] / cap).jacobian[0].tolist())
                if code == 2 and rho:  # the absorbed directions are counted with the slack as one more
                    continue
                if code == 2:
                    worst = largest(worst, abs(divergence + float(p.absorbed[k])))
                    continue
                if code not in cases:
                    return [Verdict(EXPLICIT, False, f"regime {code} occurs on {shape!r}, and is not among the cases")]
                seen.add(code)
                worst = largest(worst, abs(divergence - float(evaluate(cases[code], values))))
    ok = worst < 1e-5 and seen == {0, 1, 3} | ({4} if slack else set())
    detail = "the divergence of explicit projections in every regime" if ok else f"differs by {worst:.2g}"
    return [Verdict(EXPLICIT, ok, detail)]
