"""The resolvent of the covariances between sites, from two inserted sites with a source at the observed quantity.

With ``G = L + L x L + L x G x L`` between sites, as :mod:`symcavity.method.pair` has it, and ``E``, which is one at
what is observed and zero elsewhere, ``Q = (G^(-1) - E/z)^(-1)`` holds the resolvent of the covariances ``C``, in E,

    Q = z**2 (z - C)^(-1) - z.

Its own entries close like those of any resolvent: at a site ``Q_u = L_u + L_u B Q_u``, where ``B = E/z + W[<Q> - <L>]``
has what comes back through all other sites, with the covariances ``W`` of the couplings.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sympy import Add, Dummy, Expr, Matrix, S, Symbol, eye

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.method.pair import Pair
from symcavity.method.pair_ends import Leg, Two
from symcavity.model.equations import Equation
from symcavity.model.kinds import Kind, N, in_units_of_n
from symcavity.record.order_parameters import OrderParameter


@dataclass(frozen=True)
class Resolvent:
    """The closed equations of the resolvent of the covariances at given couplings.

    Attributes
    ----------
    pair : Pair
    """

    pair: Pair

    @cached_property
    def kinds(self) -> dict[Kind, list[Leg]]:
        """The ends of each kind of sites."""
        out: dict[Kind, list[Leg]] = {}
        for leg in self.pair.legs:
            out.setdefault(leg.kind, []).append(leg)
        return out

    @cached_property
    def local(self) -> dict[Two, Expr]:
        """``L``: covariances and responses of one site."""
        return {(a, b): self.pair.local(a, b) for own in self.kinds.values() for a in own for b in own}

    @cached_property
    def couplings(self) -> dict[Two, dict[Two, Expr]]:
        """``W``, with the numbers of sites of the senders over N: nonzero entries."""
        out: dict[Two, dict[Two, Expr]] = {}
        for row in self.local:
            line = {c: in_units_of_n(c[0].kind.size / N) * self.pair.between(row, c) for c in self.local}
            out[row] = {c: e for c, e in line.items() if e != 0}
        return out

    @cached_property
    def argument(self) -> Symbol:
        """The argument of the resolvent."""
        taken = self._taken | {str(node.z) for e in self.local.values() for node in e.atoms(GaussianAverage)}
        return Symbol(next(n for n in ("z", "omega", "z_C", "omega_C") if n not in taken))

    @cached_property
    def value(self) -> OrderParameter:
        """The mean of ``1/(z - eigenvalue)``."""
        return OrderParameter(next(n for n in ("G", "G_C", "G_z") if n not in self._taken))

    @cached_property
    def symbols(self) -> dict[Two, OrderParameter]:
        """A symbol for each entry of ``<Q>``: one for both orders of two ends."""
        taken, out = set(self._taken), dict[Two, OrderParameter]()
        for a, b in self.local:
            if (b, a) in out:
                out[a, b] = out[b, a]
                continue
            base = f"Q_{'_'.join(dict.fromkeys(leg.name for leg in (a, b)))}"
            name = next(n for k in range(1, len(taken) + 2) if (n := base if k == 1 else f"{base}_{k}") not in taken)
            taken.add(name)
            out[a, b] = OrderParameter(name)
        return out

    @property
    def _taken(self) -> set[str]:
        theory = self.pair.theory
        return {str(s) for s in (*theory.scaled_unknowns, *theory.system.parameters, *theory.system.variables)}

    def back(self, row: Two) -> Expr:
        """An entry of ``B``: the source, and what comes back through all other sites."""
        through = self.couplings[row]
        heard = Add(*(e * (self.symbols[c] - self.pair.over_sites(self.local[c])) for c, e in through.items()))
        return heard + (1 / self.argument if row == self.pair.target else S.Zero)

    @cached_property
    def equations(self) -> list[Equation]:
        """One equation for each entry, and that of the resolvent."""
        found: dict[OrderParameter, Expr] = {}
        for own in self.kinds.values():
            local = Matrix([[self.local[a, b] for b in own] for a in own])
            back = Matrix([[self.back((a, b)) for b in own] for a in own])
            means = Matrix([[self.symbols[a, b] for b in own] for a in own])
            differ = any(self.pair.over_sites(e) != e for e in local)  # sites
            sites = _over(local, eye(len(own)) - back * local) if differ else local + local * back * means
            for symbol, entry in zip(means, sites, strict=True):
                if symbol not in found:
                    found[symbol] = self.pair.over_sites(entry) if differ else entry
        z, entry = self.argument, self.symbols[self.pair.target]
        return [*(Equation(s, e) for s, e in found.items()), Equation(self.value, 1 / z + entry / z**2)]


def _over(above: Any, below: Any) -> Any:
    """A matrix times the inverse of another one, by Cramer's rule: entries are symbols to the arithmetic.

    Each entry is one fraction, and nothing simplifies it.
    """
    entries = [e for e in dict.fromkeys([*above, *below]) if e.free_symbols]
    names = {e: Dummy(f"n{k}") for k, e in enumerate(entries)}
    plain = below.xreplace(names)
    whole = plain.det(method="laplace")
    found = above.xreplace(names) * plain.adjugate() / whole
    return found.xreplace({name: e for e, name in names.items()})
