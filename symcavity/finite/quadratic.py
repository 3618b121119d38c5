"""The quadratic program of an instance, assembled from the declared Lagrangian, for general solvers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Dummy, Expr, S, Symbol

from symcavity.errors import MissingDependency
from symcavity.finite.compiled import CompiledSystem, SiteExpressions, compile_system
from symcavity.finite.instance import Instance, State
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Global, SiteQuantity, Variable, site_quantities
from symcavity.model.support import Support
from symcavity.model.system import System


@dataclass(frozen=True)
class Cuts:
    """Points of a convex set, each for one site: ``V.s >= c`` for the points s, in place of ``g(V) >= c``.

    Attributes
    ----------
    owners : ndarray of int, shape (cuts,)
        The site of each.
    points : ndarray, shape (cuts, components)
        The points.
    """

    owners: np.ndarray
    points: np.ndarray


@dataclass(frozen=True)
class Map:
    """An affine function of the variables of a program, at every site: ``matrix @ z + constant``."""

    matrix: Any
    constant: np.ndarray


@dataclass(frozen=True)
class Assembled:
    """A quadratic program: minimize ``z'Hz/2 + slope'z`` with ``matrix @ z + offset >= 0``, or ``= 0``.

    Attributes
    ----------
    hessian, slope, matrix, offset : sparse matrix, ndarray
        The program.
    equal : ndarray of bool
        The rows that are equations.
    """

    hessian: Any
    slope: np.ndarray
    matrix: Any
    offset: np.ndarray
    equal: np.ndarray


def shared_variables(system: System) -> list[Global]:
    """The globals that a problem is minimized over: multipliers of conditions on all sites are none."""
    multipliers = {nu for nu, _ in system.record.conditions}
    return [g for g in system.globals if g not in multipliers]


class SiteForm:
    """The objective and the constraints of one kind of site, in its own states, its fields and the globals."""

    def __init__(self, kind: Kind, system: System, compiled: CompiledSystem) -> None:
        record, law = system.record, compiled.laws[kind]
        multipliers = [(m, e, eq) for m, e, eq in record.multipliers if kind in m.site]
        summed = [(nu, c.parts.get(kind, S.Zero)) for nu, c in record.conditions]
        objective = record.site.get(kind, S.Zero) + sum(m * e for m, e, _ in multipliers)
        objective = (objective + sum(nu * e for nu, e in summed)).expand().xreplace(record.labels)
        multipliers = [(m, e.xreplace(record.labels), eq) for m, e, eq in multipliers]
        summed = [(nu, e.xreplace(record.labels)) for nu, e in summed]
        taken = {m for m, _, _ in record.multipliers}
        heard = record.problem.book.sent_by(kind)
        exprs: list[Expr] = [objective, *(e for _, e, _ in multipliers), *(f.emission for f in heard)]
        exprs += [e for _, e in summed]
        found = [
            q for e in exprs for q in site_quantities(e, Variable) if kind in q.site and q not in taken
        ]
        self.states: list[SiteQuantity] = list(dict.fromkeys(found))
        fields = record.problem.book.all(kind)
        self.moving = [f for f in fields if f.states()]
        self.given = [f for f in fields if not f.states()]
        marks: dict[Any, Symbol] = {q: Dummy(f"z{k}", real=True) for k, q in enumerate(self.states)}
        quenched = {q.at_site(): Dummy(q.name, real=True) for q in law.quenched}
        shared = shared_variables(system)
        variables = [*marks.values(), *(f.symbol for f in self.moving), *shared]
        constants = law.constants
        arguments = [*variables, *(f.symbol for f in self.given), *quenched.values(), *constants]
        local = set(arguments) - set(constants) - set(shared)
        # a convex set in a constraint enters by one of its points at a time: g(V) >= c is V.s >= c for all of them
        nodes = {node: node.body for e in exprs for node in e.atoms(Support)}
        self.vectors = [len(self.states) + j for j, f in enumerate(self.moving) if f.components]
        every = {**marks, **quenched, **nodes}
        body = objective.xreplace(every)
        rows = [e.xreplace(every) for _, e, _ in multipliers]
        slope = [body.diff(v) for v in variables]
        hessian = [[s.diff(v) for v in variables] for s in slope]
        jacobian = [[r.diff(v) for v in variables] for r in rows]
        moving = set(variables)
        totals = [e.xreplace(every) for _, e in summed]
        sums = [[e.diff(v) for v in variables] for e in totals]
        entries = [e for row in (*hessian, *jacobian, *sums) for e in row]
        self.quadratic = not any(e.free_symbols & moving for e in entries)
        self.cut = [any(row[j] != 0 for j in self.vectors) for row in jacobian]
        if any(slope[j] != 0 for j in self.vectors):
            self.quadratic = False
        self.heard, self.kind, self.law = heard, kind, law
        if not self.quadratic:
            return  # no program: its derivatives may hold what has no numerical form, such as that of a jump
        self.hessian = SiteExpressions(hessian, (len(variables),) * 2, arguments, local)
        self.slope = SiteExpressions(slope, (len(variables),), arguments, local)
        self.rows = SiteExpressions(jacobian, (len(rows), len(variables)), arguments, local)
        self.offset = SiteExpressions(rows, (len(rows),), arguments, local)
        self.sums = SiteExpressions(sums, (len(sums), len(variables)), arguments, local)
        self.sum_offset = SiteExpressions(totals, (len(sums),), arguments, local)
        self.equality = [eq for _, _, eq in multipliers]
        pairs = [p.pair[0] for p in law.law.pairs]
        self.pair = [None if eq else pairs.index(m) for m, _, eq in multipliers]
        self.emission = SiteExpressions([f.emission.xreplace(every) for f in heard], (len(heard),), arguments, local)
        emits = [[f.emission.xreplace(every).diff(marks[q]) for q in self.states] for f in heard]
        self.emits = SiteExpressions(emits, (len(heard), len(self.states)), arguments, local)


class QuadraticProgram:
    """The declared problem as ``minimise z'Hz/2 + c'z`` with rows ``A z + b >= 0`` (or ``= 0``).

    Parameters
    ----------
    system : System
        Optimality conditions with their Lagrangian as ``record``.
    """

    def __init__(self, system: System) -> None:
        compiled = compile_system(system)
        self.compiled = compiled
        self.forms = {kind: SiteForm(kind, system, compiled) for kind in system.kinds}
        shared = system.record.problem.global_objective
        bends = any(shared.diff(a, b).has(*system.globals) for a in system.globals for b in system.globals)
        self.quadratic = all(f.quadratic for f in self.forms.values()) and not bends
        self.problem = system.record.problem
        self.globals = shared_variables(system)
        self.conditions = [c for _, c in system.record.conditions]

    @property
    def cut(self) -> SiteForm:
        """The sites that have a convex set in a constraint."""
        return next(form for form in self.forms.values() if any(form.cut))

    def arguments(self, instance: Instance, kind: Kind) -> list[Any]:
        """Return the arguments of the tables of a kind: all variables at zero, given fields at their values."""
        form = self.forms[kind]
        given = []
        for f in form.given:
            emitter = self.forms[f.sender]
            blank = [0.0] * (len(emitter.states) + len(emitter.moving) + len(self.globals) + len(emitter.given))
            tail = [*(instance.quenched[q] for q in emitter.law.quenched), *instance.constants]
            sent = emitter.emission([*blank, *tail], instance.size[f.sender])[:, emitter.heard.index(f)]
            given.append(instance.matrix(f) @ sent)
        blank = [0.0] * (len(form.states) + len(form.moving) + len(self.globals))
        return [*blank, *given, *(instance.quenched[q] for q in form.law.quenched), *instance.constants]

    # -- the general program, sparse -----------------------------------------------------------------

    def assemble(self, instance: Instance) -> Assembled:
        """Return the program of an instance, without the constraint that holds a convex set.

        The variables are the states, kind by kind and family by family, then the globals.  A further
        penalty on the globals is not part of it.
        """
        from scipy import sparse

        offsets, count = self.places(instance)
        hessian, slope = sparse.csc_matrix((count, count)), np.zeros(count)
        rows: list[tuple[Any, np.ndarray, bool]] = []
        sums, totals = np.zeros((len(self.conditions), count)), np.zeros(len(self.conditions))
        for kind, form in self.forms.items():
            n, args = instance.size[kind], self.arguments(instance, kind)
            maps = self._maps(instance, kind, offsets, count)
            h, g = form.hessian(args, n), form.slope(args, n)
            for j, (left, *_) in enumerate(maps):
                gradient = g[:, j].copy()
                for k, (right, *_) in enumerate(maps):
                    if np.any(h[:, j, k]):
                        hessian = hessian + left.matrix.T @ sparse.diags_array(h[:, j, k]) @ right.matrix
                        gradient += h[:, j, k] * right.constant
                if np.any(gradient):
                    slope += left.matrix.T @ gradient
            for c in (c for c, cut in enumerate(form.cut) if not cut):
                block = self._rows(instance, form, c, maps, np.arange(n))
                rows.append((block.matrix, block.constant, form.equality[c]))
            if self.conditions:
                shares, totals = form.sums(args, n), totals + form.sum_offset(args, n).sum(axis=0)
                for j, (part, *_) in enumerate(maps):
                    sums += shares[:, :, j].T @ part.matrix
                    totals += shares[:, :, j].T @ part.constant
        first, zero = count - len(self.globals), dict.fromkeys(self.globals, 0)
        numbers = dict(zip(self.compiled.constants, instance.constants, strict=True))
        for k, c in enumerate(self.conditions):
            shared = c.shared.subs(numbers)
            sums[k, first:] += [float(shared.diff(g)) for g in self.globals]
            shift = np.array([totals[k] + float(shared.subs(zero))])
            rows.append((sparse.csr_matrix(sums[k : k + 1]), shift, c.equality))
        bounded = [first + k for k, g in enumerate(self.globals) if g.is_nonnegative]
        rows.append((sparse.eye_array(count).tocsr()[bounded], np.zeros(len(bounded)), False))
        body = self.problem.global_objective
        if body != 0:
            slopes = [body.diff(g).subs(numbers) for g in self.globals]
            slope[first:] += [float(e.subs(zero)) for e in slopes]
            bends = [[float(e.diff(g).subs(zero)) for g in self.globals] for e in slopes]
            hessian = hessian + sparse.block_diag([sparse.csc_matrix((first, first)), bends])
        matrices, shifts, equal = zip(*rows, strict=True)
        return Assembled(
            sparse.csc_matrix(hessian),
            slope,
            sparse.csr_matrix(sparse.vstack(matrices)),
            np.concatenate(shifts),
            np.repeat(equal, list(map(len, shifts))),
        )

    def cut_rows(self, instance: Instance, cuts: Cuts) -> Map:
        """Return the constraint that holds a convex set, written for one point of the set in each row."""
        form = self.cut
        maps = self._maps(instance, form.kind, *self.places(instance))
        return self._rows(instance, form, form.cut.index(True), maps, cuts.owners, cuts.points)

    def _rows(
        self,
        instance: Instance,
        form: SiteForm,
        c: int,
        maps: list[list[Map]],
        sites: np.ndarray,
        points: np.ndarray | None = None,
    ) -> Map:
        """Return a constraint at the given sites, for a point of the set at each where it holds one."""
        from scipy import sparse

        n, args = instance.size[form.kind], self.arguments(instance, form.kind)
        slopes, shift = form.rows(args, n)[sites, c], form.offset(args, n)[sites, c]
        total = sparse.csr_matrix((len(sites), maps[0][0].matrix.shape[1]))
        for j, parts in enumerate(maps):
            if not np.any(slopes[:, j]):
                continue
            weights = points.T if points is not None and j in form.vectors else np.ones((1, len(sites)))
            for part, weight in zip(parts, weights, strict=True):
                factor = slopes[:, j] * weight
                total = total + sparse.diags_array(factor) @ part.matrix[sites]
                shift = shift + factor * part.constant[sites]
        return Map(total, shift)

    def places(self, instance: Instance) -> tuple[dict[SiteQuantity, int], int]:
        """Return where the variables of each family begin, and how many variables there are."""
        count, offsets = 0, {}
        for kind, form in self.forms.items():
            for q in form.states:
                offsets[q] = count
                count += instance.size[kind]
        return offsets, count + len(self.globals)

    def _maps(
        self, instance: Instance, kind: Kind, offsets: dict[SiteQuantity, int], count: int
    ) -> list[list[Map]]:
        """Return every variable of the sites of a kind by its components, in the variables of the program."""
        from scipy import sparse

        n, form = instance.size[kind], self.forms[kind]
        sent = {}
        for sender in dict.fromkeys(f.sender for f in form.moving):
            emitter, at, size = self.forms[sender], self.arguments(instance, sender), instance.size[sender]
            sent[sender] = emitter, emitter.emission(at, size), emitter.emits(at, size)
        maps = [[Map(sparse.eye_array(n, count, k=offsets[q]).tocsr(), np.zeros(n))] for q in form.states]

        def heard(f: RandomField, part: RandomField) -> Map:
            emitter, emission, emits = sent[f.sender]
            x, h = instance.matrix(part), emitter.heard.index(f)
            total = sparse.csr_matrix((n, count))
            for j, q in enumerate(emitter.states):
                block = sparse.csr_matrix(x * emits[:, h, j])
                total = total + block @ sparse.eye_array(instance.size[f.sender], count, k=offsets[q]).tocsr()
            return Map(total, x @ emission[:, h])

        for f in form.moving:  # of a vector every component, in order
            name = f.coupling.family.name
            own = [p for p in form.law.fields if p.sender == f.sender and p.coupling.family.name == name]
            maps.append([heard(f, part) for part in (own if f.components else [f])])
        for k in range(len(self.globals)):
            place = np.full(n, count - len(self.globals) + k)
            ones = sparse.csr_matrix((np.ones(n), (np.arange(n), place)), (n, count))
            maps.append([Map(ones, np.zeros(n))])
        return maps

    def branches(self, instance: Instance, answer: ProgramSolution) -> State:
        """Return a state with the branches that an answer says, and its variables still zero."""
        state = instance.start()
        state.active = {
            s: np.zeros((instance.size[s], law.kp), dtype=bool) for s, law in self.compiled.laws.items()
        }
        position = 0
        for kind, form in self.forms.items():
            n = instance.size[kind]
            for k, cut in zip(form.pair, form.cut, strict=True):
                if cut:
                    continue
                rows = slice(position, position + n)
                if k is not None:
                    state.active[kind][:, k] = answer.dual[rows] < answer.slack[rows]
                position += n
        return state


@dataclass(frozen=True)
class ProgramSolution:
    """The solution of an assembled program: its variables, and slack and multiplier of every row."""

    variables: np.ndarray
    slack: np.ndarray
    dual: np.ndarray


def solve_assembled(made: Assembled) -> ProgramSolution | None:
    """Solve an assembled program by a sparse interior point; None if it is infeasible.

    Raises
    ------
    ArithmeticError
        If the solver neither solved it nor found it infeasible.
    """
    clarabel = _clarabel()
    from scipy import sparse

    order = np.concatenate([np.flatnonzero(made.equal), np.flatnonzero(~made.equal)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.ZeroConeT(int(made.equal.sum())), clarabel.NonnegativeConeT(int((~made.equal).sum()))]
    found = clarabel.DefaultSolver(
        sparse.triu(made.hessian).tocsc(), made.slope, -made.matrix[order].tocsc(), made.offset[order], cones, settings
    ).solve()
    if "Infeasible" in str(found.status):
        return None
    if not np.all(np.isfinite(found.x)):
        raise ArithmeticError(f"The conic solver stopped with {found.status}.")
    slack, dual = np.empty(len(order)), np.empty(len(order))
    slack[order], dual[order] = found.s, found.z
    return ProgramSolution(np.asarray(found.x), slack, dual)


def _clarabel() -> Any:
    try:
        import clarabel
    except ImportError:
        raise MissingDependency(
            "The conic solver clarabel is not installed.",
            "clarabel 0.9 or later",
            "pip install clarabel",
        ) from None
    return clarabel


@lru_cache(maxsize=32)
def quadratic_program(system: System) -> QuadraticProgram | None:
    """Return the quadratic program of a system, or None if it has no Lagrangian or is not quadratic."""
    program = None if system.record is None else QuadraticProgram(system)
    return program if program is not None and program.quadratic else None
