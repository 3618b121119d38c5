"""The values of a run: parameters, ratios of sizes, laws of quenched parameters, and the last step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sympy import Expr, S, Symbol, Tuple

from symcavity.algebra.door import as_sympy
from symcavity.errors import ValuesError
from symcavity.evaluate.averages.quenched import SiteLaw, site_laws
from symcavity.evaluate.given.reading import Vocabulary, read_given
from symcavity.evaluate.numbers import whole_number
from symcavity.model.kinds import Kind, SiteCount
from symcavity.model.quantities import Quenched, site_quantities
from symcavity.model.ranges import check_ranges
from symcavity.model.system import System

MOST_STEPS = 5000


@dataclass(frozen=True)
class RunValues:
    """Values that were read and checked.

    Attributes
    ----------
    plain : dict
        Parameters and ratios.
    laws : dict
        The joint law of the quenched parameters of each kind.
    """

    plain: Mapping[Symbol, Any]
    laws: Mapping[Kind, SiteLaw]

    def put_into(self, expr: Expr) -> Expr:
        """An expression at the values of the parameters."""
        return expr.xreplace({s: as_sympy(v) for s, v in self.plain.items()})  # a symbol alone becomes an expression


def read_run_values(system: System, values: Any, dps: int) -> RunValues:
    """Read the values of a run.

    Raises
    ------
    ValuesError
        If one is missing, superfluous, or of a wrong kind.
    """
    words = Vocabulary(system.parameters, system.kinds, system.quenched)

    def foreign(key: Any, _value: Any) -> ValuesError:
        return ValuesError(f"{key} takes no value here.", ", ".join(words.names))

    read = read_given(words, values, dps, foreign)
    plain, ratios = read.plain, [k.ratio for k in system.kinds if k.ratio.is_Symbol]
    if counts := [s for s in plain if isinstance(s, SiteCount)]:
        raise ValuesError(
            f"{counts[0]} is given, but the theory describes the limit of many sites, in which only their "
            "ratios count.",
            f"{', '.join(map(str, ratios)) or 'no sizes'}; numbers of sites in simulate(..., N=...)",
        )
    missing = [s for s in (*system.parameters, *ratios) if s not in plain]
    if missing:
        raise ValuesError(
            f"Values are missing: {', '.join(map(str, missing))}.", "a value for each parameter and each ratio of sizes"
        )
    check_ranges(system.ranges, plain)
    check_divisions(system, plain, read.laws)
    return RunValues(plain, site_laws(system.quenched, read.laws, dps, {}, plain))


def check_divisions(system: System, plain: Mapping[Symbol, Any], laws: Mapping[Quenched, Any]) -> None:
    """Refuse values at which an equation of motion divides by zero, as a time constant of zero does.

    Raises
    ------
    ValuesError
        With the equation and the values.
    """
    sums = {f.symbol: f.as_sum for law in system.laws.values() for f in law.fields}
    for update in system.motion.updates.values() if system.motion else ():
        equation = update.equation
        rhs = equation.rhs.xreplace({s: as_sympy(v) for s, v in plain.items()})
        cases: list[tuple[Any, Any]] = [(None, None)]
        for q in site_quantities(rhs, Quenched):
            law = laws.get(q.family)
            cases += [(q, value) for value, _ in law] if isinstance(law, Tuple) else []
        for q, value in cases:
            if (rhs if q is None else rhs.xreplace({q: as_sympy(value)})).has(S.ComplexInfinity, S.NaN):
                given = {s: v for s, v in plain.items() if equation.rhs.has(s)} if q is None else {q: value}
                where = ", ".join(f"{s} = {v}" for s, v in given.items())
                raise ValuesError(
                    f"The equation {equation.xreplace(sums)} divides by zero at {where}.",
                    "values at which all equations are finite",
                )


def read_steps(until: Any) -> int:
    """The last step of a run.

    Raises
    ------
    ValuesError
        If it is not a whole number, or too many.
    """
    if until is None:
        raise ValuesError("The last step is not given.", f"a whole number of steps, from 1 to {MOST_STEPS}", "until=20")
    found = whole_number(until, "until", 1, f"a whole number of steps, from 1 to {MOST_STEPS}")
    if found > MOST_STEPS:
        raise ValuesError(f"until = {until}.", f"a whole number of steps, from 1 to {MOST_STEPS}")
    return found
