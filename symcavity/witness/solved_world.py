"""A seeded world whose sites solve their laws, with one more site or without it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from symcavity.algebra.precision import mp
from symcavity.model.equations import Equation
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.quantities import SiteQuantity
from symcavity.record.derivation import Step
from symcavity.witness.declared import Carrier, declared_of
from symcavity.witness.moments import free_points
from symcavity.witness.registry import one_to_one
from symcavity.witness.world import DIGITS, Env, Key, same

Place = tuple[Kind, int]


class SolvedWorld:
    """A world in which the states of a kind solve their declared equations, at seeded couplings and messages.

    Parameters
    ----------
    step : Step
    seed : int

    Attributes
    ----------
    rows : list of Carrier
        The declared equations in which the kind is heard.
    names : dict
        The field that each name stands for, less the site's own message.
    """

    def __init__(self, step: Step, seed: int) -> None:
        theory = step.evidence["theory"]
        self.kind: Kind = step.data["kind"]
        self.declared = declared_of(theory)
        self.system = self.declared.system
        self.world = self.declared.world(seed)
        self.world.meanings |= theory.order_parameters
        self.heard = self.system.sent_by(self.kind)
        self.hearers = list(dict.fromkeys(f.hearer for f in self.heard))
        carriers = [row for hearer in self.hearers for row in self.declared.carriers(hearer)]
        self.rows = [row for row in carriers if row.field in self.heard]
        self.names: dict[SiteQuantity, RandomField] = step.evidence.get("names", {})

    def places(self) -> Iterator[Place]:
        """The sites of all that hear the kind."""
        for hearer in self.hearers:
            for site in self.world.sites(hearer):
                yield hearer, site

    # -- the senders ---------------------------------------------------------------------------------

    def settle(self, silent: Place | None = None) -> None:
        """Solve the declared equations of the senders, which do not hear a silent site."""
        world = self.world
        world.without = silent
        try:
            with mp.workdps(DIGITS):
                for site in world.sites(self.kind):
                    self._solve(self.unknowns(site), site)
        finally:
            world.without = None

    def unknowns(self, site: int) -> list[Key]:
        """The states of a sender that no sum defines."""
        states = [q for q in self.system.laws[self.kind].unknowns if q.family not in self.world.defined]
        return [self.world.key(q, env) for q in states for env in self.at(self.kind, site, q)]

    def _solve(self, keys: list[Key], site: int) -> None:
        given = self.world.given
        given.update(dict.fromkeys(keys, mp.mpf(0)))
        rest = self.residuals(site)
        matrix = mp.zeros(len(rest), len(keys))
        for column, key in enumerate(keys):
            given[key] = mp.mpf(1)
            for row, value in enumerate(self.residuals(site)):
                matrix[row, column] = value - rest[row]
            given[key] = mp.mpf(0)
        found = mp.lu_solve(matrix, -mp.matrix(rest))
        given.update(zip(keys, found, strict=True))
        if not all(same(value, 0) for value in self.residuals(site)):
            raise ValueError(f"the declared equations of a {self.kind} are not linear in its states")

    def residuals(self, site: int) -> list[Any]:
        """The declared equations of a sender, as left sides minus right sides."""
        return [
            self.world.value(row.declared.difference, env)
            for row in self.declared.rows[self.kind]
            if row.named is None
            for env in self.at(self.kind, site, row.declared)
        ]

    # -- those that hear them ------------------------------------------------------------------------

    def at(self, kind: Kind, site: int, *exprs: Any) -> list[dict[Any, int]]:
        """The values of the indices that expressions leave free, at one site of a kind."""
        found = [env for env in free_points(self.world, exprs) if env.get(kind.index, 1) == 1]
        return [{**env, kind.index: site} for env in found]

    def apart(self, hearer: Kind, site: int) -> dict[Key, Any]:
        """What each name is at a site: the declared field, from senders that do not hear the site."""
        self.settle((hearer, site))
        return {
            self.world.key(name, env): self.world.value(f.as_sum, env)
            for name, f in self.names.items()
            if f.hearer == hearer
            for env in self.at(hearer, site, name)
        }

    def name(self, hearer: Kind, site: int) -> None:
        """Let the names stand for what they are at a site, and the senders hear it again."""
        apart = self.apart(hearer, site)
        self.settle()
        self.world.given.update(apart)

    def gap(self, claim: Equation, row: Carrier, env: Env) -> Any:
        """By how much a claim differs from the declared equation."""
        return self.world.value(claim.difference, env) - self.world.value(row.declared.difference, env)

    def pair_up(self, claims: Iterable[Equation], fits: Callable[[Equation, Carrier], bool]) -> bool:
        """Whether each claim is one of the declared equations, and none is left over."""
        return one_to_one(claims, self.rows, lambda claim, row: row.named in (None, claim.lhs) and fits(claim, row))
