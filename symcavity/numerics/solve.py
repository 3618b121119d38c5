"""Solve the closed equations of a theory for whatever was not given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mpmath
import numpy as np
from sympy import Abs, Add, Expr, Symbol, latex

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.cavity.close import Closed, tidy_arguments
from symcavity.declare.quantities import DATUM, FEATURE, N, P, Quenched, SiteQuantity, alpha
from symcavity.declare.system import Equation
from symcavity.errors import Infeasible, NotConverged, ValuesError
from symcavity.numerics.evaluate import LAWS, Compiled, to_mpf
from symcavity.numerics.roots import Unknown, find_roots, polish
from symcavity.numerics.sites import SiteLaw, exact_value, read_quenched

GUARD = 12
MANY_SITES = 4000


@dataclass
class Task:
    """A closed system to be solved: what the numerics need to know of a theory.

    Attributes
    ----------
    equations : sequence of Equation
        The closed equations, for the residual.
    unknowns : tuple of Symbol
        Order parameters and scaled globals.
    parameters : tuple of Symbol
        Plain parameters, in order.
    quenched : tuple of Quenched
    eliminated : Closed
        With the order parameters eliminated.
    with_load : Closed
        With the load alpha eliminated as well.
    units : dict
        Globals by their scaled unknowns.
    conditions : tuple
        Inequalities that the symbolic derivation assumed.
    uses_sizes : bool
        Whether P or N stand in the equations.
    """

    equations: Sequence[Equation]
    unknowns: tuple[Symbol, ...]
    parameters: tuple[Symbol, ...]
    quenched: tuple[Quenched, ...]
    eliminated: Closed
    with_load: Closed
    units: dict[Symbol, Expr]
    conditions: tuple[Any, ...] = ()
    title: str = ""
    cache: dict[tuple[Expr, str], Compiled] = field(default_factory=dict)

    def compiled(self, expr: Expr, backend: str) -> Compiled:
        """A compiled expression, made once."""
        key = (expr, backend)
        if key not in self.cache:
            self.cache[key] = Compiled(expr, backend)
        return self.cache[key]

    @property
    def uses_sizes(self) -> bool:
        """Whether the sizes themselves, and not only their ratio, stand in the equations."""
        return any(e.difference.has(N, P) for e in self.equations)


@dataclass
class Given:
    """Values, read and checked."""

    exact: dict[Symbol, Any]
    laws: dict[str, SiteLaw]
    solve_for: tuple[Symbol, ...]
    dps: int

    def environment(self, backend: str) -> dict[Any, Any]:
        """The values for compiled expressions of a backend."""
        convert = float if backend == "numpy" else to_mpf
        return {LAWS: self.laws, **{k: convert(v) for k, v in self.exact.items()}}

    @property
    def sites(self) -> int:
        """The largest number of quenched points on a side."""
        return max((len(v) for law in self.laws.values() for v in (*law.arrays.values(), law.points)), default=1)


def read_values(task: Task, values: Mapping[Any, Any], dps: int) -> Given:
    """Read the values of a call: parameters, load, sizes, quenched parameters.

    Raises
    ------
    ValuesError
        If a value is missing, superfluous, contradictory, of a wrong kind, or a float above 15 digits.
    """
    if not isinstance(dps, int) or isinstance(dps, bool) or dps < 1:
        raise ValuesError(f"The number of digits is {dps!r}.", "a positive integer", "dps=50")
    plain: dict[Symbol, Any] = {}
    quenched: dict[Any, Any] = {}
    known = {*task.parameters, alpha, N, P}
    for key, value in values.items():
        target = key.family if isinstance(key, SiteQuantity) else key
        if isinstance(target, Quenched):
            if target not in task.quenched:
                raise ValuesError(f"{target.name} is no quenched parameter here.", _names(task))
            quenched[target] = value
        elif target in known:
            plain[target] = exact_value(value, str(target), dps)
        else:
            kind = "an unknown" if target in task.unknowns or target in task.units else "no parameter"
            raise ValuesError(
                f"{target} is {kind} of this theory, and was given the value {str(value):.60}.",
                f"values for {_names(task)}",
                "the value of an unknown comes out: solution[...]" if kind == "an unknown" else "",
            )
    for symbol, value in plain.items():
        _check_sign(symbol, value)
    sizes = _sizes(task, plain, quenched)
    laws = read_quenched(task.quenched, quenched, dps, sizes)
    exact = {**plain, **sizes}
    extra = len(task.equations) - len(task.unknowns)
    candidates = [s for s in (*task.parameters, alpha) if s not in exact]
    if len(candidates) > extra:
        needed = len(candidates) - extra
        raise ValuesError(
            f"Values are missing: {', '.join(map(str, candidates))} "
            f"{'are' if len(candidates) > 1 else 'is'} not given"
            + (f", and only {extra} of them can be solved for." if extra else "."),
            f"values for all but {extra} of {_names(task)}" if extra else f"values for {_names(task)}",
            f"give {needed} more, such as {{{candidates[0]}: ...}}",
        )
    if len(candidates) < extra:
        fixed = [s for s in (*task.parameters, alpha) if s in exact]
        raise ValuesError(
            f"Too many values: {', '.join(map(str, fixed))} are all given, but {extra} of them "
            f"follow{'s' if extra == 1 else ''} from the others through the fixed condition.",
            f"all but {extra} of them",
            f"leave out {fixed[-1]}",
        )
    return Given(exact, laws, tuple(candidates), dps)


def _names(task: Task) -> str:
    names = [str(s) for s in (*task.parameters, alpha)] + [q.name for q in task.quenched]
    return ", ".join([*names, *(["P", "N"] if task.uses_sizes else [])])


def _check_sign(symbol: Symbol, value: Any) -> None:
    wrong = (symbol.is_positive and value < 0) or (symbol.is_negative and value > 0)
    if wrong or (symbol.is_nonnegative and value < 0) or (symbol.is_integer and value != int(value)):
        word = "positive" if symbol.is_positive else "negative" if symbol.is_negative else "an integer"
        raise ValuesError(f"{symbol} = {value}, but it was declared {word}.", f"a value that is {word}")


def _sizes(task: Task, plain: dict[Symbol, Any], quenched: Mapping[Any, Any]) -> dict[Symbol, Any]:
    """Complete N, P and alpha from each other and from the lengths of arrays."""
    sizes = {s: plain[s] for s in (alpha, N, P) if s in plain}
    for q, value in quenched.items():
        if isinstance(value, list | tuple | np.ndarray):
            size = {FEATURE: N, DATUM: P}[q.slots[0]]
            length = exact_value(len(value), str(size), 15)
            if sizes.setdefault(size, length) != length and (task.uses_sizes or size in plain):
                raise ValuesError(
                    f"The array of {q.name} has {len(value)} entries, but {size} = {sizes[size]}.",
                    f"arrays with one entry for each of the {size} sites",
                )
    if N in plain and P in plain or (task.uses_sizes and N in sizes and P in sizes):
        ratio = sizes[P] / sizes[N]
        if sizes.setdefault(alpha, ratio) != ratio:
            raise ValuesError(f"alpha = {sizes[alpha]}, but P/N = {ratio}.", "values that agree")
    elif task.uses_sizes and alpha in sizes and N in sizes:
        sizes[P] = sizes[alpha] * sizes[N]
    elif task.uses_sizes and alpha in sizes and P in sizes:
        sizes[N] = sizes[P] / sizes[alpha]
    if task.uses_sizes:
        missing = [s for s in (N, P) if s not in sizes]
        if missing:
            raise ValuesError(
                f"The equations contain the sizes N and P, and {' and '.join(map(str, missing))} is not given.",
                "two of N, P and alpha (N follows from arrays over the features)",
                "{P: 100, N: 200}",
            )
    elif alpha not in plain and not (N in plain and P in plain):
        sizes.pop(N, None)
        sizes.pop(P, None)
    return sizes


class Solution:
    """The solved theory at given values.

    ``solution[alpha]`` and ``solution[average(w[i]**2)]`` evaluate any unknown, parameter or observable.

    Attributes
    ----------
    values : dict
        Every unknown, by symbol.
    dps : int
        The digits asked for.
    residual : mpf
        The largest relative residual of the closed equations, measured at higher precision.
    """

    def __init__(
        self, task: Task, given: Given, values: dict[Symbol, Any], observable: Callable[[Any], Expr], core: list[Expr]
    ) -> None:
        self._task, self._given, self._observable, self._core = task, given, observable, core
        self.values, self.dps = values, given.dps
        self._residual: Any = None

    @property
    def quick(self) -> bool:
        """Whether the numbers were computed in double."""
        return _quick(self._task, self._given)

    def environment(self, backend: str) -> dict[Any, Any]:
        """Everything known, for compiled expressions."""
        env = self._given.environment(backend)
        env.update({k: (float(v) if backend == "numpy" else v) for k, v in self.values.items()})
        return env

    def __getitem__(self, key: Any) -> Any:
        expr = self._observable(key)
        if expr in self.values:
            with mpmath.workdps(self.dps):
                return +self.values[expr]
        expr = expr.xreplace(self._task.units)
        value = self._evaluate(expr)
        if not mpmath.isfinite(value) and (reduced := self._in_core_unknowns(expr)) != expr:
            return self._evaluate(reduced)  # infinities may cancel, as in kappa*b at kappa = 0
        return value

    def _in_core_unknowns(self, expr: Expr) -> Expr:
        """The expression with the eliminated unknowns written out."""
        closed = self._task.with_load if alpha in self._given.solve_for else self._task.eliminated
        for symbol in closed.definitions:
            if expr.has(symbol) and symbol not in self._given.exact:
                expr = tidy_arguments(expr.xreplace({symbol: closed.explicit(symbol)}))
        return expr

    def at_sites(self, observable: Callable[[], Expr], backend: str = "numpy") -> Any:
        """Evaluate an expression that still depends on quenched parameters, one value a site."""
        expr = observable()
        env = self.environment(backend)
        for law in self._given.laws.values():
            columns, _ = law.columns()
            env.update(columns)
        return Compiled(expr, backend)(env)

    def _evaluate(self, expr: Expr) -> Any:
        mp = mpmath.mp
        if self.quick:
            with np.errstate(all="ignore"):
                value = self._task.compiled(expr, "numpy")(self.environment("numpy"))
            return mp.mpf(float(value))
        with mp.workdps(self.dps + GUARD):
            value = _limited(self._task.compiled(expr, "mpmath"), self.environment("mpmath"))
        with mp.workdps(self.dps):
            return +value

    @property
    def residual(self) -> Any:
        """The largest relative residual of the closed equations, at higher precision than the solution."""
        if self._residual is None:
            self._residual = self._measure()
        return self._residual

    def _measure(self) -> Any:
        mp = mpmath.mp
        rule = self._task.units
        exprs = [Equation(e.lhs.xreplace(rule), e.rhs.xreplace(rule)) for e in self._task.equations]
        if self.quick:
            env, backend = self.environment("numpy"), "numpy"
            with np.errstate(all="ignore"):
                pairs = [(self._task.compiled(e.lhs, backend)(env), self._task.compiled(e.rhs, backend)(env)) for e in exprs]
        else:
            with mp.workdps(self.dps + 2 * GUARD):
                env = self.environment("mpmath")
                pairs = [
                    (_limited(self._task.compiled(e.lhs, "mpmath"), env), _limited(self._task.compiled(e.rhs, "mpmath"), env))
                    for e in exprs
                ]
        gaps = []
        for a, b in pairs:
            if not (mp.isfinite(a) and mp.isfinite(b)):
                continue
            size = max(abs(a), abs(b), 1 if a == 0 or b == 0 else 0)
            gaps.append(abs(a - b) / size)
        return mp.mpf(max(gaps)) if gaps else mp.mpf(0)

    def __contains__(self, key: Any) -> bool:
        return key in self.values

    def rows(self) -> list[tuple[Any, Any]]:
        """Every unknown with its value."""
        out = [(s, v) for s, v in self.values.items() if s not in {h for e in self._task.units.values() for h in e.atoms(Symbol)}]
        return out + [(g, self[g]) for g in self._task.units if g not in self.values]

    def __str__(self) -> str:
        digits = max(self.dps, 6)
        given = ", ".join(f"{k} = {v}" for k, v in self._given.exact.items())
        lines = [f"Solution at {given}" if given else "Solution"]
        lines += [f"  {s!s:<18} = {mpmath.nstr(v, digits)}" for s, v in self.rows()]
        lines.append(f"  residual           = {mpmath.nstr(self.residual, 3)}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        digits = max(self.dps, 6)
        rows = "".join(
            f"<tr><td>${latex(s)}$</td><td style='text-align:left'>{mpmath.nstr(v, digits)}</td></tr>"
            for s, v in self.rows()
        )
        return f"<table>{rows}<tr><td>residual</td><td>{mpmath.nstr(self.residual, 3)}</td></tr></table>"


def _limited(call: Compiled, env: dict[Any, Any]) -> Any:
    """Evaluate; at a pole, return the infinity that nearby values show (or nan)."""
    mp = mpmath.mp
    try:
        return mp.mpf(call(env))
    except ZeroDivisionError:
        pass
    shift = mp.mpf(10) ** (-mp.dps // 2)
    near = {k: (v + shift if isinstance(v, mpmath.mpf) and v == 0 else v) for k, v in env.items()}
    try:
        value = mp.mpf(call(near))
    except (ZeroDivisionError, TypeError, ValueError):
        return mp.nan
    if abs(value) * shift ** mp.mpf("0.3") > 1:
        return mp.sign(value) * mp.inf
    return mp.nan


def _quick(task: Task, given: Given) -> bool:
    """Whether double precision serves: few digits, and many sites or numerical averages."""
    if given.dps > 15:
        return False
    heavy = any(e.difference.has(GaussianAverage, ImplicitAverage) for e in task.equations)
    continuous = any(law.continuous for law in given.laws.values())
    return heavy or continuous or given.sites > MANY_SITES


def solve(
    task: Task,
    values: Mapping[Any, Any],
    dps: int,
    observable: Callable[[Any], Expr],
    guess: Mapping[Symbol, Any] | None = None,
) -> Solution:
    """Solve the closed equations.

    Parameters
    ----------
    task : Task
    values : mapping
        Values of the parameters, of the load or the sizes, and of the quenched parameters.
    dps : int
        Digits.
    observable : callable
        Turns an observable into order parameters (the theory's own).
    guess : mapping, optional
        A solution nearby, for continuation.

    Raises
    ------
    ValuesError
        If the values do not fit the theory.
    Infeasible
        If the equations have no solution there.
    NotConverged
        If a root was found but could not be polished.
    """
    given = read_values(task, values, dps)
    closed = task.with_load if alpha in given.solve_for else task.eliminated
    unknown = [*task.unknowns, *given.solve_for]
    core = list(closed.core)
    definitions = dict(closed.definitions)
    stuck = [s for s in definitions if s in given.exact]
    for symbol in stuck:
        core.append(symbol - definitions.pop(symbol))
    left = [s for s in unknown if s not in definitions]
    roots = _roots(task, given, core, left, guess)
    rejected = []
    admitted = []
    for root in roots:
        env = given.environment("numpy")
        env.update(dict(zip(left, root, strict=True)))
        found = _substitute(task, definitions, env, "numpy")
        complaint = _inadmissible(task, given, {**dict(zip(left, root, strict=True)), **found})
        (rejected if complaint else admitted).append((root, complaint))
    if not admitted:
        raise _infeasible(task, given, rejected)
    if len(admitted) > 1:
        raise NotConverged(
            f"The equations have {len(admitted)} admissible solutions at these values.",
            [dict(zip(left, r, strict=True)) for r, _ in admitted],
            hint="a convex problem has one: check the declaration, and the docs on when not to trust the answer",
        )
    root = admitted[0][0]
    return _finish(task, given, core, left, definitions, root, observable)


def _roots(
    task: Task, given: Given, core: list[Expr], left: list[Symbol], guess: Mapping[Symbol, Any] | None
) -> list[np.ndarray]:
    if not left:
        env = given.environment("numpy")
        for expr in core:
            with np.errstate(all="ignore"):
                value, size = _size(task, expr)(env)
            if not abs(value) <= 1e-9 * size:
                return []
        return [np.array([])]
    if len(core) != len(left):
        raise NotConverged(
            f"{len(core)} equations are left for the unknowns {', '.join(map(str, left))}.", core,
            hint="the theory does not fix these; see theory.equations",
        )
    base = given.environment("numpy")
    sizes = [_size(task, expr) for expr in core]

    def both(*x: Any) -> list[tuple[Any, Any]]:
        env = {**base, **dict(zip(left, x, strict=True))}
        return [size(env) for size in sizes]

    memo: dict[Any, Any] = {}

    def evaluated(*x: Any) -> list[tuple[Any, Any]]:
        key = x if all(np.ndim(v) == 0 for v in x) else None
        if key is None:
            return both(*x)
        if memo.get("key") != key:
            memo["key"], memo["value"] = key, both(*x)
        return memo["value"]

    unknowns = [Unknown(str(s), 1 if s.is_nonnegative else -1 if s.is_nonpositive else 0) for s in left]
    heavy = any(expr.has(GaussianAverage, ImplicitAverage) for expr in core)
    if guess is None and len(left) > 1 and not given.solve_for:
        guess = _iterate(task, given)
    start = [float(guess[s]) for s in left] if guess and all(s in guess for s in left) else None
    return find_roots(
        lambda *x: [v for v, _ in evaluated(*x)],
        lambda *x: [s for _, s in evaluated(*x)],
        unknowns,
        costly=given.sites > 500 or heavy,
        guess=start,
    )


def _iterate(task: Task, given: Given, steps: int = 200) -> dict[Symbol, float] | None:
    """Iterate the closed equations, damped, from weak fields: the state evolution of the problem.

    It is only a starting point for the root finder: None if it does not settle.
    """
    maps = [(e.lhs, task.compiled(e.rhs, "numpy")) for e in task.equations if e.lhs in task.unknowns]
    if len(maps) != len(task.unknowns):
        return None
    env = given.environment("numpy")
    state = {s: -1.0 if s.is_nonpositive else 1.0 if s.is_nonnegative else 0.1 for s, _ in maps}
    for k in range(steps):
        gap = 0.0
        for symbol, call in maps:
            with np.errstate(all="ignore"):
                try:
                    new = float(call({**env, **state}))
                except (NotConverged, ZeroDivisionError, TypeError):
                    return None
            if not np.isfinite(new):
                return None
            gap = max(gap, abs(new - state[symbol]) / (abs(new) + abs(state[symbol]) + 1e-300))
            state[symbol] += (0.9 if k < 20 else 0.5) * (new - state[symbol])
        if gap < 1e-4:
            return state
    return None


def _size(task: Task, expr: Expr) -> Callable[[dict[Any, Any]], tuple[Any, Any]]:
    """An expression together with the sum of the absolute values of its terms."""
    terms = Add.make_args(expr)
    calls = [task.compiled(term, "numpy") for term in terms]

    def evaluate(env: dict[Any, Any]) -> tuple[Any, Any]:
        values = [call(env) for call in calls]
        return sum(values), sum(abs(v) for v in values) if len(values) > 1 else 1.0

    return evaluate


def _substitute(task: Task, definitions: dict[Symbol, Expr], env: dict[Any, Any], backend: str) -> dict[Symbol, Any]:
    """Evaluate the eliminated unknowns, the last one first."""
    out: dict[Symbol, Any] = {}
    for symbol in reversed(list(definitions)):
        call = task.compiled(definitions[symbol], backend)
        if backend == "numpy":
            with np.errstate(all="ignore"):
                try:
                    value = float(call(env))
                except (ZeroDivisionError, TypeError):
                    value = float("nan")
        else:
            value = _limited(call, env)
        out[symbol] = env[symbol] = value
    return out


def _inadmissible(task: Task, given: Given, found: dict[Symbol, Any]) -> str:
    """Say what is wrong with a root: an unknown of the wrong sign, or an order that was assumed."""
    for symbol, value in found.items():
        slack = 1e-9 * max(1.0, abs(value)) if np.isfinite(value) else 0.0
        if (symbol.is_nonnegative and value < -slack) or (symbol.is_nonpositive and value > slack):
            return f"{symbol} would be {value:.6g}"
        if symbol.is_integer and abs(value - round(value)) > 1e-9:
            return f"{symbol} would be {value:.6g}"
    env = given.environment("numpy")
    env.update(found)
    for condition in task.conditions:
        gap = condition.lhs - condition.rhs
        if gap.atoms(SiteQuantity) or gap.free_symbols - set(env):
            continue
        if float(task.compiled(gap, "numpy")(env)) < 0:
            return f"the derivation assumed {condition}"
    return ""


def _infeasible(task: Task, given: Given, rejected: list[Any]) -> Infeasible:
    where = ", ".join(f"{k} = {v}" for k, v in given.exact.items() if k not in (N, P)) or "these values"
    reasons = "; ".join(dict.fromkeys(c for _, c in rejected))
    reach = _range(task, given)
    return Infeasible(
        f"There is no solution at {where}" + (f": {reasons}." if reasons else ".") + reach,
        "values at which the problem is feasible: a load alpha below the capacity",
        "a smaller alpha" if alpha in given.exact else "other values of the parameters",
    )


def _range(task: Task, given: Given) -> str:
    """Say what range a given quantity can have, where it is an explicit function of the unknown one."""
    if len(given.solve_for) != 1 or alpha not in task.with_load.definitions or alpha not in given.exact:
        return ""
    expr = task.with_load.explicit(alpha)
    (other,) = given.solve_for
    if expr.free_symbols - set(given.exact) - {other} - {alpha} or expr.has(SiteQuantity):
        return ""
    t = np.linspace(-20, 4, 400)
    x = np.exp(t) if other.is_nonnegative else np.sinh(np.linspace(-6, 6, 400))
    env = {**given.environment("numpy"), other: x}
    with np.errstate(all="ignore"):
        y = np.asarray(task.compiled(expr, "numpy")(env), dtype=float)
    y = y[np.isfinite(y)]
    return f" Over all {other} the load alpha ranges up to the capacity {y.max():.6g}." if y.size else ""


def _finish(
    task: Task,
    given: Given,
    core: list[Expr],
    left: list[Symbol],
    definitions: dict[Symbol, Expr],
    root: np.ndarray,
    observable: Callable[[Any], Expr],
) -> Solution:
    mp = mpmath.mp
    order = [*task.unknowns, *given.solve_for]
    if _quick(task, given):
        env = given.environment("numpy")
        env.update(dict(zip(left, root, strict=True)))
        found = {**dict(zip(left, map(float, root), strict=True)), **_substitute(task, definitions, env, "numpy")}
        values = {s: mp.mpf(found[s]) for s in order}
        return Solution(task, given, values, observable, core)
    with mp.workdps(given.dps + GUARD):
        env = given.environment("mpmath")
        if left:
            calls = [task.compiled(expr, "mpmath") for expr in core]

            def residual(*x: Any) -> list[Any]:
                here = {**env, **dict(zip(left, x, strict=True))}
                return [call(here) for call in calls]

            root = polish(residual, [float(v) for v in root], given.dps)
        env.update(dict(zip(left, root, strict=True)))
        found = {**dict(zip(left, root, strict=True)), **_substitute(task, definitions, env, "mpmath")}
    return Solution(task, given, {s: found[s] for s in order}, observable, core)
