"""The order in which a system in time is filled: what each state follows from, and from which time on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sympy import Expr, Integer

from symcavity.algebra.flow import Rate
from symcavity.errors import DeclarationError
from symcavity.model.equations import Equation, as_equation, as_list
from symcavity.model.fields import FieldSymbol, RandomField
from symcavity.model.kinds import Kind
from symcavity.model.laws import Law
from symcavity.model.noise import drawn_anew
from symcavity.model.quantities import Field, Quenched, SharedState, SiteQuantity, Variable, site_quantities
from symcavity.model.times import Time, lag_of


@dataclass(frozen=True)
class Update:
    """What a state follows from.

    Attributes
    ----------
    state : SiteQuantity
        At the time over which it moves.
    equation : Equation
        As it stands in the law: it holds from t = 0 on.
    lead : int
        By how many steps the state on its left-hand side is later than t; one for the rate of a state.
    """

    state: SiteQuantity
    equation: Equation
    lead: int

    @property
    def needs(self) -> list[tuple[SiteQuantity, int]]:
        """The states on the right, and by how many steps each is earlier than the state on the left."""
        found = site_quantities(self.equation.rhs, Variable, Field, SharedState)
        return [(q.now, 0 if q.time is None else self.lead - lag_of(q.time)) for q in found]


@dataclass(frozen=True)
class Motion:
    """How the states of a system are filled, step by step.

    Attributes
    ----------
    time : Time
    updates : dict
        By state: its equation; for each kind all of them.
    initial : dict
        By state: its values at the beginning, by step.
    order : tuple
        The states and fields in the order in which they are found at one time; those that keep still before all.
    needs : mapping
        By state or field: the states and fields of the same time that it follows from.
    """

    time: Time
    updates: Mapping[SiteQuantity, Update]
    initial: Mapping[SiteQuantity, Mapping[int, Expr]]
    order: tuple[Any, ...]
    needs: Mapping[Any, Sequence[Any]]

    def is_instant(self, state: SiteQuantity, field: RandomField) -> bool:
        """Whether a field has an influence on a state at the same time."""
        found, todo = set(), [state.now]
        while todo:
            node = todo.pop()
            if node not in found and not is_shared(node):  # one field moves what all sites share by nothing
                found.add(node)
                todo += self.needs[node]
        return field in found

    @property
    def first(self) -> int:
        """The first step at which a state has a value."""
        return min([0, *(k for values in self.initial.values() for k in values)])


def is_shared(node: Any) -> bool:
    """Whether a state or field belongs to no site: it is a variable that all share."""
    return isinstance(getattr(node, "family", None), SharedState)


def read_motion(
    laws: Mapping[Kind, Law],
    initial: Sequence[Any],
    time: Time,
    shared: Sequence[Equation] = (),
    meanings: Mapping[SiteQuantity, Expr] | None = None,
) -> Motion:
    """Read how a system moves, and check that it can; messages explain variables that the user did not declare.

    Raises
    ------
    DeclarationError
        If an equation is not solved for the newest value of a state, if states at one time need each other, if a value
        at the beginning is missing or of no use.
    """
    updates: dict[SiteQuantity, Update] = {}
    written = _Written(laws, meanings or {})
    for law in laws.values():
        if law.pairs:
            raise DeclarationError(
                f"A system whose states move in time has the condition {law.pairs[0]}.",
                "equations that give each state by earlier ones; a projection is written out, Max(0, ...)",
            )
    for equation in [*(e for law in laws.values() for e in law.equations), *shared]:
        update = _update(equation, written)
        if update.state in updates:
            raise DeclarationError(
                f"Two equations give {update.state}: {updates[update.state].equation} and {equation}.",
                "one equation for each state",
            )
        updates[update.state] = update
    if all(q.time is None for q in updates):
        raise DeclarationError(
            f"Noise is drawn at each time {time}, and no state depends on time.",
            "states over a time",
            f'Variable("x", i, over={time})',
        )
    begin = _initial(initial, updates)
    _check_beginning(laws, updates, begin, written)
    needs = _needs(laws, updates)
    return Motion(time, updates, begin, tuple(_order(needs, written)), needs)


def _update(equation: Equation, written: _Written) -> Update:
    """An equation as what gives the state on its left."""
    is_rate = isinstance(equation.lhs, Rate)
    state = equation.lhs.body if is_rate else equation.lhs
    if isinstance(state, SiteQuantity) and isinstance(state.family, Variable | Field | SharedState):
        lead = 1 if is_rate else 0 if state.time is None else lag_of(state.time)
        update = Update(state.now, equation, lead)
        still = state.time is None and any(q.time is not None for q, _ in update.needs)
        for q in drawn_anew(equation.difference):
            if not 0 <= lag_of(q.time) <= lead:
                raise DeclarationError(
                    f"{q} stands in the equation {equation}.",
                    f"what is drawn at the time t, or up to that of {state}",
                    "a state of its own that remembers it, Eq(m[i, t], xi[i, t]), and then m[i, t - 1]",
                )
        if lead >= 0 and not still and all(lag > 0 or (lag == 0 and q != update.state) for q, lag in update.needs):
            return update
    raise DeclarationError(
        f"The {written(equation)} does not give the newest value of a state by what came before.",
        "equations that are solved for it, with that state alone on the left",
        "Eq(x[i, t + 1], ...), in x[i, t] and sums at the time t; Eq(u[mu, t], Sum(x[mu, i]*w[i, t], (i, 1, N)))",
    )


def _initial(
    entries: Sequence[Any], updates: Mapping[SiteQuantity, Update]
) -> dict[SiteQuantity, dict[int, Expr]]:
    """The values at the beginning."""
    out: dict[SiteQuantity, dict[int, Expr]] = {}
    for entry in as_list(entries, "initial"):
        equation = as_equation(entry, "an entry of initial")
        state, value = equation.lhs, equation.rhs
        moving = isinstance(state, SiteQuantity) and state.time is not None and state.time.is_Integer
        if not moving or site_quantities(value, Variable, Field) or state.now not in updates:
            raise DeclarationError(
                f"The initial value {equation} is that of no state at a given step, or no given number.",
                "states at whole steps, by numbers and quenched parameters of the same site",
                "initial=[Eq(x[i, 0], a[i])], with a = Quenched(\"a\", i)",
            )
        strange = [q for q in site_quantities(value, Quenched) if q.indices != state.indices] + drawn_anew(value)
        if strange:
            raise DeclarationError(
                f"{strange[0]} stands in the initial value {equation}.",
                "quenched parameters of the same site, which keep still",
            )
        values = out.setdefault(state.now, {})
        if int(state.time) in values:
            raise DeclarationError(f"{state} has two initial values.", "one for each state and step")
        values[int(state.time)] = value
    for state, values in out.items():
        steps = sorted(values)
        latest = updates[state].lead - 1
        if steps != list(range(steps[0], steps[-1] + 1)) or steps[-1] < latest:
            raise DeclarationError(
                f"{state} has initial values at the steps {', '.join(map(str, steps))}.",
                f"all steps up to the first that its equation gives, {updates[state].lead}",
            )
    return out


def _check_beginning(
    laws: Mapping[Kind, Law],
    updates: Mapping[SiteQuantity, Update],
    initial: Mapping[SiteQuantity, Mapping[int, Expr]],
    written: _Written,
) -> None:
    """Refuse states without initial values."""
    needed: list[tuple[SiteQuantity, int, Any, SiteQuantity | None]] = [
        (q, 0, f.as_sum, None) for law in laws.values() for f in law.fields for q in f.states()
    ]
    for update in updates.values():
        starts = max([*(initial.get(update.state, {})), update.lead - 1]) + 1
        later = None if update.state.time is None else update.state.func(*update.state.args[:-1], starts)
        needed += [(q, starts - lag, update.equation, later) for q, lag in update.needs]
    for state, step, where, later in needed:
        if state.time is None:
            continue
        if step < min([*initial.get(state, {}), updates[state].lead]):
            missing = state.func(*state.args[:-1], Integer(step))
            told = missing if later is None or updates[state].lead else later  # earlier sums have no beginning
            raise DeclarationError(
                f"The {written(missing)} is missing: the {written(where)} needs it.",
                "a value for each state at the steps that its equation does not give",
                f"initial=[Eq({told}, 0)]",
            )


class _Written:
    """Equations and quantities as they were declared, without the variables and fields that stand for parts of them."""

    def __init__(self, laws: Mapping[Kind, Law], meanings: Mapping[SiteQuantity, Expr]) -> None:
        self._sums = {f.symbol: f.as_sum for law in laws.values() for f in law.fields}
        self.meanings = {q.family: (q, meaning) for q, meaning in meanings.items()}

    def __call__(self, found: Any) -> str:
        """An expression or an equation, in words."""
        if isinstance(found, Equation):
            if getattr(found.lhs, "family", None) in self.meanings:
                return f"term {self._told(found.lhs)} of a sum"
            return f"equation {Equation(self._told(found.lhs), self._told(found.rhs))}"
        told = self._told(found)
        return f"initial value {told}" if isinstance(told, SiteQuantity) else f"sum {told}"

    def _told(self, expr: Any) -> Any:
        for _ in range(len(self.meanings) + 1):
            rule = dict(self._sums)
            for q in expr.atoms(SiteQuantity):
                if q.family in self.meanings:
                    own, meaning = self.meanings[q.family]
                    rule[q] = meaning.xreplace(dict(zip(own.args[1:], q.args[1:], strict=True)))
            expr = expr.xreplace(rule)
        return expr


def _needs(laws: Mapping[Kind, Law], updates: Mapping[SiteQuantity, Update]) -> dict[Any, list[Any]]:
    """What each state and each field follows from at the same time."""
    carried = {f.symbol: f for law in laws.values() for f in law.fields}
    needs: dict[Any, list[Any]] = {}
    for state, update in updates.items():
        fields = [carried[s] for s in update.equation.rhs.atoms(FieldSymbol)]
        here = fields if update.lead == 0 else []
        needs[state] = [*(q for q, lag in update.needs if lag == 0), *here]
    for f in carried.values():
        needs[f] = list(f.states())
    return needs


def _order(needs: Mapping[Any, Sequence[Any]], written: _Written) -> list[Any]:
    """The states and fields of one time, each after what it needs at the same time."""
    done: list[Any] = []
    path: list[Any] = []

    def visit(node: Any) -> None:
        if node in done:
            return
        if node in path:
            states = [n for n in path[path.index(node) :] if not isinstance(n, RandomField)]
            around = [n for n in states if n.family not in written.meanings] or states
            verb = "need each other" if len(around) > 1 else "needs itself"
            raise DeclarationError(
                f"The system is not causal: {' and '.join(map(str, around))} {verb} at the same time.",
                "states that follow from earlier ones, and from others of the same time in some order",
                "a step between them, as in Eq(x[i, t + 1], ...)",
            )
        path.append(node)
        for other in needs[node]:
            visit(other)
        path.remove(node)
        done.append(node)

    for node in sorted(needs, key=lambda n: n.time is not None):
        visit(node)
    return done
