"""A declaration at one finite instance, evaluated as it was typed: arrays, sums over axes, no law of a single site."""

import numpy as np
from sympy import Dummy, Equality, KroneckerDelta, LessThan, Piecewise, Sum, lambdify

from symcavity.model.complementary import Complementary
from symcavity.model.couplings import Coupling
from symcavity.model.equations import Equation
from symcavity.model.kinds import is_index
from symcavity.model.quantities import Global, SiteQuantity, Variable
from symcavity.model.support import Support

AXES, LEAST = 7, 1e-15
STEPS = [way * step for step in (1e-3, 1e-5, 1e-7, 2e-8) for way in (1, -1)]


class Typed:
    """What was typed, at the states and parameters of one instance on which messages have settled."""

    def __init__(self, problem, run, number=0):
        system, instance = problem._system(), run.setup.instance(run.N, run.runs[number].seed)
        self.record, self.axes, self.code = system.record, {}, {}
        first, more = (self.record.problem if self.record else system).typed
        self.objective, self.rows = (first, list(more)) if self.record else (None, [*first, *more])
        self.sets = {g.name: known.shape for g, known in run.setup.written.sets.items()}
        found = run.simulation.samples[number].arrays
        self.states = {name: np.array(v, dtype=np.longdouble) for name, v in found.items()}
        self.numbers = {s: np.longdouble(v) for s, v in zip(instance.system.constants, instance.constants, strict=True)}
        self.numbers |= {kind.size: n for kind, n in instance.size.items()}
        self.arrays = {q.name: v.astype(np.longdouble) for q, v in instance.quenched.items()}
        sides = [s for e in (self.objective, *self.rows) if e is not None for s in _sides(e)]
        atoms = {q for s in sides for q in s.atoms(SiteQuantity)}
        self.primal = sorted({q.family.name for q in atoms if isinstance(q.family, Variable)})
        self.primal += sorted({s.name for e in sides for s in e.atoms(Global)})
        families = sorted({q.family for q in atoms if isinstance(q.family, Coupling)}, key=lambda f: f.name)
        drawn = {}
        for c, array in zip(instance.system.couplings, instance.couplings, strict=True):
            drawn.setdefault(c.family.name, []).append(array.astype(np.longdouble))
        spare = [rows for name, rows in drawn.items() if name not in {f.name for f in families}]
        for f in families:  # what has a mean is drawn without it, under another name
            rows = drawn[f.name] if f.name in drawn else spare.pop(0)
            array = np.stack(rows, axis=-1) if f.components else rows[0]
            if f.mean != 0:
                mean, ends = self.value(f.mean), [self._axis(k.index) for k in f.slots]
                array = array + (np.moveaxis(mean, ends, [0, 1])[..., 0, 0, 0, 0, 0] if np.ndim(mean) else mean)
            self.arrays[f.name] = array

    def _axis(self, index):
        return self.axes.setdefault(index, len(self.axes))

    def value(self, expr):
        """The value of an expression, with its free indices on their axes."""
        if isinstance(expr, SiteQuantity):
            array = (self.states if isinstance(expr.family, Variable) else self.arrays)[expr.family.name]
            axes, shape = [self._axis(k) for k in expr.indices], [1] * AXES
            for k, axis in enumerate(axes):
                shape[axis] = array.shape[k]
            return np.transpose(array, np.argsort(axes)).reshape(shape)
        if isinstance(expr, Sum):
            out = self.value(expr.function)
            for index, _, size in expr.limits:
                axis = self._axis(index)
                many = 1 if np.ndim(out) and out.shape[axis] > 1 else float(self.value(size))
                out = (out.sum(axis=axis, keepdims=True) if np.ndim(out) else out) * many
            return out
        if isinstance(expr, Support):
            g, inner, component, _ = expr.args
            axis = self._axis(component.index if hasattr(component, "index") else component)
            V = np.moveaxis(self.value(inner), axis, -1)
            found = self.sets[g.name].support(V.reshape(-1, V.shape[-1]).astype(float))
            return np.expand_dims(np.asarray(found).reshape(V.shape[:-1]), axis)
        if expr not in self.code:
            parts = sorted(_outermost(expr), key=str)
            marks = [Dummy() for _ in parts]
            rest = expr.xreplace(dict(zip(parts, marks, strict=True)))
            rest = rest.rewrite(Piecewise) if rest.has(KroneckerDelta) else rest
            free = sorted(rest.free_symbols - set(marks), key=str)
            self.code[expr] = parts, free, lambdify([*marks, *free], rest, "numpy")
        parts, free, code = self.code[expr]
        given = [self.states[s.name] if s.name in self.states else self.numbers[s] for s in free]
        with np.errstate(over="ignore"):
            return code(*map(self.value, parts), *given)

    def gaps(self):
        """By row of the declaration, what has to vanish: violations of signs, and products of pairs."""
        for row in self.rows:
            if isinstance(row, Complementary):
                p, q = map(self.value, row.pair)
                yield from (np.minimum(p, 0), np.minimum(q, 0), p * q)
            elif isinstance(row, Equality | Equation):
                yield self.value(row.lhs) - self.value(row.rhs)
            else:
                yield np.minimum(self._slack(row), 0)

    def _slack(self, row):
        return (-1 if isinstance(row, LessThan) else 1) * (self.value(row.lhs) - self.value(row.rhs))

    def worst(self):
        """The largest violation of what was typed, but for the minimum."""
        return max((float(np.max(np.abs(g))) for g in self.gaps()), default=0.0)

    def multiplied(self):
        """The constraints with their multipliers: the Lagrangian without what is minimised."""
        auxiliary = {q.family for q, _ in self.record.auxiliary}
        own = [m for m, e, _ in self.record.multipliers if not {q.family for q in e.atoms(SiteQuantity)} & auxiliary]
        shared = [m for m, c in self.record.conditions if c.declared in self.rows]
        for row in self.rows:
            kinds = {k for s in _sides(row) for k in s.free_symbols if is_index(k)}
            pool = own if kinds else shared
            price = pool.pop(next(k for k, m in enumerate(pool) if not kinds or kinds == set(m.indices)))
            yield row, self.states[price.family.name if kinds else price.name]

    def lowered(self, coordinates=3):
        """How much less the declared Lagrangian is beside the state, at its multipliers: no less at a minimum."""
        rows = list(self.multiplied())
        for row, price in rows:
            if not isinstance(row, Equality):
                products = self._slack(row).ravel() * price.ravel()
                assert max(float(np.max(np.abs(products))), -float(np.min(price))) < 1e-8, row

        def lagrangian():
            total = self.value(self.objective)
            for row, price in rows:
                slack = self._slack(row)
                total = total - signs.get(row, 1) * np.sum(slack.ravel() * price.ravel())
            return np.squeeze(total)

        free = [row for row, _ in rows if isinstance(row, Equality)]
        found = []
        for k in range(2 ** len(free)):  # the sign of the multiplier of an equality is nobody's business
            signs = {row: 1 - 2 * (k >> n & 1) for n, row in enumerate(free)}
            here = lowest = lagrangian()
            for name in self.primal:
                kept = self.states[name].copy()
                for place in np.ndindex(kept.shape[:1]) if kept.ndim else [()]:
                    if place and place[0] >= coordinates:
                        break
                    for step in STEPS:
                        self.states[name] = kept.copy()
                        self.states[name][place] += step
                        lowest = min(lowest, lagrangian())
                self.states[name] = kept
            found.append(float((here - lowest) / max(1, abs(here))))
        return min(found)


def _sides(e):
    return list(e.pair) if isinstance(e, Complementary) else [e.lhs, e.rhs] if hasattr(e, "lhs") else [e]


def _outermost(expr):
    if isinstance(expr, Sum | SiteQuantity | Support):
        return {expr}
    return set().union(*map(_outermost, expr.args)) if expr.args else set()
