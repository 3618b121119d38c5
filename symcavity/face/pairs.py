"""Results for two sites, and for two copies, of a theory, with the records of these derivations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from symcavity.face.records import Derivation
from symcavity.method.fluctuation_steps import Fluctuations as FluctuationsData
from symcavity.method.fluctuation_steps import fluctuation_steps
from symcavity.method.moving_pair import MovingPair as MovingPairData
from symcavity.method.observed import Observed as ObservedData
from symcavity.method.observed import observed_steps
from symcavity.method.pair import Pair as PairData
from symcavity.record.derivation import Step

if TYPE_CHECKING:
    from symcavity.method.pair_resolvent import Resolvent


def _followed(theory: Any, steps: Iterable[Step]) -> Derivation:
    """The record of a theory, and steps of what follows of it."""
    from symcavity.method.record import record

    first = record(theory)
    return Derivation.of(replace(first, steps=(*first.steps, *steps)))


class Fluctuations(FluctuationsData):
    """How the minimum scatters; :class:`symcavity.method.fluctuation_steps.Fluctuations` says what it holds."""

    @cached_property
    def derivation(self) -> Derivation:
        """The record of the theory, and of what follows of two copies that share their couplings in part."""
        return _followed(self.theory, fluctuation_steps(self))


class ObservedFluctuations(ObservedData):
    """How observables scatter; :class:`symcavity.method.observed.Observed` says what it holds."""

    @cached_property
    def derivation(self) -> Derivation:
        """The record of the theory, and of what follows of two copies with a small term in the objective of each."""
        return _followed(self.theory, observed_steps(self))


class Pair(PairData):
    """Two sites at given couplings; :class:`symcavity.method.pair.Pair` says what it holds."""

    @cached_property
    def resolvent(self) -> Resolvent:
        """The resolvent of their covariances: ``.equations``, closed at a complex ``.argument``, and ``.value``."""
        from symcavity.method.pair_resolvent import Resolvent

        return Resolvent(self)

    @cached_property
    def derivation(self) -> Derivation:
        """The record of the theory, and of what follows of two sites."""
        from symcavity.method.pair_steps import pair_steps

        return _followed(self.theory, pair_steps(self))


class MovingPair(MovingPairData):
    """Two sites over time; :class:`symcavity.method.moving_pair.MovingPair` says what it holds."""

    @cached_property
    def derivation(self) -> Derivation:
        """The record of the theory, and of what follows of two sites."""
        from symcavity.method.moving_pair_steps import moving_pair_steps

        return _followed(self.theory, moving_pair_steps(self))
