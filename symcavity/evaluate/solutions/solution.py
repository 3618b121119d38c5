"""A solved theory: its unknowns, any observable in digits that hold, and how well the equations are met."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from sympy import Basic, Expr, Float, S, Symbol, nan, zoo

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.joint import NumberedAverage
from symcavity.algebra.precision import alone, given_out, mp, with_digits
from symcavity.errors import DeclarationError, NotConverged, UnsupportedLaw, ValuesError
from symcavity.evaluate.averages.cancelling import followed
from symcavity.evaluate.averages.integrals import LAWS
from symcavity.evaluate.averages.tails import check_tails
from symcavity.evaluate.averages.twice import evaluate_twice, limited
from symcavity.evaluate.given.sizes import completed, ratio_named, sized
from symcavity.evaluate.given.values import GUARD, GUARDS, Given, Task
from symcavity.evaluate.solutions.next_order import SUPPORTED as LINEAR
from symcavity.evaluate.solutions.next_order import NextOrder
from symcavity.evaluate.solutions.spreads import Spreads, parts_of
from symcavity.evaluate.solutions.table import Table
from symcavity.evaluate.solutions.two_sites import two_sites
from symcavity.method.eliminate import tidy_arguments
from symcavity.model.content import without
from symcavity.model.exact import is_random
from symcavity.model.kinds import SiteCount, alpha
from symcavity.model.quantities import SiteQuantity
from symcavity.shapes.sampling import SCRAMBLES

SHOWN = 10  # digits that a solution in double has, or says that it has not
IN_DOUBLE = 15  # digits up to which integrals that an observable needs are taken in double

Values = dict[Symbol, Any]


@without(
    "beside", "dimension", "environment", "expression", "in_own_units", "loose", "number", "origin", "own_environment",
    "own_values", "quick", "reader", "rows", "sharpen", "solved_at", "task",
)  # fmt: skip
class Solution(Table):
    """The solved theory at given values.

    ``solution[alpha]`` and ``solution[average(w[i]**2)]`` evaluate any unknown, parameter or observable; a text is read
    as the same, ``solution["q_w"]``.  It is a read-only mapping from the names in its table to numbers, in the order of
    the table.

    Attributes
    ----------
    values : dict
        Every unknown, by symbol.
    dps : int
        The digits asked for.
    residual : mpf
        The largest relative residual of the closed equations, measured at higher precision than they were
        solved in.
    beside : dict
        What was given that is not a number: laws and arrays of quenched parameters, convex sets.
    certified : dict or None
        With ``solve(..., certify=True)``: every unknown as a python-flint ball; in the box of these balls there is
        exactly one solution, proved.
    remarks : tuple of str
        What a reader of the numbers should know of a Gibbs measure: which of two mirror images they are of, other
        solutions of higher free energy, a negative entropy of discrete states.
    """

    def __init__(
        self,
        task: Task,
        given: Given,
        values: Values,
        observable: Callable[[Any], Expr],
        refine: Callable[[int], Values] | None = None,
        guard: int = GUARD,
    ) -> None:
        self._task, self._given, self._observable = task, given, observable
        self.dps = given.dps
        self._own = values  # in the units in which it was solved
        self.values = given.outward(values)
        if wrong := [s for s, v in values.items() if mp.isnan(v)]:
            names = ", ".join(map(str, wrong))
            raise NotConverged(f"{names} would be no number at this solution.", hint="other values of the parameters")
        self._refine, self._guard = refine, guard
        self._residual: Any = None
        self.beside: dict[Any, Any] = {}
        self.certified: dict[Symbol, Any] | None = None
        self.loose: tuple[Symbol, ...] = ()
        self.origin: tuple[Any, ...] | None = None
        self.remarks: tuple[str, ...] = ()

    @property
    def own_values(self) -> Values:
        """Every unknown in the units in which it was solved."""
        return self._own

    @property
    def reader(self) -> Callable[[Any], Expr]:
        """What reads observables."""
        return self._observable

    @property
    def task(self) -> Task:
        """What was solved."""
        return self._task

    @property
    def given(self) -> Given:
        """The values at which it was solved."""
        return self._given.as_declared

    @property
    def solved_at(self) -> Given:
        """The same in the units in which it was solved."""
        return self._given

    @property
    def is_limit(self) -> bool:
        """Whether some unknowns are limits that the equations do not reach."""
        return any(map(mp.isinf, self.values.values()))

    @property
    def quick(self) -> bool:
        """Whether the numbers were computed in double."""
        return self._refine is None

    def environment(self, backend: str) -> dict[Any, Any]:
        """Everything known, for compiled expressions (of mpmath: rounded to the current precision)."""
        return self._at(self.given, self.values, backend)

    def own_environment(self, backend: str) -> dict[Any, Any]:
        """The same in the units in which it was solved."""
        return self._at(self._given, self._own, backend)

    def _at(self, given: Given, values: Mapping[Any, Any], backend: str) -> dict[Any, Any]:
        env = given.environment(backend)
        env.update({k: (float(v) if backend == "numpy" else +mp.convert(v)) for k, v in values.items()})
        return completed(self._task.kinds, env)  # the sizes that a load found implies

    def __reduce__(self) -> tuple[Any, ...]:
        """What another process needs: the theory, the values, and the unknowns that were found."""
        if self.origin is None:
            raise TypeError("Only solutions of theory.solve(...) are pickled.")
        again, theory, values = self.origin
        found = None if self.is_limit else {s: mp.convert(v) for s, v in self.values.items()}
        rest = {"beside": self.beside, "certified": self.certified is not None, "remarks": self.remarks}
        return again, (theory, values, self.dps, found, self.quick, self._guard, rest)

    @alone
    def number(self, key: Any) -> Any:
        """The value of an observable as a number of the engine's own context."""
        expr = self.expression(key)
        if expr in self.values:
            with mp.workdps(self.dps):
                return self._number(+mp.convert(self.values[expr]), key)
        value = self._value(expr)
        if not mp.isfinite(value) and (reduced := self._in_core_unknowns(expr)) != expr and not reduced.has(zoo, nan):
            value = self._value(reduced)  # infinities may cancel, as in kappa*b at kappa = 0
        return self._number(value, key)

    def stderr(self, key: Any) -> float:
        """Return the standard error of an observable whose average is sampled; zero where none is.

        The average is taken over independent sets of quasi-random fields; the error is the scatter of these sets.
        """
        expr = self.expression(key)
        sampled = [node for node in expr.atoms(NumberedAverage) if node.is_sampled]
        if not sampled:
            return 0.0
        rules = (dict(pair for node in sampled for pair in node.scramble(k).items()) for k in range(SCRAMBLES))
        values = [float(self._value(expr.xreplace(rule))) for rule in rules]
        return float(np.std(values, ddof=1) / np.sqrt(SCRAMBLES))

    def expression(self, key: Any) -> Expr:
        """An observable in unknowns, parameters and laws that have values here."""
        expr = self._expression(ratio_named(key)).xreplace(self._task.units)
        self._check_known(expr, key)
        return expr

    def _number(self, value: Any, key: Any) -> Any:
        """Refuse what is not a number."""
        if mp.isnan(value):
            raise NotConverged(
                f"{key} has no value at this solution: its expression is not a number there.",
                self.values,
                hint="parameters that are not at the edge of their range; more digits, dps=30",
            )
        return value

    def _expression(self, key: Any) -> Expr:
        plain = isinstance(key, str) or (type(key) is Symbol and key not in self.values)
        if plain and str(key) in (symbols := self.named()):  # which a name tells, whatever its assumptions
            return symbols[str(key)]
        if isinstance(key, Basic) and key.has(Float) and self.dps > 15:
            raise ValuesError(
                f"The observable {key!s:.80} holds a float, and {self.dps} digits were requested.",
                "exact numbers: integers, Rational",
            )
        known = self._task.observables
        try:
            if isinstance(key, Basic):
                if key not in known:
                    known[key] = self._observable(key)
                return known[key]
            return self._observable(key)
        except AttributeError:
            raise DeclarationError(
                f"{key!r:.80} is not an observable.",
                "alpha, average(w[i]**2), response(w), and expressions of these",
            ) from None

    def named(self) -> dict[str, Any]:
        """What has a value here, by name."""
        ratios = {f"{kind.size}/N": kind.ratio for kind in sized(self._task.kinds)}
        return ratios | {str(s): s for s in (*self._task.units, *self.values, *self._given.exact)}

    def _check_known(self, expr: Expr, key: Any) -> None:
        if expr.has(S.NaN, S.ComplexInfinity):
            raise ValuesError(f"The observable {key} is {expr}.", "expressions that are not divided by zero")
        known = set(self.environment("numpy"))
        masked = expr.xreplace({q: Symbol("_") for q in expr.atoms(SiteQuantity)})
        missing = sorted(_free(masked) - known, key=str)
        if not missing:
            return
        if isinstance(missing[0], SiteCount):
            raise ValuesError(
                f"{key} grows with the size of the system, and {missing[0]} is not given.",
                "averages, or a size among the values",
                f"{{{missing[0]}: 400, ...}} in solve(...)",
            )
        raise ValuesError(
            f"{missing[0]} in {key} is neither an unknown nor a parameter of this theory.",
            ", ".join(str(s) for s in (*self._task.units, *self.values, *self._given.exact)),
        )

    def sharpen(self, guard: int) -> int:
        """Know the unknowns to at least so many digits beyond those asked for; return to how many."""
        if self._refine is not None and guard > self._guard:
            self._own, self._guard = self._refine(guard), guard
            self.values = self._given.outward(self._own)
        return self._guard

    def _in_core_unknowns(self, expr: Expr) -> Expr:
        """Return the expression with the eliminated unknowns written out."""
        closed = self._task.with_load if alpha in self._given.solve_for else self._task.eliminated
        for symbol in closed.definitions:
            if expr.has(symbol) and symbol not in self._given.exact:
                expr = tidy_arguments(expr.xreplace({symbol: closed.explicit(symbol)}))
        return expr

    def _value(self, expr: Expr) -> Any:
        own, power = self.in_own_units(expr)
        value = self._evaluate(own)
        return mp.ldexp(value, power) if power else value

    def in_own_units(self, expr: Expr) -> tuple[Expr, int]:
        """An expression in the units in which it was solved, and its own unit as a power of two, if it has one."""
        if (units := self._given.units) is None:
            return expr, 0
        power = units.observable(expr)
        return (expr.xreplace(units.rule), 0) if power is None else (expr, power)

    def _evaluate(self, expr: Expr) -> Any:
        """The value of an expression, in the units in which it was solved."""
        check_tails({"the observable": expr}, self._given.laws, self.own_environment("numpy"))
        once = expr.has(GaussianAverage, ImplicitAverage)
        given = self._given
        if self.quick or (once and given.dps <= IN_DOUBLE and given.guards[0] == GUARDS[0] and not given.at_edge):
            exprs = self._task.absorbed(given.laws, (expr,))
            with np.errstate(all="ignore"):
                value = self._task.compiled(exprs[0], "numpy")(self.own_environment("numpy"))
            return mp.mpf(float(self._mended(exprs).get(0, value)))
        if once:
            (expr,) = self._task.absorbed(given.laws, (expr,))
        call = self._task.compiled(expr, "mpmath")
        previous = None
        guards = [self._guard, *(g for g in self._given.guards if g > self._guard)]
        for guard in guards:
            self.sharpen(guard)
            (value,) = evaluate_twice(lambda: [limited(call, self.own_environment("mpmath"))], self.dps, guard, once)
            last = guard == guards[-1] or self._given.at_edge
            if value.sound and (last or mp.isfinite(value.value)):
                break
            if last and previous is not None and (limit := previous.limit(value)) is not None:
                return limit
            previous = value
        with mp.workdps(self.dps):
            return +value.value

    def _mended(self, exprs: tuple[Expr, ...]) -> dict[int, float]:
        """The closed forms of which double leaves too little, with digits; what has faded is very small there."""
        point = followed(self._own.values(), self._own)
        return self._task.cancelling(exprs, tuple(self._own)).values(point, self.own_environment("numpy"))

    @property
    @alone
    def stability(self) -> Any:
        """The gain of a small random change of all fields, after one round through the kinds: stable below one.

        For features and data it is ``variance factors * alpha * <(dw/dI)^2> <(dlambda/dI)^2>``; in general the
        largest eigenvalue of the matrix of such products (squared where every round has an even number of steps).
        For convex sets other than balls it is sampled; ``stderr(theory.gains.product)`` is its standard error.
        Message passing converges where it is below one (de Almeida and Thouless, J. Phys. A 11, 983, 1978).

        Raises
        ------
        UnsupportedLaw
            Where the condition is not derived: in the naive analysis.
        """
        found = self._task.gains()
        if (product := found.product) is not None:
            return self[product]
        matrix = mp.matrix([[self.number(e) if e != 0 else 0 for e in row] for row in found.matrix])
        if any(mp.isinf(e) for e in matrix):  # where states jump
            return given_out(mp.inf)
        with mp.workdps(self.dps + GUARD):
            largest = max(abs(e) for e in mp.eig(matrix, left=False, right=False))
        with mp.workdps(self.dps):
            return given_out(+largest ** (2 if found.there_and_back else 1))

    @property
    def objective(self) -> Any:
        """The minimum of a declared convex problem divided by N, which is the value of its saddle.

        Finite instances have the same number, ``sim.objective``.

        Raises
        ------
        UnsupportedLaw
            For a system of equations, which minimizes nothing.
        """
        return self[self._task.objective()]

    def variance(self, what: Any = "objective") -> Any:
        """N times the variance between instances of a quantity per feature, to leading order in N.

        Couplings and quenched parameters are drawn anew in each instance.  An observable of one instance scatters about
        the theory by ``sqrt(solution.variance(observable)/N)``.

        Parameters
        ----------
        what : str or Expr
            ``'objective'``: the minimum of a declared convex problem, so that this is ``Var(E)/N`` of the minimum
            ``E``.  Or a function of averages over sites, ``average(w[i]**2)``.

        Returns
        -------
        mpf
            ``alpha Var(M_d) + Var(M_f) - alpha <lambda**2> <w**2>`` for the minimum and one coupling between features
            and data, with the minima ``M`` of single sites; in general a sum over kinds minus a sum over couplings.

        Raises
        ------
        UnsupportedLaw
            For systems of equations, labels drawn on a field, vector fields and reciprocities; and for observables
            of problems with variables that all sites share, or with fields that are correlated.
        """
        if isinstance(what, str) and what == "objective":
            return self[self._task.variance_of_minimum()]
        return self._spread(what, what)

    def next_order(self, what: Any = "objective") -> Any:
        """N times by how much the mean over instances of a quantity per feature differs from its limit: to order 1/N.

        For problems whose laws are all linear, of quadratic losses and penalties, with real Gaussian couplings between
        two kinds of sites. It is a derivative of ``log(1 - stability)/2``.

        Parameters
        ----------
        what : str or Expr
            ``'objective'``, the minimum of a declared convex problem, or a response, ``response(w)``.

        Raises
        ------
        UnsupportedLaw
            For other laws, other systems, and other quantities.
        """
        found, read, _ = self._task.perturbed()
        if not self._task.linear:
            raise UnsupportedLaw("Not all laws are linear: means to order 1/N are not known.", LINEAR)
        if self.is_limit or not self.stability < 1:
            raise UnsupportedLaw("Means to order 1/N are known of stable solutions.", "a stability below one")
        order = NextOrder(self, found)
        if isinstance(what, str) and what == "objective":
            return with_digits(given_out(order.minimum()), self.dps)
        return with_digits(given_out(order.response(read(what))), self.dps)

    def _spread(self, one: Any, other: Any) -> Any:
        """N times the covariance of two observables between instances."""
        found, read, in_states = self._task.perturbed()
        if self.is_limit or not self.stability < 1:
            raise UnsupportedLaw(
                "Fluctuations between instances are derived for stable solutions, and this is a limit or not stable.",
                "solutions of closed equations, of a stability below one",
            )
        exprs = [self._task.objective() if key == "objective" else read(key) for key in (one, other)]
        parts = [parts_of(self, expr, found.shares, in_states) for expr in exprs]
        return with_digits(given_out(Spreads(self, found).covariance(*parts)), self.dps)

    def covariance(self, what: Any, other: Any = None, *, over: Any = None) -> Any:
        """Covariances: of two observables between instances, or of two sites at given couplings.

        Parameters
        ----------
        what : Variable or Expr
            A quantity of one kind of site, ``w`` or ``w[i] - t[i]``, with ``over=``; or an observable of an instance, a
            function of averages or ``'objective'``, with another one.
        other : Expr, optional
            The other observable.
        over : sequence of Quenched, optional
            What varies; the couplings and all other quenched parameters are given.

        Returns
        -------
        mpf or SiteCovariance
            Of observables N times their covariance, as :meth:`variance`.  Of sites ``.variance``, ``.off_diagonal``
            (N times the mean square of ``C_ij``, i and j different), ``.dimension``, ``.moments`` of the eigenvalues.

        Raises
        ------
        UnsupportedLaw
            Where it is not derived: vector fields, and sites whose states have a mean over what varies, which
            differs from site to site.
        NotConverged
            Where the solution is not stable, so that covariances grow without bound.
        ValuesError
            If neither another observable nor what varies is given, or both.
        """
        if (other is None) == (over is None):
            raise ValuesError(
                "A covariance is one of two observables, or one of two sites over what varies.",
                "solution.covariance(average(w[i]**2), 'objective'), solution.covariance(w, over=[xi])",
            )
        if other is not None:
            return self._spread(what, other)
        return two_sites(self, self._task.pair(what, over), self.stability)

    def dimension(self, what: Any, *, over: Any) -> Any:
        """The share of all directions that a quantity of the sites explores at given couplings.

        ``(sum C_ii)**2 / (n sum C_ij**2)`` for the covariances ``C`` of ``n`` sites over what varies, in the limit: the
        participation ratio of the eigenvalues over ``n``.  It is one for independent sites of one variance.

        Parameters and errors are those of :meth:`covariance`.
        """
        return self.covariance(what, over=over).dimension

    def pace(self, damping: float = 0.0) -> float:
        """By which factor a step of message passing shrinks small random changes, where a share of moves is not made.

        The largest ``m`` with ``(m - damping)**2 = (1 - damping)**2 * rho``, where ``rho`` is the largest eigenvalue of
        the gains from kind to kind, those of what is heard in the same step times ``m**2``.  At ``m = 1`` damping drops
        out: it is below one where the stability is, with damping or without.  Without, for two kinds of sites, its
        square is the stability.  In double.

        Raises
        ------
        UnsupportedLaw
            Where the stability is not derived, and for limits with states at rest.
        """
        found, order = self._task.gains(), list(self._task.kinds)
        gain = np.array([[float(self.number(e)) if e != 0 else 0.0 for e in row] for row in found.matrix])
        if not np.all(np.isfinite(gain)):
            raise UnsupportedLaw("A limit with states at rest has no pace.", "solutions of closed equations")
        same = [order.index(s.sender) < order.index(s.hearer) for s in found.spreads]

        def step(m: float) -> float:
            largest = max(abs(np.linalg.eigvals(gain * np.where(same, m * m, 1.0))), default=0.0)
            return damping + (1 - damping) * float(np.sqrt(largest))

        before, now = np.inf, 1.0
        while step(now) > now:
            now *= 2
        while now < before:  # from above, down to the largest root
            before, now = now, step(now)
        return before

    @property
    def residual(self) -> Any:
        """The largest relative residual of the closed equations, at higher precision than the solution."""
        if self._residual is None:
            self._residual = given_out(self._measure())
        return self._residual

    @alone
    def _measure(self) -> Any:
        sides = self._task.absorbed(self._given.laws)
        if self.quick:
            env, whole = self.own_environment("numpy"), self._task.together(sides)
            with np.errstate(all="ignore"):
                whole.refine(env, grids := whole.grids())
                found = dict(enumerate(whole.at(_extended(env), grids)[0])) | self._mended(sides)
                values = [mp.mpf(float(v)) for v in _gaps(list(found.values()))]
        else:
            with mp.workdps(self.dps + self._guard + GUARD):
                env = self.own_environment("mpmath")
                values = _gaps([limited(self._task.compiled(e, "mpmath"), env) for e in sides])
        if any(map(mp.isinf, self.values.values())):  # at an edge equations are met as limits
            values = [v for v in values if mp.isfinite(v)]
        return max((mp.inf if mp.isnan(v) else v for v in values), default=mp.zero)

    def rows(self) -> list[tuple[Any, Any]]:
        """Every unknown with its value."""
        own = {e.lhs for e in self._task.equations}  # a scale is an order parameter like others
        hats = {h for e in self._task.units.values() for h in e.atoms(Symbol)} - set(self._task.units) - own
        known = ((s, v) for s, v in self.values.items() if s not in self.loose)
        out = [(s, v) for s, v in known if s not in hats or s in self._given.solve_for]
        return out + [(g, self[g]) for g in self._task.units if g not in self.values and g not in self.loose]

    @property
    def digits(self) -> int:
        """How many digits are known, at most those asked for: as many as the equations are met to."""
        known = -float(mp.log10(self.residual)) if self.residual > 0 else self.dps
        return min(max(int(known), 0), self.dps)

    def __str__(self) -> str:
        rough = self.digits < min(self.dps, SHOWN)  # no more digits than there are
        digits = max(self.digits, 1) if rough else max(self.dps, 6)
        lines = [" at ".join(["Solution", *filter(None, [self._point()])])]
        lines += [f"  {s!s:<18} = {mp.nstr(v, digits)}" for s, v in self.rows()]
        with suppress(UnsupportedLaw, NotConverged):
            lines.append(f"  stability          = {self._gain()}  (stable below 1)")
        lines.append(f"  residual           = {mp.nstr(self.residual, 3)}")
        if rough:
            said = "no digit" if not self.digits else f"about {digits} digit{'s' if digits > 1 else ''}"
            lines.append(f"  known to           : {said}, for averages are not known to more in double")
        lines += [f"  note               : {remark}" for remark in self.remarks]
        if self.certified is not None:
            lines.append("  certified          : exactly one solution in the box of .certified")
        return "\n".join(lines)

    __repr__ = __str__

    def _gain(self) -> str:
        """The stability, to the digits that are known where it is sampled."""
        value, product = float(self.stability), self._task.gains().product
        error = 0.0 if product is None else self.stderr(product)
        return mp.nstr(mp.mpf(value), max(1, int(np.log10(value / error))) if 0 < error < value else 6)

    def _point(self) -> str:
        """Where it was solved, in a line."""
        return ", ".join(f"{k} = {_brief(v)}" for k, v in {**self.given.exact, **self.beside}.items())

    def _repr_html_(self) -> str:
        from symcavity.writing.displays import Formula, html

        digits = max(self.dps, 6)
        rows: list[tuple[str, str]] = [(Formula.of(s), mp.nstr(v, digits)) for s, v in self.rows()]
        with suppress(UnsupportedLaw, NotConverged):
            rows.append(("stability", f"{self._gain()} (stable below 1)"))
        rows.append(("residual", mp.nstr(self.residual, 3)))
        rows += [("note", remark) for remark in self.remarks]
        return html(["", "value"], rows, str(self).splitlines()[0])


def _brief(value: Any) -> str:
    """Return a value in a few words: long arrays by their number of entries."""
    if is_random(value):
        return str(value.pspace.distribution).replace("Distribution", "", 1)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {v}" for k, v in value.items()) + "}"
    if hasattr(value, "__len__") and not isinstance(value, str):
        entries = [f"{v:.6g}" if isinstance(v, float) else str(v) for v in value]
        return f"[{', '.join(entries)}]" if len(entries) <= 6 else f"{len(entries)} values"
    return str(value)


def _free(expr: Expr) -> set[Any]:
    """Free symbols, those of the placeholder left out."""
    return {s for s in expr.free_symbols if s.name != "_"}


def _gaps(sides: Sequence[Any]) -> list[Any]:
    """How far each equation is from holding, by its two sides."""
    return [_relative(a, b) for a, b in zip(sides[::2], sides[1::2], strict=True)]


def _relative(a: Any, b: Any) -> Any:
    if a == b:
        return 0 * abs(b) if np.isfinite(float(b)) else mp.mpf(0)
    return abs(a - b) / max(abs(a), abs(b), 1 if a == 0 or b == 0 else 0)


class _Extended:
    """The law of a side in extended precision."""

    def __init__(self, law: Any) -> None:
        self._law = law
        self.finest = law.finest
        self.is_ruled = law.is_ruled

    def table(self, families: Any, level: int = 0) -> Any:
        """Columns of values, and weights."""
        columns, weights = self._law.table(families, level)
        longer = None if weights is None else weights.astype(np.longdouble)
        return tuple(c.astype(np.longdouble) for c in columns), longer


def _extended(env: dict[Any, Any]) -> dict[Any, Any]:
    """Return the same values in extended precision (where the platform has it)."""
    out: dict[Any, Any] = {k: np.longdouble(v) for k, v in env.items() if k != LAWS}
    out[LAWS] = {side: _Extended(law) for side, law in env[LAWS].items()}
    return out
