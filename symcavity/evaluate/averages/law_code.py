"""A joint law in code: its states by Newton's method at all fields at once, and its slopes along sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sympy import Matrix, S

from symcavity.algebra.chain import Chain
from symcavity.algebra.compiled import compiled as function
from symcavity.algebra.joint import KINKS, JointLaw, LawSymbol, slope
from symcavity.evaluate.averages.edges import HELD, held_number
from symcavity.evaluate.averages.faces import Faces
from symcavity.evaluate.averages.joint_bodies import sides_of
from symcavity.evaluate.averages.law_path import along_path, halved, solved
from symcavity.evaluate.constants import NEWTON, TINIEST

SMALL, NEARLY = 1e-12, 1e-7  # the last step, and one after which rounding may be left
LEFT = 1e-2  # of SMALL: the next step is not taken where the residual says that it is shorter
ASIDE = 0.5  # how far from what switches on a plane, in standard deviations
MOST_PAIRS = 10  # of which all faces are tried


class LawCode:
    """A joint law in code: its residual, its Jacobian, and the slopes along sources."""

    def __init__(self, law: JointLaw, leaves: Sequence[Any]) -> None:
        self.law = law
        self.unknowns, self.sources = list(law.unknowns), list(law.sources)
        rows = [*law.equations, *(p for p, _ in law.pairs), *(q for _, q in law.pairs)]
        given = [e for _, e in law.definitions] or [S.Zero]
        self.defined = [x for x, _ in law.definitions]
        inner = [*law.fields, *self.sources]
        every, leaves = [*inner, *self.unknowns], list(leaves)
        chain = Chain([*self.unknowns, *law.fields, *leaves, *self.sources], [*rows, *given], every)

        def code(exprs: Sequence[Any]) -> Any:
            return chain.code(exprs, [*self.unknowns, *law.fields, *leaves], zero=self.sources)

        def along(table: Sequence[Sequence[Any]], some: Sequence[Any]) -> list[Any]:
            places = [every.index(s) for s in some]
            return [row[k] for row in table for k in places]

        parts = slice(len(rows)), slice(len(rows), None)
        whole, tables = ([some[part] for part in parts] for some in (chain.values, chain.slopes))
        self.rows = code(whole[0])
        self._compile_sides(leaves)
        self.jacobian = code(along(tables[0], self.unknowns))
        self.forces = code(along(tables[0], self.sources)) if self.sources else None
        both = [along(tables[0], some) for some in (law.fields, self.sources)] if self.sources else []
        plain = not any(chain.holds(e, every) for table in both for e in table)
        self.hearing = [chain.code(table, leaves) for table in both] if plain else []
        self.definitions = code(whole[1][: len(self.defined)])
        self.along = code(along(tables[1], self.unknowns))
        self.direct = code(along(tables[1], self.sources)) if self.sources else None
        kinks = {k for e in (*rows, *given) for k in e.atoms(*KINKS)}
        self.affine = not (
            len(law.pairs) > MOST_PAIRS
            or any(k.has(*every) for k in kinks)
            or any(chain.holds(e, every) for table in tables for row in table for e in row)
        )
        if self.affine:
            flat = [[e for row in table for e in row] for table in tables]
            self.planes = [
                chain.code([*values, *slopes], leaves, zero=every)
                for values, slopes in zip(whole, flat, strict=True)
            ]

    def _compile_sides(self, leaves: Sequence[Any]) -> None:
        """The code of what changes its sign at kinks of the law, and of the planes through the origin among these."""
        law, zero = self.law, dict.fromkeys(self.sources, S.Zero)
        arguments = [*self.unknowns, *law.fields, *leaves]
        bends = sides_of([e.xreplace(zero) for e in law.expressions])
        self.bends = function(arguments, bends, cse=True) if bends else None
        steps = [e for e in bends if not e.has(*self.unknowns) and e.xreplace(dict.fromkeys(law.fields, S.Zero)) == 0]
        normals = [row for row in (Matrix([e]).jacobian(law.fields) for e in steps) if not row.has(*law.fields)]
        self.normals = [function(leaves, list(row)) for row in normals]

    def faces(self, params: Sequence[float], known: np.ndarray | None) -> Faces | None:
        """The faces of an affine law at some parameters; None where they are not numbers."""
        fields, heard = len(self.law.fields), 1 + len(self.law.fields) + len(self.sources)
        parts = []
        sizes = len(self.law.equations) + 2 * len(self.law.pairs), len(self.defined)
        for call, rows in zip(self.planes, sizes, strict=True):
            cells = np.array(_called(call, params), dtype=float)
            count = len(cells) // (heard + len(self.unknowns))
            parts.append(np.concatenate([cells[:count, None], cells[count:].reshape(count, -1)], axis=1)[:rows])
        if not all(np.isfinite(part).all() for part in parts):
            return None
        whole, given = parts
        return Faces(whole[:, heard:], whole[:, :heard], len(self.law.pairs), given, fields, known)

    def quantities(self, values: np.ndarray, fields: np.ndarray, slopes: np.ndarray) -> dict[LawSymbol, np.ndarray]:
        """All quantities of an affine law by their symbols, from what its faces give."""
        out = dict(zip([*self.unknowns, *self.defined], values, strict=True))
        out |= dict(zip(self.law.fields, fields, strict=True))
        for k, u in enumerate(list(out)[: len(values)]):
            out |= {slope(u, s): slopes[:, k, n] for n, s in enumerate(self.sources)}
        return out

    def _table(self, call: Any, args: Sequence[Any], count: int, width: int) -> np.ndarray:
        cells = _called(call, args)
        out = np.empty((len(cells), count), dtype=complex if any(map(np.iscomplexobj, args)) else float)
        for row, cell in zip(out, cells, strict=True):
            row[...] = cell
        return out.reshape(-1, width, count)

    def _joined(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The residual, with ``p + q - sqrt(p^2 + q^2)`` for each pair, and the weights of p and q in it."""
        plain, count = len(self.law.equations), len(self.law.pairs)
        p, q = values[plain : plain + count], values[plain + count :]
        size = np.sqrt(p * p + q * q)
        with np.errstate(all="ignore"):
            a, b = (np.where(size > 0, 1 - m / size, 1 - np.sqrt(0.5)) for m in (p, q))
        return np.concatenate([values[:plain], p + q - size]), a, b

    def _weighted(self, table: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        plain, count = len(self.law.equations), len(self.law.pairs)
        pairs = a[:, None] * table[plain : plain + count] + b[:, None] * table[plain + count :]
        return np.moveaxis(np.concatenate([table[:plain], pairs]), -1, 0)

    def solve(self, fields: np.ndarray, params: Sequence[float], start: np.ndarray | None) -> np.ndarray | None:
        """The unknowns at all fields by Newton's method; along a central path where a start does not lead to them.

        A law without pairs has no such path: there it begins at the origin again.
        """
        origin = np.zeros((len(self.unknowns), fields.shape[1]))
        begin = origin if start is None or start.shape[1] != fields.shape[1] else start
        x = self._newton(fields, params, begin)
        lost = np.isnan(x[0])
        if lost.any() and (self.law.pairs or begin is not origin):
            begin = along_path(self, fields[:, lost], params) if self.law.pairs else origin[:, lost]
            x[:, lost] = self._newton(fields[:, lost], params, begin)
        return None if np.isnan(x).any() else x

    def _newton(self, fields: np.ndarray, params: Sequence[float], x: np.ndarray) -> np.ndarray:
        """Newton's method, its steps halved where they do not lead on; not a number where they never do."""
        size, total = x.shape
        out, todo = np.full_like(x, np.nan), np.arange(total)
        last = np.full(total, np.inf)

        def there(share: np.ndarray, here: np.ndarray, at: np.ndarray, step: np.ndarray) -> Any:
            moved = here + share * step
            values = self._table(self.rows, [*moved, *at, *params], len(share), 1)[:, 0]
            return np.square(self._joined(values)[0]).sum(axis=0), (moved, values)

        here, at = x, fields
        args = [*here, *at, *params]
        values = self._table(self.rows, args, total, 1)[:, 0]
        for _ in range(NEWTON):
            residual, a, b = self._joined(values)
            table = self._weighted(self._table(self.jacobian, args, len(todo), size), a, b)
            step = -solved(table, residual.T[..., None])[..., 0].T
            merit = np.square(residual).sum(axis=0)
            _, worse, after, (moved, values) = halved(there, merit, np.ones(len(todo)), (here, at, step))
            length = np.max(np.abs(step) / (1 + np.abs(moved)), axis=0)
            done = (length < SMALL) | ((length < NEARLY) & (length > last[todo] / 4))
            done |= length * np.sqrt(after) < LEFT * SMALL * np.sqrt(merit)  # steps shrink as the residual does
            out[:, todo[done]] = moved[:, done]
            last[todo] = length
            left = ~done & np.isfinite(length) & ~(worse & (length > NEARLY))
            todo = todo[left]
            if not todo.size:
                break
            here, at, values = moved[:, left], at[:, left], values[:, left]
            args = [*here, *at, *params]
        return out

    def stepped(self, x: np.ndarray, fields: np.ndarray, params: Any) -> np.ndarray:
        """One step of Newton's method from unknowns that solve the law at real fields and parameters."""
        args = [*x, *fields, *params]
        table, residual, _ = self._active(args, x.shape[1])
        return x - np.linalg.solve(table, residual.T[..., None])[..., 0].T

    def _active(self, args: Sequence[Any], count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The Jacobian, the residual, and which member of each pair is zero."""
        plain, pairs = len(self.law.equations), len(self.law.pairs)
        values = self._table(self.rows, args, count, 1)[:, 0]
        p, q = values[plain : plain + pairs], values[plain + pairs :]
        a = (p.real < q.real).astype(float)
        table = self._weighted(self._table(self.jacobian, args, count, len(self.unknowns)), a, 1 - a)
        return table, np.concatenate([values[:plain], a * p + (1 - a) * q]), a

    def switches(self, x: np.ndarray, fields: np.ndarray, params: Any) -> np.ndarray:
        """Of each pair, the second member without the first: where it is positive, the first is zero."""
        plain, pairs = len(self.law.equations), len(self.law.pairs)
        values = self._table(self.rows, [*x, *fields, *params], x.shape[1], 1)[:, 0]
        return values[plain + pairs :] - values[plain : plain + pairs]

    def sides(self, x: np.ndarray, fields: np.ndarray, params: Any) -> np.ndarray:
        """The same, and what changes its sign at the kinks of the law itself."""
        found = self.switches(x, fields, params)
        if self.bends is None:
            return found
        bends = [np.broadcast_to(side, x.shape[1:]) for side in _called(self.bends, [*x, *fields, *params])]
        return np.concatenate([found, bends])

    def aside(self, root: np.ndarray, params: Sequence[float]) -> np.ndarray:
        """A place beside all planes through the origin on which the law switches, at a root of the covariance."""
        out = np.zeros(root.shape[1])
        for call in self.normals:
            normal = np.array(_called(call, params), dtype=float) @ root
            out += normal / max(float(np.linalg.norm(normal)), TINIEST)
        return out * (ASIDE / max(float(np.linalg.norm(out)), TINIEST))

    def columns(
        self, x: np.ndarray, fields: np.ndarray, params: Any, *, slopes: bool = True
    ) -> dict[LawSymbol, np.ndarray]:
        """All quantities of the law, and the slopes along its sources, from the unknowns."""
        count = x.shape[1]
        x, first = self._exact(x, fields, params)
        if not (self.sources and slopes):
            return self.all_of(x, fields, params, held_number(~first), None)
        table, _, a = self._active([*x, *fields, *params], count)
        forces = self._weighted(self._table(self.forces, [*x, *fields, *params], count, len(self.sources)), a, 1 - a)
        return self.all_of(x, fields, params, held_number(~first), -np.linalg.solve(table, forces))

    def _exact(self, x: np.ndarray, fields: np.ndarray, params: Any) -> tuple[np.ndarray, np.ndarray]:
        """The unknowns, where what is zero is so without rounding, and which pairs have a first member of zero."""
        first = np.zeros((0, x.shape[1]), dtype=bool)
        if self.law.pairs:
            first = self.switches(x.real, fields.real, np.real(params)) > 0
            x = x.copy()
            for (p, q), zero in zip(self.law.pairs, first, strict=True):
                for member, where in ((p, zero), (q, ~zero)):
                    if member in self.unknowns:
                        x[self.unknowns.index(member), where] = 0.0
        return x, first

    def all_of(
        self, x: np.ndarray, fields: np.ndarray, params: Any, held: np.ndarray, answers: np.ndarray | None
    ) -> dict[LawSymbol, np.ndarray]:
        """All quantities of the law from the unknowns and their slopes along the sources, if these are wanted."""
        count, size = x.shape[1], len(self.unknowns)
        args = [*x, *fields, *params]
        out = dict(zip(self.unknowns, x, strict=True)) | dict(zip(self.law.fields, fields, strict=True))
        out[HELD] = held
        if self.defined:
            out |= zip(self.defined, self._table(self.definitions, args, count, 1)[:, 0], strict=True)
        if answers is None:
            return out
        for k, u in enumerate(self.unknowns):
            out |= {slope(u, s): answers[:, k, n] for n, s in enumerate(self.sources)}
        if self.defined:
            along = np.moveaxis(self._table(self.along, args, count, size), -1, 0)
            direct = np.moveaxis(self._table(self.direct, args, count, len(self.sources)), -1, 0)
            whole = along @ answers + direct
            for k, u in enumerate(self.defined):
                out |= {slope(u, s): whole[:, k, n] for n, s in enumerate(self.sources)}
        return out

    def answering(
        self, x: np.ndarray, fields: np.ndarray, params: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The unknowns, which members vanish, and the slopes of the unknowns along the fields."""
        x, first = self._exact(x, fields, params)
        table, _, a = self._active([*x, *fields, *params], x.shape[1])
        rows = self.fields_rows(params)
        forces = self._weighted(np.broadcast_to(rows[..., None], (*rows.shape, x.shape[1])), a, 1 - a)
        return x, held_number(~first), -np.linalg.solve(table, forces)

    def fields_rows(self, params: Any) -> np.ndarray:
        """The slopes of equations, first and second members along the fields, which hold no states."""
        return np.array(_called(self.hearing[0], params), dtype=float).reshape(-1, len(self.law.fields))

    def sources_rows(self, params: Any) -> np.ndarray:
        """The same along the sources."""
        return np.array(_called(self.hearing[1], params), dtype=float).reshape(-1, len(self.sources))

    def rows_at(self, x: np.ndarray, fields: np.ndarray, params: Any) -> tuple[np.ndarray, np.ndarray]:
        """Equations, first and second members, and their slopes along the unknowns, node by node."""
        args, count = [*x, *fields, *params], x.shape[1]
        table = np.moveaxis(self._table(self.jacobian, args, count, len(self.unknowns)), -1, 0)
        return self._table(self.rows, args, count, 1)[:, 0], table


def _called(call: Any, args: Sequence[Any]) -> Any:
    """Call code for arrays; dividing by a number that has faded gives infinity, as for arrays, and no error."""
    with np.errstate(all="ignore"):
        return call(*(np.asarray(v)[()] for v in args))
