"""The responses of sampled paths: tangents, carried forward along with the states."""

from __future__ import annotations

from typing import Any

import numpy as np
from sympy import DiracDelta, Expr, Heaviside, S

from symcavity.algebra.hinges import slope_of
from symcavity.errors import UnsupportedLaw, ValuesError
from symcavity.evaluate.moving.by_parts import ByParts, has_parts
from symcavity.evaluate.moving.plan import Response
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Field, SiteQuantity, Variable, site_quantities
from symcavity.model.times import lag_of

SUPPORTED = (
    "laws that jump where couplings do not return, or in runs over paths where fields have the same covariances at all "
    "sites; functions without jumps elsewhere"
)
MEMORY = 3 * 2**30  # bytes for the tangents of all paths


class Tangents:
    """The responses of each path to the sources of each field, carried forward with the states.

    Where nothing comes back to the sites, only the last few steps are kept.
    """

    integrates_by_parts = True  # responses to fields with which a law jumps

    def __init__(self, run: Any) -> None:
        self.run, plan = run, run.plan
        self.sources: dict[Kind, list[RandomField]] = {
            kind: [h.declared for h in s.heard] for kind, s in plan.sites.items()
        }
        self.jumps: dict[Kind, str] = {}
        self.parts = ByParts(run)
        self.thrown: set[Kind] = set()  # kinds whose laws jump with what moves: all responses by integration by parts
        self.still: dict[Kind, list[RandomField]] = {}  # fields that keep still, in kinds whose laws jump with one
        self.slopes: dict[SiteQuantity, list[tuple[SiteQuantity, Expr]]] = {}
        for q, row in plan.rows.items():
            found = [(x, slope_of(row.rhs, x)) for x in site_quantities(row.rhs, Variable, Field)]
            (kind,) = q.site
            thrown = [x for x, e in found if e.has(DiracDelta)]
            if any(x.time is not None for x in thrown) and self.integrates_by_parts and has_parts(plan, kind):
                self.thrown.add(kind)
            elif any(x.time is not None for x in thrown) or (thrown and not self._has_parts(kind)):
                self.jumps.setdefault(kind, str(row.update.equation))
            elif thrown:  # what keeps still does not answer to what moves
                self.still[kind] = [g for g in self.sources[kind] if g.time is None]
            self.slopes[q] = [
                (x, e.replace(Heaviside, lambda arg, *_: Heaviside(arg, S.Half)))
                for x, e in found
                if e != 0 and x not in thrown
            ]
        self.needed = {r.kind for r in plan.responses.values()}
        self.weights: dict[Any, list[Expr]] = {}
        for r in plan.responses.values():
            if r.kind in self.thrown:
                continue
            for g in self._sources(r.kind) if self._is_still(r.field) else [r.field]:
                if site_quantities(r.weight):
                    self.weights.setdefault((r.state.now, g), []).append(r.weight)
        for kind in self.needed & set(self.jumps):
            raise UnsupportedLaw(
                f"{self.jumps[kind]} jumps, and the theory needs its response.",
                SUPPORTED,
                "a steep function, tanh(k*x)",
            )
        self.means: dict[tuple[SiteQuantity, RandomField, Expr], dict[int, np.ndarray]] = {}
        self._kept: dict[tuple[Any, RandomField], dict[int, np.ndarray]] = {}
        self._heard: dict[tuple[RandomField, RandomField], dict[int, np.ndarray]] = {}
        updates = [r.update for r in plan.rows.values()]
        self._deepest = 1 + max([lag for u in updates for _, lag in u.needs] + [u.lead for u in updates])
        self._check_memory()

    def _check_memory(self) -> None:
        run, count = self.run, 0
        for f, echoes in run.plan.echoes.items():
            if echoes and f.time is not None and f.hearer not in self.thrown:
                count += len(self.sources[f.hearer]) * len(echoes)
        bytes_ = count * 8 * run.shape[0] * run.shape[1] * (run.steps + 1) * (run.steps + 2) // 2
        if bytes_ > MEMORY:
            most = int(MEMORY / (bytes_ / (run.shape[0] * run.shape[1])))
            paths = run.shape[0] * run.shape[1]
            raise ValuesError(
                f"The responses of {paths} paths over {run.steps} steps need {bytes_ / 2**30:.0f} GiB.",
                f"at most {most} paths at so many steps",
                f"paths={most}",
            )

    def _has_parts(self, kind: Kind) -> bool:
        """Whether fields that keep still are Gaussian, and their covariances are the same at all sites."""
        plan, fields = self.run.plan, self.sources[kind]
        terms = [term for f in fields for g in fields for term in plan.covariances[f, g]]
        answers = any(plan.echoes[g] for g in fields if g.time is None)
        return self.integrates_by_parts and not answers and not any(site_quantities(term.factor) for term in terms)

    def _is_still(self, g: RandomField) -> bool:
        return g in self.still.get(g.hearer, ())

    def _sources(self, kind: Kind) -> list[RandomField]:
        """The fields whose sources are followed along each path."""
        without = kind in self.jumps or kind in self.thrown or not (self.run.follows or kind in self.needed)
        return [] if without else [g for g in self.sources[kind] if not self._is_still(g)]

    def _sources_of(self, q: SiteQuantity) -> list[RandomField]:
        (kind,) = q.site
        return self._sources(kind)

    def _count(self, g: RandomField, step: int) -> int:
        """How many sources of a field there are up to a step."""
        return step + 1 if g.time is not None else 1

    def _place(self, g: RandomField, when: int) -> int | None:
        """Which of them is the source at a step; None if it is not one of those that are followed."""
        return when if g.time is not None else 0

    def follow(self, q: SiteQuantity, step: int) -> None:
        """The responses of a state that has just been filled."""
        run, row = self.run, self.run.plan.rows[q]
        t = step - row.update.lead
        look_up = run.look_up(t)
        for g in self._sources_of(q):
            total = np.zeros((self._count(g, step), *run.shape))
            for x, slope in self.slopes[q]:
                when = 0 if x.time is None else t + lag_of(x.time)
                before = self._kept.get((x.now, g), {}).get(when)
                if before is not None:
                    total[: len(before)] += run.formula(slope)(look_up, t) * before
            for f, factor in row.fields:
                when = t if f.time is not None else 0
                heard = self._heard.get((f, g), {}).get(when)
                value = run.value(factor, t)
                if heard is not None:
                    total[: len(heard)] += value * heard
                if f == g and (place := self._place(g, when)) is not None:
                    total[place] += 1.0
            kept = self._kept.setdefault((q, g), {})
            kept[step] = total
            self.means.setdefault((q, g, S.One), {})[step] = total.mean(axis=2)
            for weight in self.weights.get((q, g), ()):
                self.means.setdefault((q, g, weight), {})[step] = (run.value(weight, step) * total).mean(axis=2)
            if q.time is not None:
                kept.pop(step - self._deepest, None)

    def hear(self, f: RandomField, t: int) -> None:
        """The responses of a field that has just been drawn, by what comes back."""
        run = self.run
        if not run.plan.echoes[f]:
            return
        for g in self._sources(f.hearer):
            total = np.zeros((self._count(g, t), *run.shape))
            product = np.empty_like(total)  # memory that is new for each product costs as much as they do
            for echo in run.plan.echoes[f]:
                if echo.through.time is None:
                    continue
                for u, back in enumerate(run.back(echo, t)):
                    sent = self._sent(echo.emission, g, u)
                    if sent is not None:
                        total[: len(sent)] += np.multiply(back, sent, out=product[: len(sent)])
            known = self._heard.setdefault((f, g), {})
            known[t] = total
            known.pop(t - self._deepest, None)

    def _sent(self, emission: Expr, g: RandomField, u: int) -> np.ndarray | None:
        """The responses of an emission at one step: kept, since all that follows remembers it."""
        known = self._kept.setdefault((("sent", emission), g), {})
        if u not in known:
            parts = [(x, slope_of(emission, x)) for x in site_quantities(emission, Variable, Field)]
            every = [(self._kept.get((x.now, g), {}).get(u + lag_of(x.time)), e) for x, e in parts]
            found = [(before, e) for before, e in every if before is not None]
            if not found:
                return None
            known[u] = sum(self.run.value(e, u) * before for before, e in found)
        return known[u]

    def mean_of(self, r: Response, t: int, s: int) -> np.ndarray:
        """A kernel that is a response, at its times, by batch."""
        if site_quantities(r.weight):
            return self.mean(r.state.now, r.field, t, s, r.weight)
        return float(r.weight) * self.mean(r.state.now, r.field, t, s)

    def mean(self, q: SiteQuantity, g: RandomField, t: int, s: int, weight: Expr = S.One) -> np.ndarray:
        """The mean response of a state at one step to a source at another, by batch.

        Raises
        ------
        UnsupportedLaw
            If a law jumps.
        """
        (kind,) = q.site
        if kind in self.jumps:
            raise UnsupportedLaw(f"{self.jumps[kind]} jumps: its response is not known.", SUPPORTED)
        if kind in self.thrown:
            return self.parts.mean(q, g, t, s, weight)
        if self._is_still(g):
            return self._by_parts(q, g, t, weight)
        found = self.means.get((q, g, weight), {}).get(t if q.time is not None else 0)
        s = s if g.time is not None else 0
        return found[s] if found is not None and s < len(found) else np.zeros(self.run.batches)

    def _by_parts(self, q: SiteQuantity, g: RandomField, t: int, weight: Expr) -> np.ndarray:
        """The mean response to a field that keeps still and with which the law jumps, by Gaussian integration by parts.

        The average of the state times each such field is a sum over all fields, of the response to each times its
        covariance with that one.
        """
        run, still = self.run, self.still[g.hearer]
        moving, value = self._sources(g.hearer), run.value(weight, t) * run.states[q][t if q.time is not None else 0]
        table = np.empty((run.batches, len(still), len(still)))
        right = np.empty((run.batches, len(still)))
        for k, one in enumerate(still):
            table[:, k] = np.stack([run.covariance(one, 0, other, [0])[:, 0] for other in still], axis=1)
            right[:, k] = (value * run.fields[one][0]).mean(axis=1)
            for f in moving:
                answers = self.means.get((q, f, weight), {}).get(t, np.zeros((0, run.batches)))
                for s, answer in enumerate(answers):
                    right[:, k] -= answer * run.covariance(f, s, one, [0])[:, 0]
        found: np.ndarray = np.linalg.solve(table, right[:, :, None])[:, still.index(g), 0]
        return found
