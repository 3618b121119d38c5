"""The derived theory as data: the single sites, the closed equations, and what elimination makes of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

from sympy import Expr, GreaterThan, Rational, S, StrictGreaterThan, Symbol, nan, oo, sqrt, zoo

from symcavity.algebra.indexed import diagonal
from symcavity.algebra.joint import JointAverage
from symcavity.algebra.text import plain
from symcavity.errors import DeclarationError, UnsupportedLaw
from symcavity.method.alternatives import alternatives
from symcavity.method.close import assumed, positive_parts
from symcavity.method.closed_form import closed_form
from symcavity.method.derive import derive
from symcavity.method.eliminate import Closed, eliminate, multiples
from symcavity.method.free_energy import entropy_of, free_energy_of
from symcavity.method.moving import laws_of_motion, shared_laws
from symcavity.method.named_laws import with_names
from symcavity.method.observables import NamedObservables
from symcavity.method.stability import Gains, gains
from symcavity.method.views import SiteView
from symcavity.model.content import without
from symcavity.model.equations import Equation
from symcavity.model.kinds import DATUM, FEATURE, Kind, SiteIndex, alpha
from symcavity.model.objective import objective_of
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.model.system import System
from symcavity.record.derivation import Step
from symcavity.record.order_parameters import OrderParameter
from symcavity.sites.labels import LabelledEnsemble
from symcavity.sites.protocol import without_curvature
from symcavity.sites.site import Site

MOST_OF_ALL = 1 - Rational(1, 10**6)  # of a probability


@without(
    "PARTS", "assumed", "binding", "branches", "claimed", "closures", "decided", "fixed_equations", "gains",
    "global_equations", "in_parameters", "inserted", "introduced", "linear_equivalent", "memory", "named_by", "pair",
    "positive", "reduced", "reduced_with_load", "remaining", "replace", "scaled_unknowns", "stationary",
    "steps", "taken", "units",
)  # fmt: skip
class Theory(NamedObservables):
    """A derived theory: the single sites, the closed equations, and what elimination makes of them.

    Attributes
    ----------
    system : System
        What it was derived from.
    inserted : dict
        The inserted site of each kind.
    claimed : callable
        Gives what the verbs claimed, kind by kind.
    closures : dict
        Each order parameter by the single-site average that it stands for.
    global_equations, fixed_equations : list of Equation
        The conditions that global variables and fixed averages add to them.
    taken : tuple of Quenched
        The parameters that were taken as positive, because their laws fix the states then.
    binding : dict
        The convex sets that were put in, with the numbers of components that they fix.
    decided : tuple
        What has to hold on a branch: each condition on all sites is left out where it holds without its multiplier.
    memory : dict
        What the files above have computed of this theory, each under a key of its own.
    """

    PARTS = (
        "is_naive",
        "taken",
        "binding",
        "system",
        "inserted",
        "claimed",
        "order_parameters",
        "closures",
        "global_equations",
        "fixed_equations",
        "decided",
    )
    is_naive: bool
    system: System
    taken: tuple[Quenched, ...]
    inserted: dict[Kind, Site]
    claimed: Callable[[], tuple[Step, ...]]
    order_parameters: dict[OrderParameter, Expr]
    closures: dict[OrderParameter, Expr]

    def __init__(self, system: System, *, naive: bool = False) -> None:
        found = derive(system, naive=naive)
        self.is_naive, self.system, self.inserted = found.is_naive, found.system, found.sites
        self.claimed, self.closures, self.taken = found.steps, found.closures, found.taken
        self.order_parameters = self._meanings(found.meanings)
        self.binding: dict[Any, Any] = {}
        self.memory: dict[Any, Any] = {}
        self.decided: tuple[Any, ...] = ()
        self.global_equations = found.global_equations
        self.fixed_equations = [Equation(self.observable(e.lhs), e.rhs) for e in found.system.fixed]
        self._refuse_infinite()
        self._refuse_impossible()

    def _meanings(self, found: dict[OrderParameter, Expr]) -> dict[OrderParameter, Expr]:
        """The order parameters in the form in which a theory shows them."""
        return found

    def _refuse_infinite(self) -> None:
        """Refuse a site that answers without bound, once its feedback is dropped."""
        for symbol, value in self.closures.items():
            if value.has(zoo) or value in (nan, oo, -oo) or S.false in self.assumed():
                raise without_curvature(f"{symbol} is")

    def _refuse_impossible(self) -> None:
        """Refuse a condition on an average that has another value whatever the parameters."""
        for declared, closed in zip(self.system.fixed, self.fixed_equations, strict=True):
            if closed.difference.is_number and closed.difference != 0:
                raise DeclarationError(
                    f"The condition {declared} cannot hold: {declared.lhs} is {closed.lhs} in this theory, whatever "
                    "the values.",
                    "conditions that the load, or a parameter of the problem, can meet",
                    "a parameter that acts on it, such as -K*Sum(w[i], (i, 1, N)) in the objective for the mean",
                )

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self) or name not in (*self.PARTS, "memory"):
            raise AttributeError(
                f"A theory is read-only: {name} cannot be set. Derive a changed declaration anew; "
                "theory.solve({...}) takes values."
            )
        super().__setattr__(name, value)

    def replace(self, **parts: Any) -> Self:
        """Return a theory of which some parts are others; nothing that was computed of the old ones is kept."""
        new = object.__new__(type(self))
        vars(new).update({name: getattr(self, name) for name in self.PARTS} | parts, memory={})
        return new

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs: what is remembered is found again there."""
        return vars(self) | {"memory": {}}

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """What the verbs claimed, kind by kind."""
        return self.claimed()

    @property
    def positive(self) -> tuple[Expr, ...]:
        """The denominators that were taken as positive: of laws whose sites are all alike, in order parameters."""
        return positive_parts(self.inserted)

    def assumed(self) -> tuple[Any, ...]:
        """The inequalities that the derivation assumed, at the mean self-couplings."""
        tied = {e for f in self.system.fields for e in f.coupling.family.moments[1:] if not e.is_number}
        bounded = [GreaterThan(1 - e**2, 0, evaluate=False) for e in sorted(tied, key=str)]
        found = [*assumed(self.inserted), *self.decided, *bounded]
        for label in (q for q in self.system.quenched if q.given is not None):
            values = label.values if label.low is None else [label.at_site()]
            found = list(dict.fromkeys(c.xreplace({label.at_site(): value}) for c in found for value in values))
            if label.low is not None:  # what is summed of its values is all of them
                drawn = LabelledEnsemble(self.inserted[label.slots[0]].at_labels, (label,))
                found.append(StrictGreaterThan(drawn.whole(label), MOST_OF_ALL))
        return tuple(c for c in found if c != S.true)

    @property
    def branches(self) -> tuple[Self, ...]:
        """The theories in which each condition that makes a pair with a variable holds as an equality, or idles."""
        if "branches" not in self.memory:
            open_ = any(p is not None for p in self.system.partners) and not self.decided
            parts = alternatives(self.system, self.closures, self.global_equations) if open_ else ()
            self.memory["branches"] = tuple(self.replace(**some) for some in parts) or (self,)
        return self.memory["branches"]

    @property
    def objective(self) -> Expr:
        """The objective of a declared convex problem over N, as an observable in the words of the declaration.

        ``solution[theory.objective]`` is ``solution.objective``; ``theory.compare(sim, [theory.objective])`` compares
        it with finite instances; ``theory.closed_form(theory.objective)`` writes it in the parameters, where that is
        possible.  The section "The minimum" of the derivation has it as a function of the order parameters.

        Raises
        ------
        UnsupportedLaw
            For a system of equations, which minimizes nothing.
        """
        return objective_of(self.system)

    @property
    def free_energy(self) -> Expr:
        """The free energy of a Gibbs measure over N, as an observable: ``solution[theory.free_energy]``.

        Finite instances whose weights are summed have the same number, ``sim.free_energy``. Of the lowest minimum it is
        the energy.

        Raises
        ------
        UnsupportedLaw
            For states that do not fluctuate, and where the weights of sites have no sum that is written down.
        """
        return free_energy_of(self.system, self.inserted)

    @property
    def entropy(self) -> Expr:
        """The entropy of a Gibbs measure over N, as an observable: ``solution[theory.entropy]``.

        Of discrete states it is the logarithm of a number of states: where it is negative, there are none, and the
        assumption that the measure is one state is wrong, whatever the stability says. Of the lowest minimum it is the
        limit at zero temperature, minus infinity where fields are held at a kink or an edge.

        Raises
        ------
        UnsupportedLaw
            As :attr:`free_energy`.
        """
        return entropy_of(self.system, self.inserted)

    @property
    def sites(self) -> dict[SiteIndex, SiteView]:
        """What the theory says of the sites of each kind, by their index."""
        return {kind.index: SiteView(site) for kind, site in self.inserted.items()}

    @property
    def feature(self) -> SiteView:
        """The theory of a feature site."""
        return self.sites[FEATURE.index]

    @property
    def datum(self) -> SiteView:
        """The theory of a datum site."""
        return self.sites[DATUM.index]

    @property
    def equations(self) -> list[Equation]:
        """The closed system; of states that move, with the laws of the sites whose paths are averaged over."""
        laws = [] if self.system.time is None else [*laws_of_motion(self.inserted), *shared_laws(self.system)]
        return laws + [Equation(s, v) for s, v in self.closures.items()] + self.global_equations + self.fixed_equations

    @property
    def unknowns(self) -> list[Symbol]:
        """Order parameters and global variables; one of the parameters more for each fixed condition."""
        return [*self.order_parameters, *self.system.globals]

    @cached_property
    def units(self) -> dict[Symbol, Expr]:
        """Each global variable by its value in units of the standard deviation of the field it shifts."""
        out = {}
        for g in self.system.globals:
            scale: Expr = S.One
            for site in self.inserted.values():
                if any(e.difference.has(g) for e in site.law.equations):
                    eta = site.problem.inner().eta
                    variance = site.covariance[eta, eta]
                    scale = S.One if variance.has(SiteQuantity) else sqrt(diagonal(variance))
            known = {"positive": True} if g.is_positive else {"nonnegative": g.is_nonnegative}
            out[g] = OrderParameter(f"{g.name}_hat", **known) * scale
        return out

    @cached_property
    def scaled_unknowns(self) -> tuple[Symbol, ...]:
        """Order parameters, and the global variables in units of their fields: what is solved for."""
        hats = [next(s for s in v.atoms(OrderParameter) if s.name == f"{g.name}_hat") for g, v in self.units.items()]
        return (*self.order_parameters, *hats)

    def _independent(self) -> tuple[list[Equation], dict[Symbol, Expr]]:
        """The closed system without the unknowns that are others from the start, but for parameters, and those."""
        same = multiples(self.closures, self.system.parameters)
        return [e for e in self.equations if e.lhs not in same], same

    def _eliminate(self, last: tuple[Symbol, ...]) -> Closed:
        if self.system.time is not None:
            raise UnsupportedLaw(
                "The equations of states that move are solved forward in time: there is nothing to eliminate.",
                "theory.evolve(values, until=...)",
            )
        equations, same = self._independent()
        exprs = [e.difference.xreplace(self.units) for e in equations]
        if any(e.has(JointAverage) for e in exprs):  # what stands inside of a law is not put into it
            exprs = [e.xreplace(same) for e in exprs]
            return Closed(dict(same), exprs, list(range(len(exprs))), positive=self.positive)
        return eliminate(exprs, self.scaled_unknowns, last, same, self.positive)

    @cached_property
    def gains(self) -> Gains:
        """How far a small change of all fields spreads from kind to kind: what decides the stability.

        Raises
        ------
        UnsupportedLaw
            For the naive analysis, and for laws whose fields are vectors.
        """
        if self.system.time is not None:
            raise UnsupportedLaw(
                "The stability of states that move is not derived.", "theory.evolve(values, until=...)"
            )
        if self.is_naive:
            raise UnsupportedLaw("The naive analysis has no stability condition.", "the cavity theory")
        return gains(self.system, self.inserted)

    def remaining(self, closed: Closed) -> list[Equation]:
        """The equations of the closed system that elimination has left over, as they were."""
        equations, _ = self._independent()
        return [equations[k] for k in closed.origins]

    @cached_property
    def reduced(self) -> Closed:
        """The closed system after elimination of the order parameters."""
        return self._eliminate(())

    @cached_property
    def reduced_with_load(self) -> Closed:
        """The closed system after elimination of the order parameters and of the load alpha."""
        return self._eliminate((alpha,))

    def closed_form(self, symbol: Any, *, roots: bool = True) -> Expr:
        """Return an unknown as an explicit expression in the parameters.

        Parameters
        ----------
        symbol : Symbol or observable
            The load ``alpha`` (where a fixed condition determines it), an order parameter, a global, or any
            observable.
        roots : bool
            Whether a root of a quadratic equation counts as explicit.

        Raises
        ------
        NoClosedForm
            If equations are left that only a root finder solves; they are in ``.remaining``.
        """
        return closed_form(self, symbol, roots=roots)

    # -- display ---------------------------------------------------------------------------------

    @property
    def introduced(self) -> dict[Expr, Expr]:
        """What variables stand for that order parameters are written in, and that the declaration does not have."""
        known = {q.family for meaning in self.order_parameters.values() for q in site_quantities(meaning)}
        return {q: meaning for q, meaning in self.system.brought.items() if q.family in known}

    def __str__(self) -> str:
        head = "Naive mean-field theory" if self.is_naive else "Cavity theory"
        lines = [f"{head}{' of ' + self.system.name if self.system.name else ''}"]
        lines += [f"  {s} = {plain(m)}" for s, m in {**self.introduced, **self.order_parameters}.items()]
        closed, named = with_names(self, self.equations)
        lines += ["  closed by", *(f"  {e}" for e in closed)]
        laws = [e for _, law in named for e in law.equations()]
        lines += ["  with, at each cavity field", *(f"  {e}" for e in laws)] if laws else []
        return "\n".join(lines)

    __repr__ = __str__
