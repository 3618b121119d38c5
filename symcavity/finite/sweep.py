"""Sweeps over a grid of parameters and seeds: rows on disk as they finish, resumed where they stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sympy import Expr

from symcavity.errors import SymcavityError, ValuesError
from symcavity.evaluate.binding import bind
from symcavity.evaluate.given.checked_values import read_values
from symcavity.evaluate.progress import Report
from symcavity.evaluate.solve import solve_theory
from symcavity.evaluate.tasks import task_of
from symcavity.finite.compare import default_observables
from symcavity.finite.draw import coupling_law, seed_list
from symcavity.finite.executors import BrokenExecutor, run_all
from symcavity.finite.fingerprint import fingerprint
from symcavity.finite.grid import Task, grid_points, parameter_columns, plain_value, point_name, row_of
from symcavity.finite.instance import FRESH
from symcavity.finite.labels import label
from symcavity.finite.minimum import solve_instance
from symcavity.finite.observables import Reader
from symcavity.finite.rows import Row, RowFile
from symcavity.finite.setup import as_system, check_sizes, prepare
from symcavity.finite.swept import Sweep
from symcavity.method.theory import Theory
from symcavity.model.averages import Fresh
from symcavity.model.kinds import DATUM, FEATURE, alpha
from symcavity.model.system import System
from symcavity.model.typed import observable_of

_KEYS = ("point", "N", "seed")
_OUTCOME = ("feasible", "stationarity", "feasibility", "slackness", "method", "error")


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


def simulate_point(job: _SimulationJob, task: tuple[dict[Any, Any], int, int]) -> Row:
    """Simulate one instance at one point; a failure becomes part of the row."""
    point, n, seed = task
    row = row_of(task, instances=True)
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
    row = row_of(task, instances=False)
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

    order = {_key(point_name(t[0]), t[1], t[2]): k for k, t in enumerate(tasks)}
    plain = [{str(k): plain_value(v) for k, v in t[0].items()} for t in tasks]
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
        todo = [t for t in tasks if _key(point_name(t[0]), t[1], t[2]) not in have]
        name = "instances" if instances else "points"

        def lost(task: Task, why: str) -> Row:
            return row_of(task, instances=instances) | {"error": f"{BrokenExecutor.__name__}: {why}"}

        try:
            run_all(
                executor,
                worker,
                job,
                todo,
                lambda _, row: store.add(row),
                name=name,
                progress=progress,
                note=str(file or ""),
                chunk=1,
                lost=lost,
            )
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
    names = parameter_columns(points, [*_KEYS, "run", *_OUTCOME])
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
    names = parameter_columns(points, ["point", "residual", "error", "run"])
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
