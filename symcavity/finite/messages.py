"""Message passing on one instance: the cavity method at work, for any kinds of sites.

Each site solves its own declared law at its cavity field with its self-coupling.  The cavity field is what the site
hears without what comes back of its own last emission, which is the self-coupling times this emission.  Nothing of
a derivation is used here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from symcavity.errors import NotConverged
from symcavity.finite.affine_laws import MOST_PAIRS, SiteStates
from symcavity.finite.compiled import Args
from symcavity.finite.coupled import tie
from symcavity.finite.draw import stream
from symcavity.finite.instance import Instance, Residuals, State, largest
from symcavity.finite.single_site import SingleSites, unsolved
from symcavity.finite.sums_met import SumsMet
from symcavity.finite.warm_sites import WarmSites
from symcavity.finite.warm_squares import warm_sites
from symcavity.method.messages import conditions_met, first_responses
from symcavity.method.mirrors import first_globals, first_squares
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.system import System

_ROUNDS, _SETTLED, _STILL, _DAMPED = 80, 2, 1e-2, 0.6
_JUMP = 1e-2  # what is sent moves by less where a field changes its sign that is next to nothing
_AWAY, _WHISPER, _FIRST = 1e9, 1e-6, 13  # a field of nothing decides which side of a kink a site takes


@dataclass(frozen=True)
class Way:
    """One way on which a site hears itself: field m, by its emission k, through the sites of another kind.

    Attributes
    ----------
    m, k : int
        The field, and the emission that comes back in it.
    sender : Kind
        Those who answer.
    column, heard : int
        Which of their emissions the field sums, and in which of their fields they hear the site.
    weights : ndarray
        The products of the couplings on the way out and back, or their means (sites, senders); one row or column
        where all are alike.
    """

    m: int
    k: int
    sender: Kind
    column: int
    heard: int
    weights: np.ndarray

    def echo(self, responses: np.ndarray) -> np.ndarray:
        """The self-couplings, from the local responses of the senders (senders, emissions, fields)."""
        told = responses[:, self.column, self.heard]
        return np.asarray(self.weights @ told if self.weights.shape[1] > 1 else self.weights[:, 0] * np.sum(told))


class Messages:
    """The messages of an instance, one step after the other.

    Parameters
    ----------
    system : System
        The system.
    instance : Instance
        Its instance.
    first : dict, optional
        The first responses of kinds that keep still in the first step; by default all take part in it, and what has
        not spoken yet does not respond.
    averaged : bool
        Whether what comes back is counted by the means of products of couplings in place of the products: nearly as
        good where sites are many, and quick.

    Attributes
    ----------
    state : State
        The variables as they were solved last.
    answers : dict
        What the sites of each kind did last.
    cavity, self_coupling : dict
        The fields and the self-couplings at which they did it, (sites, m) and (sites, m, k).
    """

    def __init__(
        self, system: System, instance: Instance, first: dict[Kind, float] | None = None, *, averaged: bool = False
    ) -> None:
        self.system, self.instance, self.laws = system, instance, instance.system.laws
        self.averaged = averaged
        self.sites: Mapping[Kind, SingleSites | WarmSites] = (
            warm_sites(system, instance)
            if system.weights
            else {k: SingleSites(law, instance.quenched, instance.constants) for k, law in self.laws.items()}
        )
        met = conditions_met(system)
        self.conditions = {k: SumsMet(system, instance, self.sites, k, met[k]) for k in self.laws}
        self._heard = {
            k: [(instance.matrix(f), f.sender, instance.system.column(f)) for f in law.fields]
            for k, law in self.laws.items()
        }
        self._products: dict[tuple[RandomField, RandomField], np.ndarray] = {}
        self._ways = {kind: list(self._ways_back(kind)) for kind in self.laws}
        self._given: dict[tuple[Kind, int], np.ndarray] = {}
        self.begin(first or {})

    def begin(self, first: dict[Kind, float]) -> None:
        """Forget all steps; ``first`` is as for the class."""
        self.state = self.instance.start()
        if self.system.weights:
            self.state.shared = self._first_globals()
        self.answers: dict[Kind, SiteStates] = {}
        self.cavity: dict[Kind, np.ndarray] = {}
        self.self_coupling: dict[Kind, np.ndarray] = {}
        self.sent = {kind: self.instance.emissions(kind, self.state) for kind in self.laws}
        self._told = {(s, h): np.zeros_like(self.sent[s]) for s in self.laws for h in self.laws}
        self.still = first
        self._responses = {kind: self._first(kind, first.get(kind, 0.0)) for kind in self.laws}

    def _first_globals(self) -> np.ndarray:
        """Where global variables begin: in units of the states, whose squares are averaged where nothing is heard."""
        known = dict(first_globals(self.system))
        squares = first_squares(self.system, conditions_met(self.system))
        still = np.array([0.0 if g in squares else value for g, value in known.items()])
        for g, (kind, square) in squares.items():
            site = self.sites[kind]
            assert isinstance(site, WarmSites)  # noqa: S101 - mirror images are those of measures
            found = float(np.mean(site.summed([square], site.unmoved(still), [])[0]))
            known[g] = np.sqrt(found) if found > 0 and np.isfinite(found) else 1.0
        return np.array([*known.values()])

    def _ways_back(self, kind: Kind) -> Iterator[Way]:
        """Where couplings out and back are correlated: elsewhere what comes back vanishes like one over root N.

        A product of couplings has their covariance as its mean; taken as it is, it leaves less to finite sizes.  At a
        temperature a site is none of its own others.
        """
        drawn, compiled, law = self.instance, self.instance.system, self.laws[kind]
        numbers = dict(zip(compiled.constants, drawn.constants, strict=True))
        for m, (k, g) in product(law.moving, enumerate(law.heard_in)):
            f, other = law.fields[m], self.laws[g.hearer]
            heard = other.fields.index(g)
            if f.sender != g.hearer or heard not in other.moving or (value := tie(f, g).xreplace(numbers)) == 0:
                continue
            if self.averaged:
                self._products[f, g] = float(value) * np.sqrt(drawn.variances(f) * drawn.variances(g).T)
            elif (g, f) not in self._products:
                self._products[f, g] = drawn.matrix(f) * drawn.matrix(g).T
            weights = self._products[f, g] if (f, g) in self._products else self._products[g, f].T
            if self.system.weights and f.sender == kind:
                weights = weights - np.diag(np.diag(weights))
            yield Way(m, k, f.sender, compiled.column(f), heard, weights)

    def _first(self, kind: Kind, response: float) -> np.ndarray:
        """How what a kind sends answers to its fields, where all variables answer alike to the sources."""
        law, n = self.laws[kind], self.instance.size[kind]
        args = self.instance.arguments(kind, self.state, np.zeros((n, law.m)))
        site = self.sites[kind]
        factors = (
            site.factors(self.state.shared)
            if isinstance(site, WarmSites)
            else -law.hears(args, n)[:, law.carrier, range(law.m)]
        )
        return response * np.einsum("nok,nm->nom", law.emits(args, n), factors)

    def step(self, share: float = 1.0) -> float:
        """Let the sites of each kind in turn solve their laws; return how much what they send has moved.

        Parameters
        ----------
        share : float
            How much is made of the moves of what is sent, and of the global variables.

        Raises
        ------
        NotConverged
            If a law has no solution at some cavity field, or messages run away.
        """
        moved, shared = 0.0, self.state.shared.copy()
        for kind in (k for k in self.laws if k not in self.still or self.answers):
            moved = max(moved, self._update(kind, share))
        if shared.size:
            moved = max(moved, float(np.linalg.norm(self.state.shared - shared) / (np.linalg.norm(shared) or 1.0)))
        return moved

    def _update(self, kind: Kind, share: float) -> float:
        law, n, shared = self.laws[kind], self.instance.size[kind], self.state.shared.copy()
        eta = self._fields(kind)
        quiet = [m for m in law.moving if not eta[:, m].any()]
        if quiet:
            eta[:, quiet] = _WHISPER * stream(self.instance.seed, _FIRST).standard_normal((n, len(quiet)))
        coupling = self._without_echo(kind, eta, {way.sender: self._told[kind, way.sender] for way in self._ways[kind]})
        for sender in dict.fromkeys(f.sender for f in law.fields):
            told = self._told[sender, kind]  # what stands of it in what is sent, where moves are made by a share
            self._told[sender, kind] = told + share * (self.sent[sender] - told)
        turned = None
        if quiet:  # where a law jumps, no mean response is
            quietly = np.where(np.isin(np.arange(law.m), quiet), -eta, eta)
            turned = self._solved(kind, quietly, coupling)
        answer = self._solved(kind, eta, coupling)
        now = answer.sent
        if not np.all(answer.found):
            raise unsolved(law, answer)
        if turned is not None and np.any(np.abs(turned.sent - now) > _JUMP * (1 + np.abs(now))):
            raise NotConverged(f"The messages of the {kind.sites} jump at zero field.", best=self.state)
        if not np.all(np.abs(now) < _AWAY):
            raise NotConverged(f"The messages of the {kind.sites} grow without bound.", best=self.state)
        self.answers[kind], self.cavity[kind], self.self_coupling[kind] = answer, eta, coupling
        self.state.site[kind] = answer.z
        self.state.active = {**self.state.active, kind: answer.active}
        self._responses[kind] = answer.responses
        change = now - self.sent[kind]
        self.sent[kind] = self.sent[kind] + share * change
        self.state.shared = shared + share * (self.state.shared - shared)
        return float(np.linalg.norm(change) / (np.linalg.norm(now) or 1.0))

    def _without_echo(self, kind: Kind, eta: np.ndarray, told: Mapping[Kind, np.ndarray]) -> np.ndarray:
        """Take out of fields what comes back of what was told to each kind of sender; return the self-couplings.

        At a temperature a site that stands in its own field meets its state there, not its mean.
        """
        coupling = np.zeros((*eta.shape, self.laws[kind].out))
        own = self._heard[kind] if self.system.weights else []
        for m, column, direct in ((m, c, np.diag(x)) for m, (x, sender, c) in enumerate(own) if sender == kind):
            coupling[:, m, column] += direct
            eta[:, m] -= direct * self.sent[kind][:, column]
        for way in self._ways[kind]:
            echo = way.echo(self._responses[way.sender])
            coupling[:, way.m, way.k] += echo
            eta[:, way.m] -= echo * told[way.sender][:, way.k]
        return coupling

    def residuals(self) -> Residuals:
        """How well the last state solves the equations of the instance.

        At a temperature these are those of Thouless, Anderson and Palmer: what each site sends is its mean at what
        it hears of all others now, its own answer taken out; and the conditions on sums of thermal means.
        """
        found = self.instance.residuals(self.state)
        if not self.system.weights:
            return found
        missed = 0.0
        for kind in self.laws:
            eta = self._fields(kind)
            coupling = self._without_echo(kind, eta, {way.sender: self.sent[kind] for way in self._ways[kind]})
            answer = self._solved(kind, eta, coupling, held=True)
            open_, _ = self.conditions[kind].missed(self.state, answer)
            missed = max(missed, largest(answer.sent - self.sent[kind], open_))
        return Residuals.largest([found, Residuals(missed, 0.0, 0.0)])

    def confirm(self) -> None:
        """Refuse first responses of a sign that sites, once they have heard something, do not have."""
        for kind, value in self.still.items():
            if np.vdot(self._responses[kind], self._first(kind, value)) < 0:
                raise NotConverged(f"The response of the {kind.sites} has changed its sign.", best=self.state)

    def _fields(self, kind: Kind) -> np.ndarray:
        """What the sites of a kind hear; sums of given parameters are taken once."""
        out = np.empty((self.instance.size[kind], self.laws[kind].m))
        for m, (couplings, sender, column) in enumerate(self._heard[kind]):
            if (kind, m) in self._given:
                out[:, m] = self._given[kind, m]
                continue
            out[:, m] = couplings @ self.sent[sender][:, column]
            if m not in self.laws[kind].moving:
                self._given[kind, m] = out[:, m].copy()
        return out

    def snapshot(self, share: float = 1.0) -> Snapshot:
        """Take a step, and keep what there is after it."""
        change = self.step(share)
        args = {kind: answer.args for kind, answer in self.answers.items()} if self.system.weights else {}
        return Snapshot(self.state.copy(), {kind: self.local(kind) for kind in self.laws}, change, args)

    def local(self, kind: Kind) -> np.ndarray:
        """The responses of the variables of each site to its own sources: (sites, variables, fields)."""
        if kind not in self.answers:
            law = self.laws[kind]
            return np.full((self.instance.size[kind], law.k, law.m), self.still.get(kind, 0.0))
        return self.answers[kind].moved[:, :, self.laws[kind].carrier]

    def _solved(self, kind: Kind, eta: np.ndarray, coupling: np.ndarray, *, held: bool = False) -> SiteStates:
        """What the sites of a kind do at their fields, with the conditions on sums over them."""
        return self.conditions[kind].solved(self.state, eta, coupling, self.answers.get(kind), held=held)


@dataclass(frozen=True)
class Snapshot:
    """What there is after a step.

    Attributes
    ----------
    state : State
    responses : dict
        By kind, the responses of the variables of each site to its own sources (sites, variables, fields).
    change : float
        How much the step has moved what is sent, relative to its size.
    args : dict
        At a temperature, by kind: at what each site is averaged.
    """

    state: State
    responses: dict[Kind, np.ndarray]
    change: float
    args: dict[Kind, Args] = field(default_factory=dict)


def started(
    system: System, instance: Instance, step: Callable[[Messages], Any] = Messages.step, *, averaged: bool = False
) -> tuple[Messages, list[Any]]:
    """Return the messages of an instance after two steps, and what the function that takes them returned.

    The sites of the first kind have heard nothing yet.  Where a law alone has no solution, some kinds, as few as will
    do, keep still in the first step, with responses -1 or 1: the first choice with which all sites get through both,
    and respond with the sign that was given to them.

    Raises
    ------
    NotConverged
        If there is none.
    """
    failure: NotConverged | None = None
    messages = Messages(system, instance, averaged=averaged)
    for first in first_responses(list(instance.system.laws)):
        messages.begin(first)
        try:
            trail = [step(messages), step(messages)]
            messages.confirm()
        except NotConverged as error:
            failure = failure or error
        else:
            return messages, trail
    assert failure is not None  # noqa: S101 - something has been tried
    raise failure


def message_passing(system: System, instance: Instance) -> State | None:
    """Return a state with likely branches, its variables still zero; None where this does not apply or settle.

    It is a start for exact methods, where laws are affine and the messages of two kinds of sites settle soon.

    Parameters
    ----------
    system : System
        The system.
    instance : Instance
        Its instance.
    """
    compiled = instance.system
    few = all(law.kp <= MOST_PAIRS for law in compiled.laws.values())
    if not (compiled.pair and few and compiled.affine) or compiled.globals:
        return None
    try:
        messages, _ = started(system, instance, averaged=True)
        before, settled = {kind: np.zeros(0) for kind in messages.laws}, 0
        for k in range(_ROUNDS):
            moved = messages.step(1.0 if k < _ROUNDS // 2 else _DAMPED)
            active = messages.state.active
            still = moved < _STILL and all(np.array_equal(active[kind], before[kind]) for kind in active)
            before, settled = {**before, **active}, settled + 1 if still else 0
            if settled == _SETTLED:
                return replace(instance.start(), active=active)
    except NotConverged:
        pass
    return None
