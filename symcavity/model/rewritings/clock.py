"""Reading equations of motion: every sum over sites is taken at one time, the time of the equation.

A sum at another time, ``Sum(J[i, j]*x[j, t - 1], (j, 1, N))``, gets a name, ``v[i, t - 1]``, with ``v[i, t]`` for the
sum at t. It is known from t = 0 on. Where ``x[i, -1]`` is given, too, its senders remember instead: ``m[j, t]`` stands
for ``x[j, t - 1]``, and the sum over it is known at t = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sympy import Add, Derivative, Expr, Sum, expand_mul

from symcavity.errors import DeclarationError, UnsupportedLaw
from symcavity.model.couplings import Coupling
from symcavity.model.equations import Equation
from symcavity.model.fields import field_letters
from symcavity.model.names import fresh_name
from symcavity.model.noise import drawn_anew
from symcavity.model.quantities import Field, Global, Quenched, SiteQuantity, Variable, site_quantities
from symcavity.model.rates import check_no_steps, rates_of
from symcavity.model.rewriting import Declaration, Rewriting, sides
from symcavity.model.site_sums import free_kind, kind_of_sum, outer_sums
from symcavity.model.times import Time, lag_of


class Clock(Rewriting):
    """The variables that stand for sums at other times than that of their equation.

    Attributes
    ----------
    time : Time or None
        The time over which states move; None where all keep still.
    meanings : dict
        The expression that each variable replaces.
    flowing : bool
        Whether the time is continuous: a derivative stands in an equation.

    Raises
    ------
    DeclarationError
        If there are several times, if a product of states at different times is sent, or a state is taken at a time of
        its own.
    UnsupportedLaw
        For convex problems, derivatives of higher order, couplings with means and global variables.
    """

    key = "clock"

    def __init__(self, declaration: Declaration) -> None:
        found = {q.family.over: q for e in declaration.expressions for q in site_quantities(e) if q.family.over}
        if len(found) > 1:
            (one, x), (other, y), *_ = sorted(found.items(), key=lambda item: str(item[0]))
            raise DeclarationError(
                f"{x.family.name} moves over {one} and {y.family.name} over {other}.",
                "one time for all states; a second one stands in observables only",
                f"over={one} for both",
            )
        self.time: Time | None = next(iter(found), None)
        self.meanings: dict[SiteQuantity, Expr] = {}
        self._named: dict[tuple[Any, Expr], SiteQuantity] = {}
        self._names = declaration.names
        self.flowing = any(e.has(Derivative) for e in declaration.expressions)
        given = [(e.lhs, e.lhs.time) for e in declaration.initial if isinstance(e.lhs, SiteQuantity)]
        self._given = {(q.family, int(when)) for q, when in given if when is not None and when.is_Integer}

    def apply(self, declaration: Declaration) -> Declaration:
        """Return the declaration with all sums at the time of their equation, and an equation for each variable."""
        if self.time is None:
            return declaration
        if declaration.objective is not None:
            raise UnsupportedLaw(
                "The states of a convex problem depend on time.", "systems of equations in time, System([...])"
            )
        time = self.time
        equations = [e for e in declaration.entries if isinstance(e, Equation)]
        _refuse(equations, time)
        if self.flowing:
            for equation in equations:
                check_no_steps(equation, time)
            declaration = declaration.mapped(_as_rate)
        out = declaration.mapped(lambda entry: self._read(entry, time) if isinstance(entry, Equation) else entry)
        said = [out.equation(variable, meaning) for variable, meaning in self.meanings.items()]
        return replace(out, entries=(*out.entries, *said))

    @property
    def symbols(self) -> dict[Expr, Expr]:
        """The expression that each variable replaces."""
        return dict(self.meanings)

    def steps(self, make: Any) -> list[Any]:
        """The expression that each variable replaces."""
        claims = [Equation(variable, meaning) for variable, meaning in self.meanings.items()]
        data = {"states": list(self.meanings)}
        return [make(self.key, "clock", claims, data=data, rests_on=("problem",))] if claims else []

    def _read(self, equation: Equation, time: Time) -> Equation:
        hearer = free_kind(equation.difference, f"the equation {equation}")
        if hearer is None:
            return equation  # averages may be those of any time
        rule = {total: self._sum(total, hearer, time) for side in sides(equation) for total in outer_sums(side)}
        return equation.xreplace(rule)

    def _sum(self, total: Sum, hearer: Any, time: Time) -> Expr:
        if not any(map(kind_of_sum, total.limits)):
            return total
        groups: dict[int, list[Expr]] = {}
        for term in Add.make_args(expand_mul(total.function)):
            lags = {lag_of(q.time) for q in site_quantities(term) if q.time is not None}
            if len(lags) > 1:
                raise DeclarationError(
                    f"The term {term} of a sum holds states at different times.",
                    "sums of states at one time",
                    f"a variable of its own for the product, m[j, {time}], with its equation",
                )
            groups.setdefault(lags.pop() if lags else 0, []).append(term)
        if set(groups) == {0}:
            return total
        return Add(*(self._at(Sum(Add(*terms), *total.limits), lag, hearer, time) for lag, terms in groups.items()))

    def _at(self, whole: Sum, lag: int, hearer: Any, time: Time) -> Expr:
        """A sum at one time: by its name, unless that is the time of the equation."""
        if not lag:
            return whole
        states = [q for q in site_quantities(whole) if q.time is not None]
        if lag < 0 and all((q.family, lag) in self._given for q in states):
            return whole.xreplace({q: self._remembered(q, lag, time) for q in states})
        meaning = whole.xreplace({time + lag: time})
        known = hearer, meaning.as_dummy()
        if known not in self._named:
            word = fresh_name(self._names, *field_letters(hearer))
            self._named[known] = Variable(word, hearer.index, over=time).at_site()
            self.meanings[self._named[known]] = meaning
        return self._named[known].xreplace({time: time + lag})

    def _remembered(self, q: SiteQuantity, lag: int, time: Time) -> SiteQuantity:
        """A state at an earlier time, by the name of what remembers it now."""
        state = q.family.at_site()
        before = state.xreplace({time: time + lag})
        if (state, before) not in self._named:
            word = fresh_name(self._names, "m")
            self._named[state, before] = q.family.renamed(word).at_site()
            self.meanings[self._named[state, before]] = before
        return self._named[state, before].func(self._named[state, before].family, *q.args[1:-1], time)


def _as_rate(entry: Any) -> Any:
    return rates_of(entry) if isinstance(entry, Equation) and entry.has(Derivative) else entry


def _refuse(equations: Sequence[Equation], time: Time) -> None:
    """Refuse what equations of motion cannot hold."""
    for equation in equations:
        expr = equation.difference
        for x in {q.family for q in site_quantities(expr, Coupling)}:
            if x.components:
                raise UnsupportedLaw(
                    f"{x.name} has components, and the states depend on time.",
                    "couplings without components, of systems in time",
                )
        if expr.has(Global):
            raise UnsupportedLaw(
                f"A global variable stands in the equation {equation}, and the states move.",
                "variables over the time",
                "Global(\"b\", over=t), and then b[t], with an equation of its own",
            )
        for q in site_quantities(expr):
            if q.family.components:
                raise UnsupportedLaw(
                    f"{q} has components, and the states depend on time.", "scalar states, of systems in time"
                )
            if q.time is not None and time not in q.time.free_symbols:
                raise DeclarationError(
                    f"{q} stands in the equation {equation} at a time of its own.",
                    f"the time {time} and whole steps from it, {time + 1}, {time - 1}",
                    f"initial=[Eq({q.now.xreplace({time: 0})}, ...)] for a value at the beginning",
                )
        for total in expr.atoms(Sum):
            if drawn_anew(total) and not site_quantities(total, Variable, Field):
                raise UnsupportedLaw(
                    f"{drawn_anew(total)[0]} stands in the sum {total} without a state.",
                    "sums of states, of systems in time",
                    "a state of its own, m[j, t], with the equation Eq(m[i, t], ...)",
                )
        for q in {q.family for q in site_quantities(expr, Quenched)}:
            if q.given is not None:
                raise UnsupportedLaw(
                    f"The label {q.name} is drawn on a field, and the states move.",
                    "labels that are sums of fields and quenched parameters, of systems in time",
                )
