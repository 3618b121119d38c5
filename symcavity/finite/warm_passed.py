"""The messages of one instance at a temperature, read in the words of the declaration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sympy import Expr, Float

from symcavity.finite.messages import Snapshot
from symcavity.finite.thermal import Warm
from symcavity.finite.warm_sites import WarmSites
from symcavity.model.kinds import Kind


class WarmMessages(Warm):
    """The sites of one instance at the fields of one step.

    Parameters
    ----------
    sites : mapping
        Those of each kind.
    at : Snapshot
        What there is after the step.
    """

    def __init__(self, sites: Mapping[Kind, WarmSites], at: Snapshot) -> None:
        self.sites, self.at = sites, at
        self.w = next(iter(sites.values())).w
        self.shared = dict(zip(self.w.system.globals, map(Float, at.state.shared), strict=True))

    def value(self, expr: Expr) -> float:
        """An observable after the step."""
        return self._of(expr, self)

    @property
    def numbers(self) -> dict[Any, Any]:
        """Parameters, and the global variables after the step."""
        return self.w.numbers | self.shared

    def _at_sites(self, body: Expr, kind: Kind, _measure: Any) -> np.ndarray:
        if kind in self.at.args:
            return self.sites[kind].values(body, self.at.args[kind])
        return self.sites[kind].still(body, float(self.at.responses[kind].flat[0]))
