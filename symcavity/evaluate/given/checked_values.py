"""The values of a call: read, checked against a theory, and completed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Add, Expr, Sum, Symbol

from symcavity.errors import ValuesError
from symcavity.evaluate.averages.densities import Counting
from symcavity.evaluate.averages.integrals import LAWS
from symcavity.evaluate.averages.nodes import Needs, own_quantities
from symcavity.evaluate.averages.quenched import SiteLaw, site_laws
from symcavity.evaluate.averages.tails import check_tails
from symcavity.evaluate.given.barriers import at_an_edge, loses_an_end
from symcavity.evaluate.given.reading import Vocabulary, read_given
from symcavity.evaluate.given.sizes import complete, ratio_named
from symcavity.evaluate.given.values import Given, Task
from symcavity.evaluate.numbers import brief, exact_value
from symcavity.evaluate.tolerances import tolerances
from symcavity.model.averages import Average
from symcavity.model.far_numbers import FarNumber
from symcavity.model.kinds import Kind, N, SiteCount
from symcavity.model.quantities import Quenched, SiteQuantity
from symcavity.model.ranges import check_ranges
from symcavity.sites.quenched_laws import divides_by, hears_nothing


def read_values(task: Task, values: Mapping[Any, Any], dps: int, held: Sequence[Symbol] = ()) -> Given:
    """Read the values of a call: parameters, load, sizes, quenched parameters; those of some hold a place only.

    Raises
    ------
    ValuesError
        If a value is missing, superfluous, contradictory, of a wrong kind, or a float above 15 digits.
    """
    if not isinstance(dps, int) or isinstance(dps, bool) or dps < 1:
        raise ValuesError(f"The number of digits is {dps!r}.", "a positive integer", "dps=50")
    words = Vocabulary(task.parameters, task.kinds, task.quenched)
    read = read_given(words, values, dps, lambda key, value: _foreign(task, key, value), held)
    plain = read.plain
    check_ranges(task.ranges, {s: v for s, v in plain.items() if s not in held})
    sizes = _sizes(task, plain, read.laws)
    laws = site_laws(task.quenched, read.laws, dps, sizes, plain)
    exact = {**plain, **sizes}
    for law in laws.values():
        law.continuous = [(q, _as_seen(task, q, v, laws, exact)) for q, v in law.continuous]
        law.kinks = {q: task.kinks_at(q, exact) for q, _ in law.continuous}
    _check_positive(laws)
    _check_variances(task, laws)
    _check_zeros(task, laws)
    _check_states(task, laws, exact)
    candidates = [s for s in (*task.parameters, *task.ratios) if s not in exact]
    _count(task, exact, candidates)
    if any(law.continuous for law in laws.values()):
        free = [*task.unknowns, *candidates]
        open_ = {s: 1.0 if s.is_nonnegative else -1.0 if s.is_nonpositive else 0.1 for s in free}
        env = {LAWS: laws, **open_, **{s: float(v) for s, v in exact.items()}}
        check_tails({str(e.lhs): side for e, side in zip(task.equations, task.sides[1::2], strict=True)}, laws, env)
    return Given(exact, laws, tuple(candidates), dps)


def _as_seen(task: Task, q: Quenched, variable: Any, laws: Mapping[Any, SiteLaw], exact: Mapping[Symbol, Any]) -> Any:
    """A law as it is; of countable values those with a weight at these values, where the weights are known before."""
    whole = {a for c in task.conditions for a in c.atoms(Average) if own_quantities(a.args[0]) == {q.at_site()}}
    env = {LAWS: laws, **{s: float(v) for s, v in exact.items()}}
    for body in (a.args[0] for a in whole if isinstance(variable, Counting)):
        if Needs()(body) - {q.at_site()} <= set(env):
            return variable.seen(lambda y, body=body: np.asarray(task.compiled(body, "numpy")({**env, q: y})))
    return variable


def _foreign(task: Task, key: Any, value: Any) -> ValuesError:
    """Return the complaint about a value for something that takes none."""
    target = key.family if isinstance(key, SiteQuantity) else key
    if str(target) in set(map(str, (*task.unknowns, *task.units))):
        return ValuesError(
            f"{target} is an unknown of this theory, and was given the value {brief(value):.60}.",
            f"values for {names(task)}",
            "an unknown is solved for: solution[...]",
        )
    word = "quenched parameter" if isinstance(target, Quenched) else "parameter"
    known = {str(s): s for s in (*task.parameters, *task.ratios, *task.sizes, *task.quenched)}
    hint = ""
    if str(target) in known:
        hint = f"use the {target} of the declaration, or its name {str(target)!r}: a symbol is known by its assumptions"
    elif copies := [name for name in known if re.fullmatch(rf"{re.escape(str(target))}_\d+", name)]:
        hint = f"{' and '.join(copies)}, one for each copy"
    elif near := get_close_matches(str(target), known, n=1):
        hint = near[0]
    return ValuesError(
        f"{target!s:.60} is not a {word} of this theory, and was given the value {brief(value):.60}.",
        f"values for {names(task)}",
        hint,
    )


def _count(task: Task, exact: Mapping[Symbol, Any], candidates: Sequence[Symbol]) -> None:
    """Refuse too few values, and too many."""
    extra = task.excess
    told = "one" if extra == 1 else extra
    if len(candidates) > extra:
        needed = len(candidates) - extra
        loads = {kind.ratio: f"{kind.ratio} = {kind.size}/{N}" for kind in task.kinds}
        raise ValuesError(
            f"Values are missing: {', '.join(loads.get(s, str(s)) for s in candidates)} "
            f"{'are' if len(candidates) > 1 else 'is'} not given"
            + (f", and only {told} of them can be solved for." if extra else "."),
            f"values for all but {told} of {names(task)}" if extra else f"values for {names(task)}",
            f"give {'one' if needed == 1 else needed} more, such as {{{candidates[0]}: ...}}",
        )
    if len(candidates) < extra:
        fixed = [s for s in (*task.parameters, *task.ratios) if s in exact]
        raise ValuesError(
            f"Too many values: {', '.join(map(str, fixed))} are all given, but {told} of them "
            f"follow{'s' if extra == 1 else ''} from the others through the fixed condition.",
            f"all but {told} of them",
            f"leave out {fixed[-1]}",
        )


def symbol_of(task: Task, key: Any) -> Any:
    """The symbol of a parameter, a load or a ratio that is given as itself, as ``K/N``, or by its name."""
    if isinstance(key, str):
        found = Vocabulary(task.parameters, task.kinds, ()).key(key)
        key = found[0].size / found[1].size if isinstance(found, tuple) else key if found is None else found
    return ratio_named(key)


def names(task: Task) -> str:
    """Say in words what takes values."""
    plain = (s for s in task.parameters if not isinstance(s, FarNumber))
    found = [str(s) for s in (*plain, *task.ratios)] + [q.name for q in task.quenched if q.law is None]
    return ", ".join([*found, *(map(str, reversed(task.sizes)) if task.sizes_used else [])])


def _check_variances(task: Task, laws: Mapping[Kind, SiteLaw]) -> None:
    """Refuse quenched values at which the variance of a coupling would be negative."""
    for variance in task.variances:
        families = {q.family for q in variance.atoms(SiteQuantity)}
        if len(families) != 1 or variance.free_symbols - {*task.sizes} - {
            s for q in variance.atoms(SiteQuantity) for s in q.free_symbols
        }:
            continue
        (family,) = families
        (column,), _ = laws[family.slots[0]].table([family])
        values = task.compiled(variance, "numpy")({family: column, **dict.fromkeys(task.sizes, 1.0)})
        if np.min(values) < 0:
            worst = float(column[int(np.argmin(values))])
            raise ValuesError(
                f"The variance {variance} of a coupling is negative at {family.name} = {worst:.6g}.",
                f"values of {family.name} at which the variance is not negative",
            )


def _check_positive(laws: Mapping[Kind, SiteLaw]) -> None:
    """Refuse values that are not positive where the theory needs them to be."""
    for law in laws.values():
        for q in law.parameters:
            if not q.positive:
                continue
            (values,), _ = law.table([q])
            if np.any(values <= 0):
                raise ValuesError(
                    f"The quenched parameter {q.name} has the value {float(np.min(values)):.6g}.",
                    "positive values: for others the problem is not convex, or its law does not fix the states",
                )


def _check_states(task: Task, laws: Mapping[Kind, SiteLaw], exact: Mapping[Symbol, Any]) -> None:
    """Refuse values at which the law of some sites has no state: where a bound from below is above one from above."""
    env = {s: float(v) for s, v in exact.items()}
    for condition in task.conditions:
        families = sorted({q.family for q in condition.atoms(SiteQuantity)}, key=str)
        kinds = {q.slots[0] for q in families}
        if len(kinds) != 1 or not Needs()(condition.lhs - condition.rhs) <= {*env, *(q.at_site() for q in families)}:
            continue
        columns, _ = laws[kinds.pop()].table(families)
        at_sites = dict(zip(families, columns, strict=True))
        gap = (condition.lhs - condition.rhs).expand()
        terms = [task.compiled(term, "numpy")({**env, **at_sites}) for term in Add.make_args(gap)]
        values, size = sum(terms), sum(map(np.abs, terms))
        if np.any(values < -tolerances().cancelled * size):  # bounds that are equal differ by rounding
            worst = int(np.argmin(values))
            there = ", ".join(f"{q.name} = {float(c[worst]):.6g}" for q, c in zip(families, columns, strict=True))
            raise ValuesError(
                f"The law of a site has a state only where {condition}, and some sites have {there}.",
                "values that meet this condition at every site",
                "one joint law of parameters that depend on each other, Quenched((\"a\", \"b\"), i, ...)",
            )


@lru_cache(maxsize=1024)
def _divides(expr: Expr, q: Quenched) -> bool:
    """Whether some average divides by a quenched parameter."""
    return any(divides_by(a.args[0], q.at_site()) for a in expr.atoms(Average, Sum))


def _check_zeros(task: Task, laws: Mapping[Kind, SiteLaw]) -> None:
    """Refuse sites at which a quenched parameter is zero, and the equations divide by it, or have no law there."""
    for law in laws.values():
        for q in law.names:
            (values,), _ = law.table([q])
            if not np.any(values == 0):
                continue
            if any(_divides(e.difference, q) for e in task.equations):
                raise ValuesError(*hears_nothing(q.at_site()))
            if any(loses_an_end(e.difference, q.at_site()) for e in task.equations):
                raise ValuesError(*at_an_edge(q.name))
        for q in (q for q, _ in law.continuous if q.low is not None and q.low <= 0):  # labels that are counts
            if any(loses_an_end(e.difference, q.at_site()) for e in task.equations):
                raise ValuesError(*at_an_edge(q.name))
    if any(loses_an_end(e.difference) for e in task.equations):
        raise ValuesError(*at_an_edge("its factor"))


def _sizes(task: Task, plain: dict[Symbol, Any], quenched: Mapping[Any, Any]) -> dict[Symbol, Any]:
    """Complete sizes and ratios from each other and from the lengths of arrays."""
    lengths: dict[SiteCount, Any] = {}
    for q, value in quenched.items():
        if isinstance(value, list | np.ndarray):
            size = q.slots[0].size
            length = exact_value(len(value), str(size), 15)
            known = plain.get(size, lengths.setdefault(size, length))
            if known != length and (task.sizes_used or size in plain):
                raise ValuesError(
                    f"The array of {q.name} has {len(value)} entries, but {size} = {known}.",
                    f"arrays with one entry for each of the {size} sites",
                )
    return complete(task.kinds, plain, lengths, task.sizes_used)
