"""The thresholds of the search that could decide an answer: all of them, in one place, and frozen.

None of them is delicate: an answer that changed if one were half or twice as large would be an answer of the threshold,
and a test makes sure that there is none.  Digits are not decided here: they follow from the precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Tolerances:
    """Thresholds of searches for roots, all of them shares or logarithms: nothing has units.

    Attributes
    ----------
    close : float
        A step of the state evolution, in logarithms, from which on Newton's method is tried.
    strayed : float
        By how much a step of the state evolution may grow before its acceleration is taken back.
    far : float
        Logarithms beyond which, and four times those of the parameters, the state evolution is not followed.
    settled : float
        A step of Newton's method after which rounding is left only.
    noisy : float
        What rounding may leave of such a step, where it shrinks no further.
    alike, same : float
        Distances, in logarithms, below which two roots are one: on rules as they begin, and on refined ones.
    zero : float
        The relative residual of one equation below which a change of its sign is a root, and no pole.
    spurious : float
        The share by which a root of what elimination leaves may miss the closed equations: it solves all of them, or
        misses some by much more, where a denominator vanishes too.
    violated : float
        The share by which rounding may move an unknown beyond the end of its range.
    cancelled : float
        The share of its terms below which a denominator is rounding.
    kept : float
        The share of a closed form that rounding may move before it is evaluated with more digits.
    rough : float
        The last step, or residual, up to which a root in double is one.
    settled_integral, settled_law : float
        The share up to which the finest rules agree where an average has a value: over one field at a time, and over
        the fields of a law of several states.
    faint : float
        An unknown in its own units that is no more than that is zero, where this has more digits.
    fixed : float
        The share by which an observable may differ from one minimum to another that is the same for all of them.
    goes : float
        The share of itself down to which an observable of a limit falls, or from which it rises, when it goes to zero,
        or without bound, along with what vanishes.
    edge : float
        The share of a range so close to whose end a load counts as the end, which is reached in a limit only.
    vanished, diverged, steep : float
        Where the branch of solutions that is followed ends: an unknown is small compared with its largest value, or
        large compared with its typical one, and changes faster than this power of the load.
    marginal : float
        By how much rounding may lift a marginal stability above one.
    balanced : float
        The share of a mean square below which the square of a mean is rounding.
    gone, lost_sight : float
        Distances, in units of the coordinates of a saddle, beyond which proximal steps have no root to go to: while
        they agree, and while they do not.
    agree : float
        The share by which two such steps may differ in their displacement, and agree.
    clear : float
        The slope in a coordinate of a saddle that is zero once the barrier has gone.
    steady : float
        The share by which the displacements of two steps may differ that prove that there is no root.
    negligible : float
        The share of a displacement that belongs to what stays finite.
    growing : float
        The share of a coordinate by which a step moves what goes on growing.
    short : float
        The last step, as a share of the point, of Newton's method at a root of a saddle.
    beside : float
        How closely the load is known at which solutions end.
    aside : float
        The share of a load by which it is moved, up and down, to see whether the kind of minimum changes there.
    recovered : float
        The share of a variance, left beside quenched fields, below which an exact recovery is looked for.
    left : float
        The share of a number that is left of one that vanishes, as multipliers of tight conditions go to infinity.
    apart : float
        The eigenvalue, in their mean, from which on eigenvalues of covariances are told from zero.
    band : float
        The share by which a real argument moves at most on the way to the first eigenvalue: a band has to be wider.
    sure : float
        The share of eigenvalues up to which that of those that are zero is known.
    ruled : float
        The share up to which two rules for a law of what is given at sites agree on products of their responses.
    moved : float
        The share of its mean square by which a state that was sampled differs from itself much later, if it moves.
    stayed : float
        The share of a mean square that is still correlated after the longest lag, beyond its standard errors, where
        something stays.
    swung : float
        How many times larger the mean square of a state becomes at one of two steps of integration, where it swings up.
    """

    close: float = 0.3
    strayed: float = 2.0
    far: float = 60.0
    settled: float = 1e-8
    noisy: float = 1e-4
    alike: float = 1e-2
    same: float = 1e-5
    zero: float = 1e-9
    spurious: float = 1e-3
    violated: float = 1e-9
    cancelled: float = 1e-11
    kept: float = 1e-8
    rough: float = 1e-6
    settled_integral: float = 1e-9
    settled_law: float = 1e-7
    faint: float = 1e-9
    fixed: float = 1e-6
    goes: float = 1e-2
    edge: float = 1e-9
    vanished: float = 0.02
    diverged: float = 30.0
    steep: float = 10.0
    marginal: float = 1e-9
    gone: float = 1e6
    lost_sight: float = 1e8
    agree: float = 1e-4
    clear: float = 1e-5
    steady: float = 1e-3
    negligible: float = 1e-4
    growing: float = 1e-2
    short: float = 1e-6
    beside: float = 1e-4
    aside: float = 0.05
    balanced: float = 1e-18
    recovered: float = 1e-2
    left: float = 1e-2
    apart: float = 1e-5
    band: float = 0.05
    sure: float = 1e-6
    ruled: float = 1e-10
    moved: float = 1e-4
    stayed: float = 1e-6
    swung: float = 1e4


_FROZEN = Tolerances()
_CURRENT: ContextVar[Tolerances] = ContextVar("tolerances")


def tolerances() -> Tolerances:
    """Return the tolerances in force."""
    return _CURRENT.get(_FROZEN)


@contextmanager
def using(**changed: float) -> Iterator[None]:
    """Put others in force, to see that no answer depends on them."""
    token = _CURRENT.set(replace(tolerances(), **changed))
    try:
        yield
    finally:
        _CURRENT.reset(token)
