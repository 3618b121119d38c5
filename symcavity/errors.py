"""The error family: every message says what was found, what is supported, and what to try."""

from __future__ import annotations

from typing import Any


class SymcavityError(Exception):
    """Base of every error that this package raises on purpose.

    Parameters
    ----------
    found : str
        What was found, in the user's own words where possible.
    supported : str, optional
        What would have been accepted.
    hint : str, optional
        What to try next.

    Examples
    --------
    >>> from symcavity import SymcavityError, alpha
    >>> from symcavity.derivations import gardner
    >>> try:
    ...     gardner.problem.cavity().solve({alpha: 3})
    ... except SymcavityError as error:
    ...     print(type(error).__name__)
    Infeasible
    """

    def __init__(self, found: str, supported: str = "", hint: str = "") -> None:
        self.found, self.supported, self.hint = found, supported, hint
        lines = [found]
        if supported:
            lines.append(f"Supported: {supported}")
        if hint:
            lines.append(f"Try: {hint}")
        super().__init__("\n".join(lines))


class DeclarationError(SymcavityError, ValueError):
    """A declaration, or an observable, that has no supported form.

    Examples
    --------
    >>> from symcavity import ConvexProblem, DeclarationError, Feature, i
    >>> try:
    ...     ConvexProblem(Feature('w')[i]**2)
    ... except DeclarationError as error:
    ...     print(error.found)
    The term w[i]**2 of the objective is not summed over the sites.
    """


class NotConvex(DeclarationError):
    """An objective or a constraint that is provably not convex.

    Examples
    --------
    >>> from sympy import Sum
    >>> from symcavity import ConvexProblem, Feature, N, NotConvex, i
    >>> try:
    ...     ConvexProblem(-Sum(Feature('w')[i]**4, (i, 1, N)))
    ... except NotConvex as error:
    ...     print('refused')
    refused
    """


class UnsupportedLaw(SymcavityError, ValueError):
    """A law that the engine cannot solve, not even implicitly, or a quantity that it does not have for such a system.

    Examples
    --------
    >>> from symcavity import UnsupportedLaw
    >>> from symcavity.derivations import spin_glass
    >>> try:
    ...     spin_glass.problem.sweep({}, N=10)
    ... except UnsupportedLaw as error:
    ...     print(error.supported)
    theory.solve, theory.derivation.verify() of a Gibbs measure; instances of the problem at its minimum
    """


class ValuesError(SymcavityError, ValueError):
    """Values at evaluation that are missing, superfluous, of a wrong kind, or contradictory.

    Examples
    --------
    >>> from symcavity import ValuesError
    >>> from symcavity.derivations import soft_margin
    >>> try:
    ...     soft_margin.problem.cavity().solve({'alpha': 2})
    ... except ValuesError as error:
    ...     print(error.found)
    Values are missing: C is not given.
    """


class NoClosedForm(SymcavityError):
    """The requested unknown has no closed form.

    Attributes
    ----------
    remaining : tuple
        The equations that are left to be solved numerically.

    Examples
    --------
    >>> from symcavity import NoClosedForm
    >>> from symcavity.derivations import soft_margin
    >>> try:
    ...     soft_margin.problem.cavity().closed_form('q_w')
    ... except NoClosedForm as error:
    ...     print(len(error.remaining) > 0)
    True
    """

    def __init__(self, found: str, remaining: tuple[Any, ...] = (), hint: str = "") -> None:
        self.remaining = remaining
        super().__init__(found, "", hint)


class Infeasible(SymcavityError):
    """No solution exists at the requested values: a proof, not a search that found nothing.

    Attributes
    ----------
    evidence : object
        The proof: a direction in which a convex problem is unbounded or its conditions contradict each other, a
        load outside of its range, the signs that the only solution of the equations violates; of finite instances,
        constraints of one that contradict each other.

    Examples
    --------
    >>> from symcavity import Infeasible, alpha
    >>> from symcavity.derivations import gardner
    >>> try:
    ...     gardner.problem.cavity().solve({alpha: 3})
    ... except Infeasible as error:
    ...     print(error.evidence is not None)
    True
    """

    def __init__(self, found: str, supported: str = "", hint: str = "", evidence: Any = None) -> None:
        self.evidence = evidence
        super().__init__(found, supported, hint)


class NotConverged(SymcavityError):
    """No solution was found, or it was not refined to the requested digits. A solution may exist.

    Attributes
    ----------
    best : object
        The best iterate.
    residual : float
        Its residual.

    Examples
    --------
    >>> from symcavity import NotConverged, SymcavityError
    >>> issubclass(NotConverged, SymcavityError)
    True
    """

    def __init__(self, found: str, best: Any = None, residual: float = float("nan"), hint: str = "") -> None:
        self.best, self.residual = best, residual
        super().__init__(found, "", hint)


class OutOfTime(SymcavityError, TimeoutError):
    """A computation that has spent the time that it was given.

    Examples
    --------
    >>> from symcavity import OutOfTime
    >>> from symcavity.derivations import softmax
    >>> try:
    ...     softmax.problem.cavity().solve(softmax.values, timeout=1e-6)
    ... except OutOfTime as error:
    ...     print('stopped')
    stopped
    """


class Interrupted(KeyboardInterrupt):
    """An interruption of work on many pieces: says how many are done.

    Attributes
    ----------
    kept : str
        Where finished pieces are kept; empty if they are lost.
    """

    def __init__(self, found: str, kept: str = "") -> None:
        self.kept = kept
        super().__init__(found)


class SeveralSolutions(NotConverged):
    """The closed equations of a system that is not declared convex have several admissible solutions.

    Attributes
    ----------
    solutions : tuple of dict
        The unknowns in each of them; each is a ``guess=`` that leads to it.

    Examples
    --------
    >>> from symcavity import SeveralSolutions, SymcavityError
    >>> issubclass(SeveralSolutions, SymcavityError)
    True
    """

    def __init__(self, found: str, solutions: tuple[dict[Any, Any], ...], hint: str = "") -> None:
        self.solutions = solutions
        super().__init__(found, list(solutions), 0.0, hint)


class RoughSolution(UserWarning):
    """A solution that double precision knows to fewer than ten digits: ``solution.digits`` of them.

    Examples
    --------
    >>> import warnings
    >>> from symcavity import RoughSolution
    >>> warnings.simplefilter('error', RoughSolution)  # an error in place of the warning
    >>> warnings.resetwarnings()
    """


class JumpingLaw(UserWarning):
    """A solution of a system whose states jump with fields that contain feedback, such as units with a threshold.

    Examples
    --------
    >>> import warnings
    >>> from symcavity import JumpingLaw
    >>> warnings.simplefilter('ignore', JumpingLaw)
    >>> warnings.resetwarnings()
    """


class UnstableSolution(UserWarning):
    """A solution of a system that is not declared convex: small changes of its fields grow, so nothing settles in it.

    The replica-symmetric equations do not describe the states of such a system (de Almeida and Thouless 1978).

    Examples
    --------
    >>> import warnings
    >>> from symcavity import UnstableSolution
    >>> warnings.simplefilter('ignore', UnstableSolution)
    >>> warnings.resetwarnings()
    """


class NegativeEntropy(UserWarning):
    """A solution of a Gibbs measure over discrete states that counts fewer than one configuration.

    The replica-symmetric equations do not describe such states, even where they are stable (Krauth and Mezard 1989).

    Examples
    --------
    >>> import warnings
    >>> from symcavity import NegativeEntropy
    >>> warnings.simplefilter('ignore', NegativeEntropy)
    >>> warnings.resetwarnings()
    """


class InternalError(SymcavityError):
    """The engine contradicts itself: a defect of this package, not of the declaration.

    Examples
    --------
    >>> from symcavity import InternalError, SymcavityError
    >>> issubclass(InternalError, SymcavityError)
    True
    """


class FlatMinimum(SymcavityError):
    """A minimum that is not unique: the requested values differ from one minimizer to another.

    Attributes
    ----------
    dimension : int
        The dimension of the set of minimizers; of a theory, how many order parameters and globals it leaves open.
    evidence : object
        The proof, of a theory: a point at which all forces vanish, the unknowns that are open, and the load above
        which they are not.

    Examples
    --------
    >>> from sympy import Sum
    >>> from symcavity import ConvexProblem, Coupling, Feature, FlatMinimum, N, P, alpha, i, mu
    >>> x, w = Coupling('x'), Feature('w')
    >>> loss = Sum((1 - Sum(x[mu, i]*w[i], (i, 1, N)))**2, (mu, 1, P))
    >>> try:
    ...     ConvexProblem(loss).cavity().solve({alpha: '1/2'})
    ... except FlatMinimum as error:
    ...     print('not unique')
    not unique
    """

    def __init__(self, found: str, dimension: int, hint: str = "", evidence: Any = None) -> None:
        self.dimension, self.evidence = dimension, evidence
        super().__init__(found, "", hint)


class MissingDependency(SymcavityError, ImportError):
    """An optional package that this feature needs is not installed.

    Examples
    --------
    >>> from symcavity import MissingDependency, SymcavityError
    >>> issubclass(MissingDependency, SymcavityError)
    True
    """
