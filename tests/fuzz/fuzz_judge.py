"""Run a case through the package, and say which invariant it violates."""

from __future__ import annotations

import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
from fuzz_grammar import Case

import symcavity
from symcavity.errors import FlatMinimum, Infeasible, InternalError, NotConverged, SeveralSolutions, SymcavityError
from symcavity.model.families import families
from symcavity.model.quantities import Variable

PACKAGE = str(Path(symcavity.__file__).parent)
SLOW = {"declare": 1.0, "derive": 5.0, "solve": 10.0, "verify": 20.0}
FALSE = ("raw error", "internal error", "not finite", "residual", "digits", "infeasible", "verify", "refuted", "mp")
LARGEST_Z = 5
AGAIN = 1.0  # seconds from one alarm to the next
DIVERGING = 50.0  # states of small instances that are as large may have no limit


class TooSlow(BaseException):
    """A case that used up its time; no handler of errors catches it."""


@dataclass(frozen=True)
class Finding:
    """A violated invariant: which, where, and what was seen.

    Attributes
    ----------
    kind : str
        One of ``FALSE``, which may never be; or ``slow``, ``unsolved``, ``refused``: what the package cannot do.
    where : str
        What tells two findings of a kind apart.
    detail : str
    """

    kind: str
    where: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}"


@dataclass
class Outcome:
    """How far a case came, in which times of the processor, and what was found.

    Attributes
    ----------
    end : str
        ``solved``, or the name of the error that ended it; ``not ours`` if SymPy did not even build it.
    message : str
    seconds : dict
        By stage.
    findings : list of Finding
    """

    end: str = "solved"
    message: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True)
class Checks:
    """What is checked besides: more digits, the record, instances; and the time that a case has."""

    digits: bool = False
    verify: bool = False
    simulate: bool = False
    limit: float = 60.0


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, AGAIN)  # in a finaliser nobody hears it: it comes again
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def judge(case: Case, checks: Checks) -> Outcome:
    """Declare, derive, solve and check; errors of the package that are meant end a case without a finding."""
    out, stage = Outcome(), "declare"
    precision = mpmath.mp.prec

    def timed(name: str, call: Callable[[], Any]) -> Any:
        nonlocal stage
        stage, begin = name, time.process_time()
        try:
            return call()
        finally:
            out.seconds[name] = out.seconds.get(name, 0.0) + time.process_time() - begin

    try:
        with _time_limit(checks.limit), warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", symcavity.UnstableSolution)
            warnings.simplefilter("ignore", symcavity.JumpingLaw)
            warnings.simplefilter("ignore", symcavity.RoughSolution)
            _run(case, checks, out, timed)
    except InternalError as error:
        out.findings.append(Finding("internal error", _place(error), error.found))
    except SymcavityError as error:
        out.end, out.message = type(error).__name__, str(error)
        if not case.spoiled and not isinstance(error, Infeasible | FlatMinimum | NotConverged):
            out.findings.append(Finding("refused", f"{out.end} in {_place(error)}", out.message))
    except TooSlow as error:
        out.end = "too slow"
        out.findings.append(Finding("slow", f"{stage} beyond {checks.limit} s", _place(error)))
    except Exception as error:  # noqa: BLE001 - whatever comes is what is looked for
        if _place(error):
            text = "".join(traceback.format_exception(error)[-4:])
            out.findings.append(Finding("raw error", f"{type(error).__name__} in {_place(error)}", text))
        else:
            out.end, out.message = "not ours", f"{type(error).__name__}: {error}"
    for name, limit in SLOW.items():
        if out.end != "too slow" and out.seconds.get(name, 0) > limit:
            out.findings.append(Finding("slow", name, f"{out.seconds[name]:.1f} s"))
    if mpmath.mp.prec != precision:
        out.findings.append(Finding("mp", "the precision of mpmath was left changed"))
        mpmath.mp.prec = precision
    return out


def _place(error: BaseException) -> str:
    """The function of the package that raised, or that called what raised; nothing if there is none."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(PACKAGE)]
    return f"{Path(frames[-1].filename).relative_to(PACKAGE)}:{frames[-1].name}" if frames else ""


def _run(case: Case, checks: Checks, out: Outcome, timed: Callable[[str, Callable[[], Any]], Any]) -> None:
    space: dict[str, Any] = {}
    timed("declare", lambda: exec(case.source(), space))  # noqa: S102 - text that the grammar wrote
    problem, values, dps = (space[name] for name in ("problem", "values", "dps"))
    theory = timed("derive", problem.cavity)
    timed("derive", lambda: theory.equations)
    failure = None
    try:
        solution = timed("solve", lambda: theory.solve(values, dps=dps))
    except (Infeasible, FlatMinimum, NotConverged) as error:
        failure = error
    if failure is None:
        _sound(solution, out)
        if checks.digits:
            _more_digits(theory, values, solution, out, timed)
    elif not case.system and not isinstance(failure, SeveralSolutions):
        timed("instances", lambda: _has_minima(problem, values, failure, out))
    if checks.verify:
        _verified(theory, out, timed)
    if checks.simulate and failure is None:
        timed("simulate", lambda: _simulated(problem, theory, values, out))
    if failure is not None:
        raise failure


def _sound(solution: Any, out: Outcome) -> None:
    """The unknowns are numbers, and meet the closed equations at higher precision."""
    if getattr(solution, "at_rest", ()):  # limits, some of them infinite
        return
    units = solution.task.units  # what is declared is measured in a state, which may be zero
    shares = {s for s in solution.values if s.name.endswith("_hat")} if units else set()
    values = {s: v for s, v in solution.values.items() if s not in shares} | {s: solution[s] for s in units}
    bad = [str(s) for s, v in values.items() if not mpmath.isfinite(v)]
    if bad:
        out.findings.append(Finding("not finite", ", ".join(bad), str(solution)))
        return
    limit = 1e-8 if solution.quick else mpmath.mpf(10) ** (1 - solution.dps)
    if not solution.residual <= limit:
        where = "double" if solution.quick else "many digits"
        out.findings.append(Finding("residual", where, str(solution)))


def _more_digits(theory: Any, values: Any, solution: Any, out: Outcome, timed: Any) -> None:
    """The same solution with more digits: it meets the equations to them, and has the digits of the first."""
    try:
        finer = timed("digits", lambda: theory.solve(values, dps=solution.dps + 15))
    except NotConverged as error:
        out.findings.append(Finding("unsolved", "at more digits only", str(error)))
        return
    except (Infeasible, FlatMinimum) as error:
        out.findings.append(Finding("digits", "infeasible at more digits only", str(error)))
        return
    _sound(finer, out)
    scale = max((abs(v) for v in finer.values.values()), default=1)
    limit = 1e-6 if solution.quick else 10.0 ** (2 - solution.dps)
    for symbol, value in finer.values.items():
        gap = abs(solution.values[symbol] - value)
        if mpmath.isfinite(gap) and gap > limit * max(abs(value), 1e-6 * scale):
            found = f"{symbol} = {mpmath.nstr(solution.values[symbol], 20)}, and {mpmath.nstr(value, 20)} finer"
            out.findings.append(Finding("digits", "two precisions differ", found))
            return


def _has_minima(problem: Any, values: Any, failure: Exception, out: Outcome) -> None:
    """Look whether small instances have one minimum each, away from zero, where the theory has no solution."""
    if getattr(getattr(failure, "evidence", None), "is_at_rest", False):
        return
    largest = 0.0
    for size, seeds in ((40, 3), (120, 3)):
        try:
            sim = problem.simulate(values, N=size, seeds=seeds)
        except SymcavityError:
            return
        if sim.failed or sim.infeasible or sim.flat:
            return
        states = families([problem.minimize], Variable)
        largest = max((float(np.max(np.abs(sim.samples[0][q]))) for q in states), default=0.0)
        if not 1e-6 < largest < DIVERGING:
            return
    kind = "infeasible" if isinstance(failure, Infeasible | FlatMinimum) else "unsolved"
    lines = str(failure).splitlines()[0]
    out.findings.append(Finding(kind, "instances have a minimum", f"{lines}\nlargest state {largest:.3g}"))


def _verified(theory: Any, out: Outcome, timed: Any) -> None:
    verification = timed("verify", lambda: theory.derivation.verify(dps=30))
    for row in verification.failed:
        wrong = next(v for v in row.verdicts if not v.ok)
        if "no seeded point could be solved" in wrong.detail:
            out.findings.append(Finding("unsolved", "no seeded point", wrong.detail))
            break
        out.findings.append(Finding("verify", row.step.rule, f"{row.step.key}: {wrong.kind}: {wrong.detail}"))
    timed("write", lambda: (theory.derivation.to_latex(), theory.derivation.to_text(), theory.derivation.to_html()))


def _simulated(problem: Any, theory: Any, values: Any, out: Outcome) -> None:
    """Hold the theory against instances; what is far off has to stay so at larger sizes."""
    worst: Any = None
    for sizes, seeds in (([40, 80], 20), ([100, 200], 30)):
        try:
            sim = problem.simulate(values, N=sizes, seeds=seeds)
            if any(each.infeasible or each.failed or each.flat for each in sim.by_size.values()):
                return
            comparison = theory.compare(sim)
        except (Infeasible, NotConverged, FlatMinimum, symcavity.ValuesError):
            return
        rows = [row for row in comparison if abs(row.z) > LARGEST_Z]
        if not rows:
            return
        worst = comparison
    names = ", ".join(sorted(str(row.observable) for row in worst if abs(row.z) > LARGEST_Z))
    out.findings.append(Finding("refuted", names, str(worst)))


__all__ = ["FALSE", "Checks", "Finding", "Outcome", "judge"]
