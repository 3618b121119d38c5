"""Sweeps over a grid of parameters and seeds: rows on disk as they finish, resumed where they stopped."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from sympy import Expr, Symbol

from symcavity.errors import SymcavityError, ValuesError
from symcavity.evaluate.binding import bind, solve_theory, task_of
from symcavity.evaluate.given.values import read_values
from symcavity.evaluate.progress import Report, counted
from symcavity.finite.compare import default_observables
from symcavity.finite.draw import coupling_law, seed_list
from symcavity.finite.executors import BrokenExecutor, each, resolved
from symcavity.finite.fingerprint import exact_text, fingerprint
from symcavity.finite.instance import FRESH
from symcavity.finite.labels import label
from symcavity.finite.minimum import solve_instance
from symcavity.finite.observables import Reader
from symcavity.finite.rows import Row, RowFile
from symcavity.finite.run import as_system, check_sizes, prepare
from symcavity.finite.tables import aligned, short, to_pandas, to_xarray
from symcavity.method.theory import Theory
from symcavity.model.averages import Fresh
from symcavity.model.kinds import DATUM, FEATURE, SiteCount, alpha
from symcavity.model.system import System
from symcavity.model.typed import observable_of
from symcavity.writing.displays import html

Task = tuple[dict[Any, Any], int, int]

_KEYS = ("point", "N", "seed")
_OUTCOME = ("feasible", "stationarity", "feasibility", "slackness", "method", "error")


@dataclass
class Sweep:
    """The rows of a sweep.

    Attributes
    ----------
    rows : list of dict
        One for each point (and seed): parameters, observables, residuals, and the error if it failed.
    columns : tuple of str
        The columns, in order.
    observables : tuple of Expr
        What was computed or measured.
    """

    rows: list[Row]
    columns: tuple[str, ...]
    observables: tuple[Expr, ...] = ()

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __add__(self, other: Sweep) -> Sweep:
        columns = tuple(dict.fromkeys(self.columns + other.columns))
        return Sweep(self.rows + other.rows, columns, tuple(dict.fromkeys(self.observables + other.observables)))

    @property
    def failed(self) -> list[Row]:
        """The rows of the points that failed, with their errors."""
        return [row for row in self.rows if row.get("error")]

    def column(self, name: Any) -> list[Any]:
        """Return one column; observables may be given as expressions."""
        key = name if isinstance(name, str) else label(name)
        return [row.get(key) for row in self.rows]

    def plot(self, x: Any = None, y: Any = None, **options: Any) -> Any:
        """Plot one column against another; see :func:`symcavity.finite.plots.plot_sweep`.

        Without names it is the parameter that varies, and the observable, where there is one of each.

        Raises
        ------
        ValuesError
            If there are several that may be meant, or none.
        """
        from symcavity.finite.labels import label_tex
        from symcavity.finite.plots import plot_sweep, varied

        if x is None:
            x = _only(list(map(Symbol, varied(self.rows))), "parameter that varies", "x")
        if y is None:
            y = _only([o for o in self.observables if any(map(_has, self.column(o)))], "observable", "y")
        keys = [v if isinstance(v, str) else label(v) for v in (x, y)]
        tex = {k: f"${label_tex(v)}$" for k, v in zip(keys, (x, y), strict=True) if not isinstance(v, str)}
        return plot_sweep(self.rows, *keys, labels=tex | dict(options.pop("labels", {})), **options)

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        return to_pandas(self.rows, self.columns)

    def to_xarray(self) -> Any:
        """Return the columns as an xarray Dataset, along the parameters that vary, and sizes and seeds that do.

        Raises
        ------
        MissingDependency
            Without xarray and pandas.
        ValuesError
            If rows of theory and of instances are mixed: two rows would have one place.
        """
        from symcavity.finite.plots import varied

        axes = [*varied(self.rows), *(k for k in ("N", "seed") if len(set(self.column(k))) > 1)]
        return to_xarray(self.rows, self.columns, axes)

    def _table(self) -> list[list[str]]:
        """Return the head and the rows of what is shown, without columns that are empty."""
        shown = [c for c in self.columns if c not in {"point", "error"}]
        shown = [c for c in shown if any(map(_has, self.column(c)))] or shown
        return [shown, *([short(row.get(c, "")) for c in shown] for row in self.rows)]

    @property
    def warning(self) -> str:
        """How many rows failed, and why the first did; empty if none failed."""
        if not self.failed:
            return ""
        return f"{len(self.failed)} of {len(self.rows)} rows failed; the first: {self.failed[0]['error']}"

    def __str__(self) -> str:
        return "\n".join([*aligned(self._table()), *filter(None, [self.warning])])

    def _repr_html_(self) -> str:
        head, *body = self._table()
        return html(head, body) + (f"<p>{escape(self.warning)}</p>" if self.warning else "")

    __repr__ = __str__


def _has(value: Any) -> bool:
    return value not in (None, "")


def _only(columns: Sequence[Expr], what: str, axis: str) -> Expr:
    """The one column that an axis can show."""
    if len(columns) != 1:
        raise ValuesError(
            f"The axis {axis} of the plot is not named, and this sweep has "
            f"{f'more than one {what}: ' + ', '.join(map(label, columns)) if columns else f'no {what}'}.",
            f"sweeps with one {what}, or the names of both columns",
            "sweep.plot(alpha, average(w[i]**2))",
        )
    return columns[0]


def grid_points(grid: Mapping[Any, Iterable[Any]] | Iterable[Mapping[Any, Any]]) -> list[dict[Any, Any]]:
    """Return the points of a grid: a mapping from symbols to values, or the points themselves.

    Parameters
    ----------
    grid : mapping, iterable of mappings, or pandas DataFrame
        ``{alpha: [0.5, 1], C: [1, 2]}`` stands for the four combinations; each row of a table, as
        ``frame.to_dict("records")``, for one point.  A point that is given twice counts once.
    """
    if hasattr(grid, "to_dict"):
        grid = grid.to_dict("records")
    if isinstance(grid, Mapping):
        axes = [list(v) if isinstance(v, Iterable) and not isinstance(v, str) else [v] for v in grid.values()]
        points = [dict(zip(grid, combination, strict=True)) for combination in itertools.product(*axes)]
    else:
        points = [dict(p) for p in grid]
    if not points:
        raise ValuesError("The grid is empty.", "at least one value for each parameter")
    return list({_name(point): point for point in points}.values())


def _parameter_columns(points: list[dict[Any, Any]], others: Iterable[str]) -> list[str]:
    """Return the columns of the parameters, refusing one that is the name of another column."""
    for k in dict.fromkeys(k for point in points for k in point):
        if str(k) in others and not isinstance(k, SiteCount):
            raise ValuesError(
                f"The parameter {k} has the name of another column of a sweep.",
                f"parameters that are not called {', '.join(sorted(others))}",
            )
    return list(dict.fromkeys(str(k) for point in points for k in point))


def _name(point: Mapping[Any, Any]) -> str:
    return "; ".join(f"{k}={exact_text(v)}" for k, v in sorted(point.items(), key=lambda item: str(item[0])))


# -- the sweeps --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _SimulationJob:
    """What all points of a simulation sweep share."""

    system: System
    values: dict[Any, Any]
    couplings: Any
    method: str
    fresh: int
    observables: tuple[Expr, ...]


def _plain(value: Any) -> Any:
    """Return a number as a float, and everything else as text."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)


def simulate_point(job: _SimulationJob, task: tuple[dict[Any, Any], int, int]) -> Row:
    """Simulate one instance at one point; a failure becomes part of the row."""
    point, n, seed = task
    row = _row_of(task, instances=True)
    try:
        setup = prepare(job.system, {**job.values, **point}, job.couplings, job.method, job.fresh)
        instance = setup.instance(n, seed)
        row |= {str(kind.size): n for kind, n in instance.size.items() if kind != FEATURE}
        solved = solve_instance(setup.system, instance, job.method)
        row |= {"feasible": solved.state is not None, "method": solved.method}
        if solved.residuals is not None:
            row |= asdict(solved.residuals)
            reader = Reader(setup.written, instance, solved)
            for o in job.observables:
                try:
                    row[label(o)] = reader(o)
                except SymcavityError as error:  # the others are kept: what is the same for all minimizers
                    row["error"] = _described(error)
    except Exception as error:  # noqa: BLE001 - a point that fails must not stop the others
        row["error"] = _described(error)
    return row


def _row_of(task: Task, *, instances: bool) -> Row:
    """What a row says of its task: the point, and for instances size and seed."""
    point, n, seed = task
    which = {"N": n, "seed": seed} if instances else {}
    return {"point": _name(point), **which} | {str(k): _plain(v) for k, v in point.items()}


def _described(error: BaseException) -> str:
    text = error.found if isinstance(error, SymcavityError) else str(error)
    return f"{type(error).__name__}: {' '.join(text.split())}"


@dataclass(frozen=True)
class _TheoryJob:
    """What all points of a theory sweep share."""

    theory: Theory
    values: dict[Any, Any]
    observables: tuple[Expr, ...]
    options: dict[str, Any]


def solve_point(job: _TheoryJob, task: tuple[dict[Any, Any], int, int]) -> Row:
    """Solve a theory at one point; a failure becomes part of the row."""
    point = task[0]
    row = _row_of(task, instances=False)
    try:
        solution = solve_theory(job.theory, {**job.values, **point}, **job.options)
        row |= {label(o): float(solution[o]) for o in job.observables}
        row["residual"] = float(solution.residual)
    except Exception as error:  # noqa: BLE001 - a point that fails must not stop the others
        row["error"] = _described(error)
    return row


def _run(
    worker: Callable[..., Row],
    job: Any,
    tasks: list[Task],
    columns: Sequence[str],
    run: str,
    file: str | Path | None,
    executor: Any,
    progress: bool | Report | None,
    retry: bool,
) -> Sweep:
    """Run the tasks that the file does not have yet."""
    instances = set(_KEYS) <= set(columns)  # the rows of a theory are told apart by their points alone

    def place_of(row: Row) -> tuple[str, int, int]:
        return _key(row.get("point"), row.get("N"), row.get("seed")) if instances else _key(row.get("point"), 0, -1)

    order = {_key(_name(t[0]), t[1], t[2]): k for k, t in enumerate(tasks)}
    plain = [{str(k): _plain(v) for k, v in t[0].items()} for t in tasks]
    words = frozenset(k for p in plain for k, v in p.items() if isinstance(v, str))
    with RowFile(Path(file) if file is not None else None, tuple(columns), run, words) as store:
        for row in store.rows:
            place = order.get(place_of(row))
            if place is not None and any(row.get(k) != v for k, v in plain[place].items()):
                raise ValuesError(
                    f"A row of {file} contradicts itself: it is about {row['point']}, and its parameters are "
                    f"{', '.join(f'{k} = {row.get(k)}' for k in plain[place])}.",
                    "rows as a sweep writes them",
                    "take the row out, and it is computed again",
                )
        have = {place_of(r) for r in store.rows if not (retry and r.get("error"))}
        todo = [t for t in tasks if _key(_name(t[0]), t[1], t[2]) not in have]
        name = "instances" if instances else "points"

        def lost(task: Task, why: str) -> Row:
            return _row_of(task, instances=instances) | {"error": f"{BrokenExecutor.__name__}: {why}"}

        try:
            with counted(len(todo), name, progress, str(file or "")) as count, resolved(executor) as pool:
                for _, row in each(pool, worker, job, todo, chunk=1, lost=lost):
                    store.add(row)
                    count.advance()
        except BrokenExecutor as error:
            error.rows = store.rows
            raise
        latest = {place_of(r): r for r in store.rows}
    mine = [r for k, r in latest.items() if k in order]
    mine.sort(key=lambda r: order[place_of(r)])
    return Sweep(mine, tuple(columns), job.observables)


def _key(point: Any, n: Any, seed: Any) -> tuple[str, int, int]:
    return str(point), int(n or 0), int(seed if seed not in (None, "") else -1)


def sweep_simulation(
    declared: Any,
    grid: Mapping[Any, Iterable[Any]] | Iterable[Mapping[Any, Any]],
    *,
    N: int | Iterable[int],
    seeds: int | Iterable[int] = 10,
    values: Mapping[Any, Any] | None = None,
    observables: Iterable[Any] | None = None,
    couplings: Any = "gaussian",
    file: str | Path | None = None,
    executor: Any = None,
    progress: bool | Report | None = None,
    retry: bool = False,
    method: str = "",
    fresh: int = FRESH,
) -> Sweep:
    """Simulate a declaration over a grid of parameters, sizes and seeds.

    Parameters
    ----------
    declared : Problem or System
        What is simulated.
    grid : mapping or iterable of mappings
        Values by symbol, whose combinations are the points; or the points.
    N : int or iterable of int
        Sizes.
    seeds : int or iterable of int
        Seeds, at every point and size.
    values : mapping, optional
        What is the same at all points.
    observables : iterable of Expr, optional
        The columns to measure.
    couplings : str or callable
        As in :func:`symcavity.finite.simulate`.
    file : path, optional
        Where rows are written as they finish (CSV, or JSON lines for ``.jsonl``); rows that are there
        already are not computed again.
    executor : int, Executor, dask client or None
        Where to run.
    progress : bool, callable or None
        Whether to show how far it is (None: on terminals and in notebooks, where it takes long), or what to call with
        (done, total, seconds elapsed, seconds left).
    retry : bool
        Whether to try again the rows of the file that failed.
    method, fresh : str and int, optional
        As in :func:`symcavity.finite.simulate`.

    Returns
    -------
    Sweep
        One row for each instance; a failed one holds its error and does not stop the others.

    Raises
    ------
    BrokenExecutor
        If the executor dies; finished rows are in the file, and in the attribute ``rows``.
    """
    system, points, wanted = as_system(declared), grid_points(grid), seed_list(seeds)
    base = dict(values or {})
    problems = []
    for point in points:
        try:
            sizes = check_sizes(N, prepare(system, {**base, **point}, fresh=fresh).values)
        except SymcavityError as error:
            problems.append(error)
    if len(problems) == len(points):
        raise problems[0]
    coupling_law(couplings)
    chosen = default_observables(system) if observables is None else [observable_of(o, system) for o in observables]
    tasks = [(point, n, seed) for point in points for n in sizes for seed in wanted]
    names = _parameter_columns(points, [*_KEYS, "run", *_OUTCOME])
    sizes_of_others = [str(kind.size) for kind in system.kinds if kind != FEATURE]
    columns = list(dict.fromkeys([*_KEYS, *sizes_of_others, *names, *map(label, chosen), *_OUTCOME]))
    job = _SimulationJob(system, base, couplings, method, fresh, tuple(chosen))
    tested = {"fresh": fresh} if any(o.has(Fresh) for o in chosen) else {}
    run = fingerprint(system, base, couplings=couplings, kind="simulation", method=method or "chosen", **tested)
    return _run(simulate_point, job, tasks, columns, run, file, executor, progress, retry)


def sweep_theory(
    theory: Theory,
    grid: Mapping[Any, Iterable[Any]] | Iterable[Mapping[Any, Any]],
    *,
    values: Mapping[Any, Any] | None = None,
    observables: Iterable[Any] | None = None,
    file: str | Path | None = None,
    executor: Any = None,
    progress: bool | Report | None = None,
    retry: bool = False,
    **options: Any,
) -> Sweep:
    """Solve a theory over a grid of parameters.

    Parameters
    ----------
    theory : Theory
        The theory; solving it gets ``options``.
    grid : mapping or iterable of mappings
        Values by symbol, whose combinations are the points; or the points.
    values : mapping, optional
        What is the same at all points.
    observables : iterable of Expr, optional
        The columns to evaluate; by default the load (where it is not given) and what is compared with
        simulations.
    file, executor, progress, retry
        As in :func:`sweep_simulation`.

    Returns
    -------
    Sweep
        One row for each point.

    Raises
    ------
    ValuesError
        If no point of the grid can be read together with the values, before any work: too many values, or too few.
    """
    points, base = grid_points(grid), dict(values or {})
    _check_values(theory, [{**base, **point} for point in points], int(options.get("dps", 15)))
    if observables is None:
        given = {str(k) for point in points for k in point} | set(map(str, base))
        loaded = str(alpha) not in given and DATUM in theory.system.kinds
        chosen = ([alpha] if loaded else []) + default_observables(theory.system)
    else:
        chosen = [theory.named_by(o) for o in observables]
    names = _parameter_columns(points, ["point", "residual", "error", "run"])
    columns = list(dict.fromkeys(["point", *names, *map(label, chosen), "residual", "error"]))
    tasks = [(point, 0, -1) for point in points]
    job = _TheoryJob(theory, base, tuple(chosen), options)
    bound = {**theory.binding, **base}
    settings = {"digits": 15} | {"digits" if k == "dps" else k: v for k, v in options.items()}
    method = "naive" if theory.is_naive else "cavity"
    run = fingerprint(theory.system, bound, kind="theory", method=method, **settings)
    return _run(solve_point, job, tasks, columns, run, file, executor, progress, retry)


def _check_values(theory: Theory, points: Iterable[Mapping[Any, Any]], dps: int) -> None:
    """Refuse a grid of which no point can be read."""
    first: ValuesError | None = None
    for point in points:
        try:
            bound, rest = bind(theory, point)
            read_values(task_of(bound), rest, dps)
        except ValuesError as error:
            first = first or error
        else:
            return
    if first is not None:
        raise first
