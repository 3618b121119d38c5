"""A kernel and its eigenfunctions: what takes the place of its coefficients, and what these are at the minimum."""

from __future__ import annotations

from typing import Any

from sympy import Expr, Mul, Sum, cancel

from symcavity.algebra.indexed import contract, fresh_index
from symcavity.method.average import coupling_covariance, is_coupling
from symcavity.model.equations import Equation
from symcavity.model.kinds import DATUM, FEATURE
from symcavity.model.quantities import SiteQuantity
from symcavity.model.system import System
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.symbols import ExampleAverage


def kernel_steps(system: System, make: StepMaker) -> list[Step]:
    """The eigenfunctions of a kernel, and the variable of the features that its coefficients become."""
    expansion = system.rewritten["kernel"]
    if not expansion:
        return []
    kernel, w, coefficients = expansion.kernel, expansion.weights, expansion.coefficients
    i, mu = FEATURE.index, DATUM.index
    j, nu = fresh_index(i, {i}), fresh_index(mu, {mu})
    phi, rho = kernel.functions, kernel.values
    value = kernel[mu, nu]
    inside = rho[j] * phi[mu, j] * phi[nu, j] * phi[nu, i], nu, (j, 1, FEATURE.size)
    claims = [
        Equation(value, value.expanded),
        Equation(ExampleAverage(phi[mu, i] * phi[mu, j], mu), over_example(phi[mu, i] * phi[mu, j], mu)),
        Equation(ExampleAverage(value * phi[nu, i], nu), over_example(*inside)),
        *(Equation(total, new) for total, new in expansion.replaced.items()),
        Equation(w, rho[i] * Sum(coefficients * phi[mu, i], DATUM.range)),
    ]
    data = {"kernel": value, "weights": w, "coefficients": coefficients}
    make = make.within("The problem")
    return [make("kernel", "kernel", claims, data=data, rests_on=("problem",))]


def over_example(body: Expr, index: Expr, *limits: Any) -> Expr:
    """The average of a product of two eigenfunctions at one example, and of what does not depend on it, summed."""
    fresh: list[Any] = []
    rest: list[Any] = []
    for factor in Mul.make_args(body):
        (fresh if is_coupling(factor) and index in factor.indices else rest).append(factor)
    first, second = fresh
    mean = coupling_covariance(first, second) * Mul(*rest)
    return contract(Sum(mean, *limits)) if limits else mean


def coefficient_steps(system: System, make: StepMaker) -> list[Step]:
    """The coefficients at the minimum, where the norm is the only penalty: stationarity, in their own terms."""
    expansion = system.rewritten["kernel"]
    if not expansion:
        return []
    kernel, w, coefficients = expansion.kernel, expansion.weights, expansion.coefficients
    i, mu = FEATURE.index, DATUM.index
    for state, equation in system.record.stationarity:
        strength = cancel(equation.lhs * kernel.values[i] / w)
        (total, *more) = equation.rhs.atoms(Sum) or [None]
        if state != w or total is None or more or strength.has(SiteQuantity):
            continue
        message = Mul(equation.rhs / total, total.function / kernel.functions[mu, i])
        own = {e.lhs: e.rhs for e in system.laws[DATUM].equations}
        while found := [q for q in message.atoms(SiteQuantity) if q in own]:
            message = message.xreplace({q: own[q] for q in found})
        fields = {f.symbol: f.as_sum for f in system.laws[DATUM].fields}
        claim = Equation(strength * coefficients, message.xreplace(fields))
        make = make.within("Optimality conditions")
        rests = ("kernel", f"stationarity.{w.family.name}")
        return [make("kernel.coefficients", "kernel_coefficients", [claim], data={"weights": w}, rests_on=rests)]
    return []
