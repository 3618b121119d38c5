"""The quadratic program of an instance, assembled from the declared Lagrangian, for general solvers."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from sympy import Dummy, Expr, Symbol

from symcavity.declare.quantities import DATUM, FEATURE, Datum, Feature, SiteQuantity, site_quantities
from symcavity.declare.system import BipartiteSystem
from symcavity.errors import MissingDependency
from symcavity.simulate.compiled import CompiledSystem, Table, compile_system
from symcavity.simulate.instance import Instance, State


class SideForm:
    """One side's objective and constraints in its own states, its fields and the globals."""

    def __init__(self, side: str, system: BipartiteSystem, compiled: CompiledSystem) -> None:
        record, law = system.record, compiled.laws[side]
        multipliers = [(m, e, eq) for m, e, eq in record.multipliers if side in m.site]
        objective = record.site[side] + sum(m * e for m, e, _ in multipliers)
        objective = objective.expand()
        taken = {m for m, _, _ in record.multipliers}
        heard = record.problem.book.all(FEATURE if side == DATUM else DATUM)
        exprs: list[Expr] = [objective, *(e for _, e, _ in multipliers), *(f.emission for f in heard)]
        found = [
            q for e in exprs for q in site_quantities(e, Feature, Datum) if side in q.site and q not in taken
        ]
        self.states: list[SiteQuantity] = list(dict.fromkeys(found))
        fields = record.problem.book.all(side)
        self.moving = [f for f in fields if f.states()]
        self.given = [f for f in fields if not f.states()]
        marks: dict[Any, Symbol] = {q: Dummy(f"z{k}", real=True) for k, q in enumerate(self.states)}
        quenched = {q.at_site(): Dummy(q.name, real=True) for q in law.quenched}
        variables = [*marks.values(), *(f.symbol for f in self.moving), *system.globals]
        constants = law.arguments[law.k + law.m + len(system.globals) + len(law.quenched) :]
        arguments = [*variables, *(f.symbol for f in self.given), *quenched.values(), *constants]
        local = set(arguments) - set(constants) - set(system.globals)
        every = {**marks, **quenched}
        body = objective.xreplace(every)
        rows = [e.xreplace(every) for _, e, _ in multipliers]
        slope = [body.diff(v) for v in variables]
        hessian = [[s.diff(v) for v in variables] for s in slope]
        jacobian = [[r.diff(v) for v in variables] for r in rows]
        moving = set(variables)
        entries = [e for row in (*hessian, *jacobian) for e in row]
        self.quadratic = not any(e.free_symbols & moving for e in entries)
        self.hessian = Table(hessian, (len(variables),) * 2, arguments, local)
        self.slope = Table(slope, (len(variables),), arguments, local)
        self.rows = Table(jacobian, (len(rows), len(variables)), arguments, local)
        self.offset = Table(rows, (len(rows),), arguments, local)
        self.equality = [eq for _, _, eq in multipliers]
        pairs = [p.pair[0] for p in law.law.pairs]
        self.pair = [None if eq else pairs.index(m) for m, _, eq in multipliers]
        self.emission = Table([f.emission.xreplace(every) for f in heard], (len(heard),), arguments, local)
        emits = [[f.emission.xreplace(every).diff(marks[q]) for q in self.states] for f in heard]
        self.emits = Table(emits, (len(heard), len(self.states)), arguments, local)
        self.heard = heard
        self.side, self.law = side, law


class QuadraticProgram:
    """The declared problem as ``minimise z'Hz/2 + c'z`` with rows ``A z + b >= 0`` (or ``= 0``).

    Parameters
    ----------
    system : BipartiteSystem
        Optimality conditions with their Lagrangian as ``record``.
    """

    def __init__(self, system: BipartiteSystem) -> None:
        compiled = compile_system(system)
        self.compiled = compiled
        self.forms = {side: SideForm(side, system, compiled) for side in (FEATURE, DATUM)}
        self.quadratic = all(f.quadratic for f in self.forms.values())
        feature, datum = self.forms[FEATURE], self.forms[DATUM]
        self.feature_only = (
            self.quadratic
            and not datum.states
            and not system.globals
            and len(feature.states) == 1
            and not feature.moving
            and not datum.hessian.exprs
            and not datum.slope.exprs
        )
        self.problem = system.record.problem
        self.globals = system.globals

    def arguments(self, instance: Instance, side: str) -> list[Any]:
        """Return the arguments of a side's tables: all variables at zero, given fields at their values."""
        form = self.forms[side]
        given = []
        for f in form.given:
            x = instance.couplings[self.compiled.couplings.index(f.coupling)]
            emitter = self.forms[FEATURE if side == DATUM else DATUM]
            blank = [0.0] * (
                len(emitter.states) + len(emitter.moving) + len(self.globals) + len(emitter.given)
            )
            tail = [*(instance.quenched[q] for q in emitter.law.quenched), *instance.constants]
            sent = emitter.emission([*blank, *tail], instance.size[emitter.side])[:, emitter.heard.index(f)]
            given.append((x if side == DATUM else x.T) @ sent)
        blank = [0.0] * (len(form.states) + len(form.moving) + len(self.globals))
        return [*blank, *given, *(instance.quenched[q] for q in form.law.quenched), *instance.constants]

    # -- the general program, sparse -----------------------------------------------------------------

    def assemble(self, instance: Instance) -> tuple[Any, np.ndarray, Any, np.ndarray, np.ndarray]:
        """Return (H, c, A, b, equality) as sparse matrices and arrays.

        The variables are the states, family by family (features first), then the globals.  A further
        penalty on the globals is not part of it.
        """
        from scipy import sparse

        count, offsets = 0, {}
        for side, form in self.forms.items():
            for q in form.states:
                offsets[q] = count
                count += instance.size[side]
        first_global = count
        count += len(self.globals)
        hessian, slope = sparse.csc_matrix((count, count)), np.zeros(count)
        rows, shifts, equal = [], [], []
        for side, form in self.forms.items():
            n, args = instance.size[side], self.arguments(instance, side)
            maps, constants = [], []
            for q in form.states:
                maps.append(sparse.eye_array(n, count, k=offsets[q]).tocsc())
                constants.append(np.zeros(n))
            other = FEATURE if side == DATUM else DATUM
            emitter, at = self.forms[other], self.arguments(instance, other)
            emission, emits = (
                emitter.emission(at, instance.size[other]),
                emitter.emits(at, instance.size[other]),
            )
            for f in form.moving:
                x = instance.couplings[self.compiled.couplings.index(f.coupling)]
                x = x if side == DATUM else x.T
                h = emitter.heard.index(f)
                total = sparse.csc_matrix((n, count))
                for j, q in enumerate(emitter.states):
                    part = sparse.csc_matrix(x * emits[:, h, j])
                    total = total + part @ sparse.eye_array(instance.size[other], count, k=offsets[q]).tocsc()
                maps.append(total)
                constants.append(x @ emission[:, h])
            for k in range(len(self.globals)):
                maps.append(
                    sparse.csc_matrix((np.ones(n), (np.arange(n), np.full(n, first_global + k))), (n, count))
                )
                constants.append(np.zeros(n))
            h, g = form.hessian(args, n), form.slope(args, n)
            for j, left in enumerate(maps):
                gradient = g[:, j].copy()
                for k, right in enumerate(maps):
                    if np.any(h[:, j, k]):
                        hessian = hessian + left.T @ sparse.diags_array(h[:, j, k]) @ right
                        gradient += h[:, j, k] * constants[k]
                slope += left.T @ gradient
            r, o = form.rows(args, n), form.offset(args, n)
            for c, equality in enumerate(form.equality):
                rows.append(
                    sum(
                        (sparse.diags_array(r[:, c, j]) @ m for j, m in enumerate(maps)),
                        sparse.csc_matrix((n, count)),
                    )
                )
                shifts.append(o[:, c] + sum(r[:, c, j] * constants[j] for j in range(len(maps))))
                equal.append(np.full(n, equality))
        hessian, slope = self._global_penalty(instance, hessian, slope, first_global)
        return (
            sparse.csc_matrix(hessian),
            slope,
            sparse.csc_matrix(sparse.vstack(rows) if rows else sparse.csc_matrix((0, count))),
            np.concatenate(shifts) if shifts else np.zeros(0),
            np.concatenate(equal) if equal else np.zeros(0, dtype=bool),
        )

    def _global_penalty(
        self, instance: Instance, hessian: Any, slope: np.ndarray, first: int
    ) -> tuple[Any, np.ndarray]:
        from scipy import sparse

        body = self.problem.global_objective
        if body == 0:
            return hessian, slope
        from symcavity.declare.quantities import N, P, alpha

        numbers = dict(zip([*self.compiled.parameters, N, P, alpha], instance.constants, strict=True))
        zero = dict.fromkeys(self.globals, 0)
        lil = sparse.lil_matrix(hessian)
        for j, a in enumerate(self.globals):
            slope[first + j] += float(body.diff(a).subs(zero).subs(numbers))
            for k, b in enumerate(self.globals):
                lil[first + j, first + k] += float(body.diff(a, b).subs(zero).subs(numbers))
        return sparse.csc_matrix(lil), slope

    def infeasible(self, instance: Instance) -> bool:
        """Whether the linear constraints have no solution at all."""
        from scipy.optimize import linprog

        _, slope, matrix, offset, equal = self.assemble(instance)
        result = linprog(
            np.zeros_like(slope),
            A_ub=-matrix[~equal] if np.any(~equal) else None,
            b_ub=offset[~equal] if np.any(~equal) else None,
            A_eq=matrix[equal] if np.any(equal) else None,
            b_eq=-offset[equal] if np.any(equal) else None,
            bounds=(None, None),
            method="highs",
        )
        return bool(result.status == 2)

    def solve_conic(self, instance: Instance) -> State:
        """Find the active set with a sparse interior-point solver, independent of the one of this package."""
        clarabel = _clarabel()
        from scipy import sparse

        hessian, slope, matrix, offset, equal = self.assemble(instance)
        order = np.concatenate([np.flatnonzero(equal), np.flatnonzero(~equal)])
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
        cones = [clarabel.ZeroConeT(int(equal.sum())), clarabel.NonnegativeConeT(int((~equal).sum()))]
        found = clarabel.DefaultSolver(
            sparse.triu(hessian).tocsc(), slope, -matrix[order].tocsc(), offset[order], cones, settings
        ).solve()
        slack, dual = np.empty(len(order)), np.empty(len(order))
        slack[order], dual[order] = found.s, found.z
        state = instance.start()
        state.active = {
            s: np.zeros((instance.size[s], law.kp), dtype=bool) for s, law in self.compiled.laws.items()
        }
        position = 0
        for side, form in self.forms.items():
            n = instance.size[side]
            for k in form.pair:
                rows = slice(position, position + n)
                if k is not None:
                    state.active[side][:, k] = dual[rows] < slack[rows]
                position += n
        return state


def _clarabel() -> Any:
    try:
        import clarabel
    except ImportError:
        raise MissingDependency(
            "The conic solver clarabel is not installed.",
            "clarabel 0.9 or later",
            "pip install 'symcavity[all]'",
        ) from None
    return clarabel


_PROGRAMS: WeakKeyDictionary[BipartiteSystem, QuadraticProgram] = WeakKeyDictionary()


def quadratic_program(system: BipartiteSystem) -> QuadraticProgram | None:
    """Return the quadratic program of a system, or None if it has no Lagrangian or is not quadratic."""
    if system.record is None:
        return None
    if system not in _PROGRAMS:
        _PROGRAMS[system] = QuadraticProgram(system)
    program = _PROGRAMS[system]
    return program if program.quadratic else None


__all__ = ["QuadraticProgram", "SideForm", "quadratic_program"]
