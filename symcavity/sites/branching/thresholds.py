"""A field that enters a law through thresholds only is averaged first, given the other fields, in closed form.

A label ``sign(h)`` is such a field: given the field in which the law is solved it is one sign or the other, with a
probability that is a truncated moment.  What is left is an average over the other fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from sympy import Dummy, Expr, Heaviside, Mul, S, Symbol, cancel, default_sort_key, false, sign, sqrt, true
from sympy.core.relational import Eq, Ge, Gt, Le, Lt, Ne, Relational

from symcavity.algebra.gaussian import GaussianAverage, gaussian_average
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.phi import gaussian_density
from symcavity.algebra.signs import sign_of
from symcavity.sites.branching.conditioning import given_others, powers

MOST = 2  # thresholds of one field


@dataclass(frozen=True)
class Thresholds:
    """The field, and the expressions at whose zeros the law switches.

    Attributes
    ----------
    field : Symbol
    arguments : tuple of Expr
        Affine in the field, and free of all other fields.
    switches : tuple of (Expr, int, int)
        Signs, steps and comparisons; the argument that each hangs upon, and with which sign.
    """

    field: Symbol
    arguments: tuple[Expr, ...]
    switches: tuple[tuple[Any, int, int], ...]

    def sides(self) -> Iterator[tuple[tuple[int, ...], dict[Any, Any]]]:
        """Yield each choice of the signs of the arguments, and what it makes of the switches."""
        for signs in product((1, -1), repeat=len(self.arguments)):
            rule: dict[Any, Any] = {}
            for switch, number, way in self.switches:
                t = way * signs[number]
                if isinstance(switch, Relational):
                    rule[switch] = true if (t > 0) == isinstance(switch, Gt | Ge) else false
                else:
                    rule[switch] = S(t) if isinstance(switch, sign) else S((1 + t) // 2)
            yield signs, rule

    def average(self, ensemble: Any, body: Expr) -> Expr | None:
        """Average over the field given the others, then over these; None where the body is not a polynomial in it."""
        mean, variance, z = *given_others(ensemble, self.field), Dummy("z", real=True)
        total: Expr = S.Zero
        for signs, rule in self.sides():
            inner = self._without(ensemble, rule)
            parts = powers(inner.solution, body.xreplace(rule), self.field)
            if parts is None:
                return None
            inside = Mul(*(Heaviside(s * a) for s, a in zip(signs, self.arguments, strict=True)))
            for power, part in parts:
                weight = gaussian_average(z**power * inside.xreplace({self.field: z}), z, mean, variance)
                if weight.has(GaussianAverage):
                    return None
                total += inner.over_fields(part * weight)
        return _reflected(total)

    def jump(self, ensemble: Any, body: Expr) -> Expr | None:
        """Average the derivative with respect to the field: what the body jumps by, times the density there."""
        if len(self.arguments) > 1:
            return None
        mean, variance = given_others(ensemble, self.field)
        (argument,) = self.arguments
        slope = argument.diff(self.field)
        place = cancel(self.field - argument / slope)
        density = gaussian_density((place - mean) / sqrt(variance)) / sqrt(variance)
        total: Expr = S.Zero
        for (s,), rule in self.sides():
            inner = self._without(ensemble, rule)
            parts = powers(inner.solution, body.xreplace(rule), self.field)
            if parts is None:
                return None
            for power, part in parts:
                total += inner.over_fields(s * sign(slope) * place**power * part * density)
        return _reflected(total)

    def _without(self, ensemble: Any, rule: dict[Any, Any]) -> Any:
        """The ensemble of the other fields, on one side of each threshold."""
        return replace(ensemble.without(self.field), solution=ensemble.solution.xreplace(rule))


def _reflected(total: Expr) -> Expr:
    """Write averages over laws that mirror each other over one of them: the field is even."""
    nodes = sorted((n for n in total.atoms(ImplicitAverage) if type(n) is ImplicitAverage), key=default_sort_key)
    rule: dict[Expr, Expr] = {}
    for k, node in enumerate(nodes):
        body, x, psi, low, high = node.args
        for first in nodes[:k]:
            _, y, other, start, end = first.args
            if first in rule or y != x or (start, end) != (-high, -low):
                continue
            if (psi.xreplace({x: -x}) + other).expand() == 0:
                rule[node] = ImplicitAverage(body.xreplace({x: -x}), x, other, start, end)
                break
    return total.xreplace(rule)


def find_thresholds(ensemble: Any) -> Thresholds | None:
    """Return the field that enters a law through thresholds only.

    None for laws that have one smooth branch: their averages are closed forms anyway.
    """
    solution = ensemble.solution
    if not ensemble.outer or not (solution.is_implicit or len(solution.regions) > 1):
        return None
    for field in reversed(ensemble.outer):
        found = _thresholds(ensemble, field)
        if found is not None:
            return found
    return None


def _thresholds(ensemble: Any, field: Symbol) -> Thresholds | None:
    """The thresholds of a field which, on each side of them, the law does not hold; None where it does."""
    solution = ensemble.solution
    zero = dict.fromkeys(solution.sources, S.Zero)
    law = [solution.reflection]
    for region in solution.regions:
        law += [e for e in (region.low, region.high, *(region.implicit or ())) if e is not None]
    for branch in solution.branches:
        law += [*branch.conditions, *(branch.implicit or ())]
    pieces: list[Any] = [*solution.regions, *solution.branches]
    states = [v for b in pieces for v in b.values.values()]
    found = {s for e in (*law, *states) for s in e.atoms(sign, Heaviside, Relational) if s.has(field)}
    found |= {s.xreplace(zero) for s in found}
    arguments: list[Expr] = []
    switches: list[tuple[Any, int, int]] = []
    for switch in sorted(found, key=str):
        argument = switch.gts - switch.lts if isinstance(switch, Relational) else switch.args[0]
        argument = argument.xreplace(zero).expand()
        slope = argument.diff(field)
        if slope.has(*ensemble.fields) or not sign_of(slope) or isinstance(switch, Eq | Ne):
            return None
        if any((argument - slope * field).expand().has(f) for f in ensemble.fields):
            return None
        same = [(k, w) for k, a in enumerate(arguments) for w in (1, -1) if (argument - w * a).expand() == 0]
        if not same:
            arguments.append(argument)
            same = [(len(arguments) - 1, 1)]
        if isinstance(switch, Lt | Le):  # it is true on the positive side of its argument, as it was built
            switches.append((switch, same[0][0], -same[0][1]))
        else:
            switches.append((switch, *same[0]))
    if not 0 < len(arguments) <= MOST:
        return None
    out = Thresholds(field, tuple(arguments), tuple(switches))
    return None if any(e.xreplace(rule).has(field) for _, rule in out.sides() for e in law) else out
