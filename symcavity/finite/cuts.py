"""Programs with a convex set in a constraint, by cutting planes at anchor points.

``g(V) >= c`` says ``V.s >= c`` for every point s of the set.  Of these constraints the program keeps those that
have mattered: each round solves it, finds for every site the point of the set where ``V.s`` is least, and adds the
constraint of that point if it is violated.  In the end the points that carry multipliers sum up to the vector
multiplier.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from symcavity.errors import MissingDependency
from symcavity.finite.activeset import ACTIVE, EQUAL, INFINITE, dense_solve
from symcavity.finite.instance import Instance, State
from symcavity.finite.quadratic import Assembled, Cuts, ProgramSolution, QuadraticProgram, solve_assembled

_ROUNDS, _IDLE, _CLOSED = 300, 3, 1e-11


def cutting_planes(program: QuadraticProgram, instance: Instance) -> Iterator[tuple[State, float] | Assembled]:
    """Yield better and better states, each with the largest violation that is left.

    Parameters
    ----------
    program : QuadraticProgram
        A program with a vector field in a constraint.
    instance : Instance
        Its instance.  Sources are left out.

    Yields
    ------
    tuple or Assembled
        A state with the vectors, multipliers and branches of the cuts so far, its other variables still zero;
        and by how much the worst site violates its constraint, relative to the size of the vectors. Or a program
        of cuts that has no solution: the instance has none.
    """
    from scipy import sparse

    kind = program.cut.kind
    sets = instance.system.laws[kind].sets
    assert sets is not None  # noqa: S101 - the caller has looked
    sites = np.arange(instance.size[kind])
    made = program.assemble(instance)
    declared = len(made.offset)
    # the point of the set that is nearest to the origin decides the widest margin of a set that is alone
    cuts = Cuts(sites, np.repeat(sets.shape.nearest(np.zeros((1, len(sets.V)))).s, len(sites), axis=0))
    rows = program.cut_rows(instance, cuts)
    idle, active = np.zeros(len(sites), dtype=int), np.zeros(declared + len(sites), dtype=bool)
    for _ in range(_ROUNDS):
        cut = replace(
            made,
            matrix=sparse.vstack([made.matrix, rows.matrix]).tocsr(),
            offset=np.concatenate([made.offset, rows.constant]),
            equal=np.concatenate([made.equal, np.zeros(len(cuts.owners), dtype=bool)]),
        )
        answer = _solve(cut, active)
        if answer is None:
            yield cut
            return
        weights = np.maximum(answer.dual[declared:], 0.0)
        state = _state(program, instance, answer, cuts, weights)
        V = state.site[kind][:, sets.V]
        fresh = Cuts(sites, sets.shape.anchor(V))
        wanted = program.cut_rows(instance, fresh)
        gap = -(wanted.matrix @ answer.variables + wanted.constant) / (1.0 + float(np.max(np.abs(V))))
        violated = gap > _CLOSED
        yield state, float(np.max(gap, initial=0.0))
        if not np.any(violated):
            return
        idle = np.where(weights > 0, 0, idle + 1)
        kept, new = idle < _IDLE, int(violated.sum())
        cuts = Cuts(
            np.concatenate([cuts.owners[kept], fresh.owners[violated]]),
            np.concatenate([cuts.points[kept], fresh.points[violated]]),
        )
        rows = replace(
            rows,
            matrix=sparse.vstack([rows.matrix[kept], wanted.matrix[violated]]).tocsr(),
            constant=np.concatenate([rows.constant[kept], wanted.constant[violated]]),
        )
        idle = np.concatenate([idle[kept], np.zeros(new, dtype=int)])
        active = np.concatenate([answer.dual[:declared] > 0, weights[kept] > 0, np.zeros(new, dtype=bool)])


def _state(
    program: QuadraticProgram, instance: Instance, answer: ProgramSolution, cuts: Cuts, weights: np.ndarray
) -> State:
    """Return what the cuts say: the states, the vectors, the multipliers and the branches."""
    state = program.branches(instance, answer)
    offsets, _ = program.places(instance)
    for each, law in program.compiled.laws.items():
        for j, q in enumerate(law.unknowns):
            if q in offsets:
                state.site[each][:, j] = answer.variables[offsets[q] : offsets[q] + instance.size[each]]
    shared = len(program.globals)
    state.shared[:] = answer.variables[len(answer.variables) - shared :]
    form = program.cut
    kind, sets, z = form.kind, form.law.sets, state.site[form.kind]
    assert sets is not None  # noqa: S101 - the caller has looked
    law, heard = form.law, instance.fields(kind, state)
    factors = -law.hears(instance.arguments(kind, state, heard), len(z))  # of each field in the equation of a component
    rows = [next(k for k, e in enumerate(law.law.equations) if e.lhs == law.unknowns[v]) for v in sets.V]
    z[:, sets.V] = np.einsum("nam,nm->na", factors[:, rows], heard)
    np.add.at(z[:, sets.lam], cuts.owners, weights)
    for a, column in enumerate(sets.Lam):
        np.add.at(z[:, column], cuts.owners, weights * cuts.points[:, a])
    pair = form.pair[form.cut.index(True)]
    if pair is not None:
        state.active[kind][:, pair] = z[:, sets.lam] <= 1e-9 * (1.0 + np.max(z[:, sets.lam]))
        idle = np.flatnonzero(state.active[kind][:, pair])
        z[np.ix_(idle, np.append(sets.Lam, sets.lam))] = 0.0
    return state


def _solve(made: Assembled, active: np.ndarray) -> ProgramSolution | None:
    """Solve a program: by an active set where the objective bends in every variable, else by an interior point."""
    diagonal = made.hessian.diagonal()
    if np.all(diagonal > 0) and made.hessian.nnz == len(diagonal):
        sense = np.where(made.equal, EQUAL, np.where(active, ACTIVE, 0))
        floor = np.where(made.equal, made.offset, -INFINITE)
        try:
            found = dense_solve(diagonal, made.slope, -made.matrix.toarray(), made.offset, floor, sense)
        except (ArithmeticError, MissingDependency):
            return solve_assembled(made)
        return None if found is None else ProgramSolution(found[0], made.matrix @ found[0] + made.offset, found[1])
    return solve_assembled(made)
