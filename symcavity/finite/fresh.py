"""Fresh sites of an instance: sites of one kind that took no part, drawn for the test of what was learned."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from symcavity.finite.draw import stream
from symcavity.finite.drawn_labels import draw_label
from symcavity.finite.given_values import draw_quenched
from symcavity.finite.instance import Instance
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Quenched

_FRESH = 8  # beside the numbers of the other draws of an instance


class FreshSites:
    """Sites of one kind that hear the others of an instance, and that nobody hears.

    Parameters
    ----------
    instance : Instance
        The instance, which is not changed.
    kind : Kind
        Their kind.

    Attributes
    ----------
    size : dict
        Their number, by their kind.
    quenched : dict
        Their parameters; of those that are given as arrays, the entries of one site at random.
    """

    def __init__(self, instance: Instance, kind: Kind) -> None:
        self.instance, self.kind, self.size = instance, kind, {kind: instance.fresh}
        self._which = list(instance.system.laws).index(kind)
        self.quenched: dict[Quenched, np.ndarray] = {}
        pick = self._stream(6).integers(0, instance.size[kind], instance.fresh)
        for k, q in enumerate(sorted(instance.quenched, key=lambda q: q.name)):
            if q.slots == (kind,) and q.given is None:
                rng, source = self._stream(0, k), instance.values.quenched[q]
                given = isinstance(source, np.ndarray) and source.ndim == 1
                self.quenched[q] = source[pick] if given else draw_quenched(q, source, instance.fresh, rng)
        for k, q in enumerate(q for q in instance.quenched if q.given is not None and q.slots == (kind,)):
            self.quenched[q] = self._label(q, self._stream(3, k))

    def _stream(self, *path: int) -> np.random.Generator:
        return stream(self.instance.seed, _FRESH, self._which, *path)

    def _label(self, label: Quenched, rng: np.random.Generator) -> np.ndarray:
        """Labels that are drawn on a field of the fresh sites."""
        inst = self.instance
        law = inst.system.laws[self.kind]
        told = next(e.rhs for e in law.law.equations if e.lhs == label.given)
        known: dict[Any, Any] = {q.at_site(): v for q, v in self.quenched.items()}
        known |= dict(zip(inst.system.constants, inst.constants, strict=True))
        for f in (f for f in law.fields if told.has(f.symbol)):
            known[f.symbol] = self.matrix(f) @ inst.emissions(f.sender, inst.start())[:, inst.system.column(f)]
        return draw_label(label, told, known, rng)

    def matrix(self, f: RandomField) -> np.ndarray:
        """Return the couplings of a field: fresh sites are the rows, senders the columns."""
        return self._lines[int(f.turned)][self.instance.system.place(f)]

    @cached_property
    def _lines(self) -> list[list[np.ndarray]]:
        """The couplings with the fresh sites at their first end (0) or at their second (1)."""
        return [self._at_end(end) for end in (0, 1)]

    def _at_end(self, end: int) -> list[Any]:
        inst, law = self.instance, self.instance.law
        drawn: list[Any] = []
        for k, x in enumerate(inst.system.couplings):
            slots = x.family.slots
            here = slots[end] == self.kind
            drawn.append(law(self._stream(1 + end, k), (inst.fresh, inst.size[slots[1 - end]])) if here else None)
        back = [None if x is None or a.family.slots != (self.kind,) * 2 else law(self._stream(4 + end, k), x.shape)
                for k, (x, a) in enumerate(zip(drawn, inst.system.couplings, strict=True))]
        tied = inst.tied(drawn, back)
        return [x if x is None else x * np.sqrt(self._scale(k, end)) for k, x in enumerate(tied)]

    def _scale(self, k: int, end: int) -> np.ndarray:
        """The variances of the k-th coupling, fresh sites as rows."""
        inst = self.instance
        _, variance, quenched = inst.system.variances[k]
        first = inst.system.couplings[k].family.slots[0]
        own = [(0 if q.slots == (first,) else 1) == end for q in quenched]
        columns = [
            self.quenched[q][:, None] if mine else inst.quenched[q][None, :]
            for q, mine in zip(quenched, own, strict=True)
        ]
        return np.atleast_2d(np.asarray(variance(*columns, *inst.constants), dtype=float))
