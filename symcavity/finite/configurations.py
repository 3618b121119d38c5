"""Configurations of one instance with their weights: the result of enumeration, integration and sampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

NODES = 24  # of a Gauss-Hermite rule


@dataclass(frozen=True)
class Configurations:
    """Configurations of one instance with their shares.

    Attributes
    ----------
    method : str
    x : dict
        By state: one row a configuration, one column a site.
    share : ndarray
        Of each configuration.
    logarithm : float
        That of the sum of all weights; nan of samples.
    width : dict
        By state the standard deviations about x, of what was integrated over.
    chain : ndarray or None
        Of samples: from which chain each is.
    """

    method: str
    x: dict[Any, np.ndarray]
    share: np.ndarray
    logarithm: float = float("nan")
    width: dict[Any, np.ndarray] = field(default_factory=dict)
    chain: np.ndarray | None = None

    def halves(self) -> list[Configurations]:
        """The samples of one half of the chains, and of the other."""
        assert self.chain is not None  # noqa: S101 - of samples
        rows = [self.chain % 2 == k for k in (0, 1)]
        return [replace(self, x={q: v[r] for q, v in self.x.items()}, share=equal_shares(int(r.sum()))) for r in rows]

    def mean(self, function: Callable[..., Any], states: list[Any], size: int) -> np.ndarray:
        """The average of a function of the states of a site, by site."""
        free = [q for q in states if q in self.width]
        shape = (len(self.share), size)
        if not free:
            return self.share @ np.broadcast_to(function(*(self.x[q] for q in states)), shape)
        out = np.zeros(size)
        for t, w in zip(*np.polynomial.hermite_e.hermegauss(NODES), strict=True):
            at = (self.x[q] + self.width[q] * t if q in free else self.x[q] for q in states)
            out += w / np.sqrt(2 * np.pi) * (self.share @ np.broadcast_to(function(*at), shape))
        return out


def equal_shares(count: int) -> np.ndarray:
    """The same share for each of some samples."""
    return np.full(count, 1 / count)


def one_configuration(method: str, x: dict[Any, np.ndarray], energies: np.ndarray) -> Configurations:
    """The configuration of lowest energy of some, alone."""
    best = int(np.argmin(energies))
    return Configurations(method, {q: v[best : best + 1] for q, v in x.items()}, np.ones(1), -float(energies[best]))
