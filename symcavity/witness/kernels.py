"""Witnesses of a kernel and its eigenfunctions: everything written out at small sizes, with seeded numbers."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

from sympy import Expr, Sum

from symcavity.algebra.precision import mp
from symcavity.model.equations import Equation
from symcavity.model.kernels import KernelValue
from symcavity.model.kinds import DATUM, FEATURE
from symcavity.model.quantities import SiteQuantity
from symcavity.record.derivation import BRUTE_FORCE, Step, Verdict
from symcavity.record.symbols import ExampleAverage
from symcavity.witness.registry import largest, result, witness
from symcavity.witness.world import same

SIZES = {FEATURE.size: 3, DATUM.size: 3}


class Numbers:
    """Seeded numbers for all quantities of all sites; a kernel is what its eigenfunctions make of it."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.given: dict[Any, Any] = {}

    def __call__(self, expr: Expr, env: dict[Any, Any]) -> Any:
        """The value of an expression where the free indices have values."""
        if isinstance(expr, Sum):
            (index, low, high), *rest = expr.limits
            body = Sum(expr.function, *rest) if rest else expr.function
            values = range(int(low), SIZES[high] + 1)
            return mp.fsum(self(body, {**env, index: value}) for value in values)
        if isinstance(expr, ExampleAverage):
            return self._over(expr, env)
        if isinstance(expr, KernelValue):
            phi, rho, i = expr.kernel.functions, expr.kernel.values, FEATURE.index
            first, second = expr.args[1:]
            return self(Sum(rho[i] * phi[first, i] * phi[second, i], FEATURE.range), env)
        if isinstance(expr, SiteQuantity):
            return self.of(expr.family.name, tuple(int(k.xreplace(env)) for k in expr.indices))
        if expr.func.__name__ == "KroneckerDelta":
            return mp.mpf(expr.args[0].xreplace(env) == expr.args[1].xreplace(env))
        if expr.is_Symbol and expr in env:
            return mp.mpf(env[expr])
        if expr.is_Symbol:
            return self.of(expr.name, ())
        if not expr.args:
            return mp.mpf(str(expr.evalf(30)))
        parts = [self(arg, env) for arg in expr.args]
        if expr.is_Pow:
            return parts[0] ** parts[1]
        return mp.fsum(parts) if expr.is_Add else mp.fprod(parts)

    def of(self, name: str, indices: tuple[int, ...]) -> Any:
        """The number of one quantity."""
        key = name, indices
        if key not in self.given:
            rng = random.Random(f"{self.seed} {key}")  # noqa: S311 - seeded sampling, not cryptography
            self.given[key] = mp.mpf(rng.randint(200, 1500)) / 1000
        return self.given[key]

    def _over(self, node: ExampleAverage, env: dict[Any, Any]) -> Any:
        """The average over one example: every sign of every eigenfunction there, which has its variance."""
        body, index = node.args
        phi = next(q.family for q in body.atoms(SiteQuantity) if len(q.indices) == 2)
        at, kept, total = int(index.xreplace(env)), dict(self.given), mp.mpf(0)
        scale = mp.sqrt(self(phi.variance, {**env, FEATURE.size: SIZES[FEATURE.size]}))
        for signs in product((1, -1), repeat=SIZES[FEATURE.size]):
            for k, sign in enumerate(signs):
                self.given[phi.name, (at, k + 1)] = sign * scale
            total += self(body, env)
        self.given = kept
        return total / 2 ** SIZES[FEATURE.size]


def holds(claim: Equation, numbers: Numbers) -> bool:
    """Whether both sides agree for all values of the free indices, two of which are never one example."""
    free = sorted((claim.lhs.free_symbols | claim.rhs.free_symbols) & _indices(claim), key=str)
    for values in product((1, 2, 3), repeat=len(free)):
        env = dict(zip(free, values, strict=True))
        node = next(iter(claim.lhs.atoms(ExampleAverage)), None)
        others = {v for k, v in env.items() if node is not None and k != node.args[1] and _is_example(claim, k)}
        if node is not None and env.get(node.args[1]) in others:
            continue
        if not same(numbers(claim.lhs, env), numbers(claim.rhs, env)):
            return False
    return True


def _indices(claim: Equation) -> set[Any]:
    quantities = claim.difference.atoms(SiteQuantity, KernelValue)
    return {s for q in quantities for k in q.args[1:] for s in k.free_symbols}


def _is_example(claim: Equation, index: Any) -> bool:
    return any(q.indices[0] == index for q in claim.difference.atoms(SiteQuantity) if len(q.indices) == 2)


@witness("kernel")
def kernel(step: Step, _dps: int) -> list[Verdict]:
    """Every line with seeded numbers, where the new variable is what the last line says it is."""
    numbers, (*claims, weights) = Numbers(1), step.claims
    ok = weights.lhs == step.data["weights"]
    for k in range(1, SIZES[FEATURE.size] + 1):
        numbers.given[weights.lhs.family.name, (k,)] = numbers(weights.rhs, {FEATURE.index: k})
    ok = ok and all(holds(claim, numbers) for claim in claims)
    return result(BRUTE_FORCE, ok, "eigenfunctions, examples and coefficients written out, three of each")


@witness("kernel_coefficients")
def coefficients(step: Step, _dps: int) -> list[Verdict]:
    """The slope of the declared problem in its coefficients vanishes where the claim holds: both written out."""
    problem = step.evidence["theory"].system.record.problem
    (claim,) = step.claims
    stage = problem.rewritten.stages["kernel"]
    declared, weights, numbers = stage.before.objective, stage.rewriting, Numbers(2)
    family = weights.coefficients.family
    mu, i = DATUM.index, FEATURE.index
    phi, rho = weights.kernel.functions, weights.kernel.values
    count = SIZES[DATUM.size]

    def at(values: Any) -> Numbers:
        for k, value in enumerate(values):
            numbers.given[family.name, (k + 1,)] = value
        for k in range(1, SIZES[FEATURE.size] + 1):
            own = rho[i] * Sum(family[mu] * phi[mu, i], DATUM.range)
            numbers.given[weights.weights.family.name, (k,)] = numbers(own, {i: k})
        return numbers

    def gap(*values: Any) -> list[Any]:
        found = at(values)
        return [found(claim.lhs, {mu: k + 1}) - found(claim.rhs, {mu: k + 1}) for k in range(count)]

    root = list(mp.findroot(gap, [mp.mpf(k + 1) / 5 for k in range(count)]))
    slopes = [
        mp.diff(lambda x, k=k: at([*root[:k], x, *root[k + 1 :]])(declared, {}), root[k]) for k in range(count)
    ]
    value, worst = at(root)(declared, {}), largest(*map(abs, slopes))
    ok = bool(worst < mp.mpf("1e-8") * (1 + abs(value)))
    return result(BRUTE_FORCE, ok, "the slope of the declared problem in the coefficients vanishes there")
