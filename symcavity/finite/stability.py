"""Whether a fixed point of an instance attracts: the linearized iteration of its fields.

A system that is not the optimality conditions of a convex problem may have several fixed points.  Which one an instance
is found at depends on where it was started; whether a small deviation dies out there, when every field and every
global variable relaxes towards what the sites send, is a matter of one eigenvalue.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from symcavity.finite.instance import Instance, State
from symcavity.finite.newton import linearise, slopes, summed

_SMALL, _NEAR, _KEPT, _ROUNDS = 300, 1e-3, 40, 50


def leading_eigenvalue(instance: Instance, state: State) -> float | None:
    """Return the largest real part of the eigenvalues of the linearized iteration; above one the fixed point repels.

    Parameters
    ----------
    instance, state : Instance, State
        The solved instance, each pair on its branch.

    Returns
    -------
    float or None
        None where the fields of a site do not determine its states, or a global variable its condition.
    """
    try:
        planes = linearise(instance, state).planes
    except np.linalg.LinAlgError:
        return None
    shared = summed(slopes(instance, state, kind).body_shared for kind in planes)
    own = np.diag(shared) if len(shared) else np.zeros(0)
    if not all(plane.explicit for plane in planes.values()) or np.any(own == 0) or shared.shape[0] != shared.shape[1]:
        return None
    border = {kind: plane.load(-plane.local.shared) for kind, plane in planes.items()}
    ends = np.cumsum([0, *(plane.n * plane.m for plane in planes.values()), len(own)])

    def iterated(vector: np.ndarray) -> np.ndarray:
        parts = np.split(vector, ends[1:-1])
        g, sends, change = parts[-1][:, None], {}, shared @ parts[-1]
        for (kind, plane), part in zip(planes.items(), parts, strict=False):
            t = part.reshape(plane.n, plane.m, 1)
            sends[kind] = plane.sends @ t + border[kind].sends @ g
            moved = plane.tz @ t + border[kind].z0 @ g
            change = change + np.einsum("ngk,nk->g", plane.local.condition, moved[:, :, 0])
        fields = [plane.receive(sends).ravel() for plane in planes.values()]
        return np.concatenate([*fields, parts[-1] - change / own if len(own) else parts[-1]])

    return _leading(iterated, int(ends[-1]))


def _leading(iterated: Callable[[np.ndarray], np.ndarray], size: int) -> float | None:
    if not size:
        return None
    if size > _SMALL:
        from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs

        # one more than the eigenvalue, which may vanish: it is wanted to within a part of one
        operator = LinearOperator((size, size), matvec=lambda v: np.ravel(v) + iterated(np.ravel(v)), dtype=float)
        start = np.random.default_rng(0).standard_normal(size)
        try:
            found, _ = eigs(operator, 1, which="LR", v0=start, ncv=_KEPT, tol=_NEAR, maxiter=_ROUNDS)
        except ArpackNoConvergence:
            pass
        else:
            return float(np.max(found.real)) - 1
    return float(np.max(np.linalg.eigvals(np.stack([iterated(e) for e in np.eye(size)], axis=1)).real))
