"""One more site: an instance, the same instance with one feature or one datum added, and what changed.

The insertion is the step that the cavity method is made of.  Here it is done, not argued: the fields of
the new site in the system without it, the reaction of the other side by its exact linear response, and
the new site's own law at that field, against the instance that was solved again with the site in it.
"""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass

import numpy as np

from symcavity.errors import NotConverged
from symcavity.finite.bipartite import OTHER
from symcavity.finite.compiled import CompiledLaw
from symcavity.finite.draw import coupling_law, stream
from symcavity.finite.given_values import draw_quenched
from symcavity.finite.instance import Instance, State
from symcavity.finite.minimum import solve_instance
from symcavity.finite.newton import linearise, slopes
from symcavity.finite.run import Setup
from symcavity.model.kinds import DATUM, FEATURE
from symcavity.model.quantities import Quenched

_PROBE, _NEWTON = 7, 60


@dataclass(frozen=True)
class Insertion:
    """What one insertion of a site shows; fields are numbered by m, what the site sends by k.

    Attributes
    ----------
    cavity_field : ndarray
        The fields that the site hears in the system without it (m).
    field : ndarray
        The fields that it hears in the system with it (m).
    self_coupling : ndarray
        ``x0^T R x0``: how each field reacts to what the site sends, by the exact response R (m, k).
    mean_self_coupling : ndarray
        The same averaged over the fresh couplings: the variance times the trace of R (m, k).
    variance : ndarray
        The variance of the cavity fields over the fresh couplings, the system being given (m).
    state : ndarray
        The variables of the site in the system with it.
    quenched : dict
        The site's own parameters.
    shared : ndarray
        The global variables in the system without the site.
    variance_within : ndarray
        The same with the states of the system with the site (m).
    shift, linear_shift : ndarray
        What the other sites send, after minus before (m, sites), and its prediction by linear response.
    """

    cavity_field: np.ndarray
    field: np.ndarray
    self_coupling: np.ndarray
    mean_self_coupling: np.ndarray
    variance: np.ndarray
    state: np.ndarray
    quenched: dict[Quenched, float]
    shared: np.ndarray
    shift: np.ndarray
    linear_shift: np.ndarray
    variance_within: np.ndarray


def extended(
    setup: Setup, instance: Instance, side: str
) -> tuple[Instance, list[np.ndarray], list[np.ndarray]]:
    """Return the instance with one site added, the fresh couplings, and their variances.

    Parameters
    ----------
    setup : Setup
        The laws that the new site's parameters and couplings are drawn from.
    instance : Instance
        The instance without the site; it is not changed.
    side : str
        The side of the new site, which becomes the last of its side.

    Returns
    -------
    tuple
        The larger instance, with the same constants (so that all couplings keep their variance); for each
        coupling the fresh row (or column), and its variance site by site.
    """
    grown = copy.copy(instance)
    law = coupling_law(setup.couplings) if isinstance(setup.couplings, str) else setup.couplings
    grown.size = {**instance.size, side: instance.size[side] + 1}
    grown.memory = {}
    grown.quenched = dict(instance.quenched)
    which = 0 if side == FEATURE else 1
    for k, q in enumerate(sorted(instance.quenched, key=lambda q: q.name)):
        if q.slots == (side,):
            rng, source = stream(instance.seed, _PROBE, which, 0, k), setup.values.quenched[q]
            given = isinstance(source, np.ndarray) and source.ndim == 1
            new = rng.choice(source, size=1) if given else draw_quenched(q, source, 1, rng)
            grown.quenched[q] = np.append(instance.quenched[q], new)
    grown.couplings, fresh, variances = [], [], []
    others = instance.size[OTHER[side]]
    for k, x in enumerate(instance.couplings):
        _, variance, quenched = instance.system.variances[k]
        columns = [grown.quenched[q][-1:] if q.slots == (side,) else grown.quenched[q] for q in quenched]
        spread = np.broadcast_to(np.asarray(variance(*columns, *instance.constants), dtype=float), (others,))
        drawn = np.asarray(law(stream(instance.seed, _PROBE, which, 1, k), (others,)), dtype=float)
        row = np.sqrt(spread) * drawn
        fresh.append(row)
        variances.append(spread)
        grown.couplings.append(
            np.concatenate([x, row[:, None]], axis=1)
            if side == FEATURE
            else np.concatenate([x, row[None, :]])
        )
    grown.source = {s: np.zeros((grown.size[s], instance.system.laws[s].ke)) for s in (FEATURE, DATUM)}
    return grown, fresh, variances


def insert(setup: Setup, task: tuple[str, int, int]) -> Insertion | None:
    """Solve an instance, add one site, solve again, and measure; None if either has no solution, or many.

    Parameters
    ----------
    setup : Setup
        The declaration and its values.
    task : tuple
        The side of the new site, the number of features, and the seed.
    """
    side, features, seed = task
    instance = setup.instance(features, seed)
    before = solve_instance(setup.system, instance, setup.method)
    if before.state is None or before.flat is not None:
        return None
    if not before.sharp:
        raise NotConverged(f"The instance with seed {seed} is degenerate.", hint="a generic instance")
    grown, fresh, variances = extended(setup, instance, side)
    after = solve_instance(setup.system, grown, setup.method)
    if after.state is None or after.flat is not None:
        return None
    return _measure(instance, grown, fresh, variances, side, before.state, after.state)


def _measure(
    instance: Instance,
    grown: Instance,
    fresh: list[np.ndarray],
    variances: list[np.ndarray],
    side: str,
    before: State,
    after: State,
) -> Insertion:
    system, other = instance.system, OTHER[side]
    law, heard = system.laws[side], system.which[side]
    sent = instance.emissions(other, before)  # what the other side sends to this one: (sites, m)
    sent_after = grown.emissions(other, after)
    own = grown.emissions(side, after)[-1]  # what the new site sends: (k)
    rows = np.stack([fresh[c] for c in heard], axis=1)
    spread = np.stack([variances[c] for c in heard], axis=1)
    reply = _replies(instance, before, other, [fresh[c] for c in system.which[other]])
    shift = np.stack([reply[k] for k in range(len(own))], axis=2)  # (sites, m, k)
    linear = shift @ own + _through_globals(instance, grown, before, after, side)
    mean = _mean_self_coupling(instance, before, side, variances)
    eta, heard_after = np.sum(rows * sent, axis=0), np.sum(rows * sent_after, axis=0)
    alone, together = np.sum(spread * sent**2, axis=0), np.sum(spread * sent_after**2, axis=0)
    return Insertion(
        eta,
        heard_after,
        np.einsum("nm,nmk->mk", rows, shift),
        mean,
        alone,
        after.site[side][-1].copy(),
        {q: float(grown.quenched[q][-1]) for q in law.quenched},
        before.shared.copy(),
        (sent_after - sent).T,
        linear.T,
        together,
    )


def _replies(instance: Instance, state: State, side: str, kicks: list[np.ndarray]) -> list[np.ndarray]:
    """Return what a side sends in response to kicks of its fields: for each field, (sites, emissions).

    ``kicks[k]`` is added to the k-th field of every site of the side.
    """
    at = slopes(instance, state, side)
    law, n = instance.system.laws[side], instance.size[side]
    rhs = {s: np.zeros((instance.size[s], instance.system.laws[s].k, len(kicks))) for s in (FEATURE, DATUM)}
    for k, kick in enumerate(kicks):
        rhs[side][:, : law.ke, k] = -at.hears[:, :, k] * kick[:, None]
    found = linearise(instance, state).solve(
        rhs[FEATURE], rhs[DATUM], np.zeros((instance.system.count, len(kicks)))
    )
    moved = found[0 if side == FEATURE else 1].reshape(n, law.k, len(kicks))
    return [(at.emits @ moved[:, :, k : k + 1])[:, :, 0] for k in range(len(kicks))]


def _through_globals(
    instance: Instance, grown: Instance, before: State, after: State, side: str
) -> np.ndarray | float:
    """Return the shift that the new site causes through the global conditions that it takes part in."""
    rows, body, _, _ = instance.system.conditions[side]
    if not rows:
        return 0.0
    args = grown.arguments(side, after, grown.fields(side, after))
    rhs = np.zeros((instance.system.count, 1))
    rhs[rows, 0] = -body(args, grown.size[side])[-1]
    blank = [np.zeros((instance.size[s], instance.system.laws[s].k, 1)) for s in (FEATURE, DATUM)]
    other = OTHER[side]
    moved = linearise(instance, before).solve(blank[0], blank[1], rhs)[0 if other == FEATURE else 1]
    return (slopes(instance, before, other).emits @ moved)[:, :, 0]


def _mean_self_coupling(
    instance: Instance, state: State, side: str, variances: list[np.ndarray]
) -> np.ndarray:
    """Return the variance of the fresh couplings times the local responses of the other side, summed."""
    system, other = instance.system, OTHER[side]
    law, n = system.laws[other], instance.size[other]
    out = np.zeros((system.laws[side].m, law.m))
    at, linear = slopes(instance, state, other), linearise(instance, state)
    diagonal = np.arange(n)
    for k in range(law.m):
        heard = [m for m, c in enumerate(system.which[side]) if c == system.which[other][k]]
        if not heard:
            continue
        rhs = {s: np.zeros((instance.size[s], system.laws[s].k, n)) for s in (FEATURE, DATUM)}
        rhs[other][diagonal, : law.ke, diagonal] = -at.hears[:, :, k]
        moved = linear.solve(rhs[FEATURE], rhs[DATUM], np.zeros((system.count, n)))[
            0 if other == FEATURE else 1
        ]
        local = np.einsum("nmk,nk->nm", at.emits, moved[diagonal, :, diagonal])
        for m in heard:
            out[m, k] = np.sum(variances[system.which[side][m]] * local[:, m])
    return out


def single_site(
    law: CompiledLaw,
    cavity_field: np.ndarray,
    self_coupling: np.ndarray,
    quenched: dict[Quenched, np.ndarray],
    shared: np.ndarray,
    constants: list[float],
    start: np.ndarray | None = None,
) -> np.ndarray:
    """Solve the declared law of one site with the field ``eta + F * sent``, for many sites at once.

    Parameters
    ----------
    law : CompiledLaw
        The law.
    cavity_field : ndarray
        eta, of shape (sites, m).
    self_coupling : ndarray
        F, of shape (sites, m, k).
    quenched : dict
        The sites' own parameters.
    shared : ndarray
        The globals, of shape (sites, g).
    constants : list of float
        The parameters.
    start : ndarray, optional
        Where the search begins, of shape (sites, variables); what it finds has to obey the law in any case.

    Returns
    -------
    ndarray
        The variables (sites, variables).

    Raises
    ------
    NotConverged
        If no branch of the law fits at some site.
    """
    n = len(cavity_field)
    answer, found = np.full((n, law.k), np.nan), np.zeros(n, dtype=bool)

    def arguments(z: np.ndarray) -> list[object]:
        tail = [*(quenched[q] for q in law.quenched), *constants]
        blank = np.zeros((0 if law.sets is None else len(law.sets.symbols), n))
        sent = law.emission([*z.T, *np.zeros((law.m, n)), *shared.T, *tail, *blank], n)
        fields = cavity_field + np.einsum("nmk,nk->nm", self_coupling, sent)
        sets = () if law.sets is None else law.sets.columns(z).T
        return [*z.T, *fields.T, *shared.T, *tail, *sets]

    for branch in itertools.product((True, False), repeat=law.kp):
        active = np.broadcast_to(np.array(branch, dtype=bool), (n, law.kp))
        z = np.zeros((n, law.k)) if start is None else start.copy()
        for _ in range(_NEWTON):
            args = arguments(z)
            value = np.concatenate(
                [law.residual(args, n), np.where(active, law.p(args, n), law.q(args, n))], axis=1
            )
            pairs = np.where(active[:, :, None], law.p_slopes(args, n), law.q_slopes(args, n))
            total = law.slopes(args, n) + law.hears(args, n) @ self_coupling @ law.emits(args, n)
            matrix = np.concatenate([total, pairs], axis=1)
            usable = np.abs(np.linalg.det(matrix)) > 1e-14
            step = np.zeros_like(z)
            step[usable] = np.linalg.solve(matrix[usable], -value[usable][:, :, None])[:, :, 0]
            length = np.minimum(1.0, 10.0 / np.maximum(1e-300, np.max(np.abs(step), axis=1, initial=0)))
            z = z + (step if law.affine else length[:, None] * step)
            if np.max(np.abs(step), initial=0) < 1e-12 * (1 + np.max(np.abs(z), initial=0)):
                break
        args = arguments(z)
        value = np.concatenate(
            [law.residual(args, n), np.where(active, law.p(args, n), law.q(args, n))], axis=1
        )
        size = 1 + np.max(np.abs(z), axis=1, initial=0)
        fits = np.max(np.abs(value), axis=1, initial=0) < 1e-8 * size
        for free in (law.p(args, n), law.q(args, n)):
            fits &= np.min(free, axis=1, initial=0) > -1e-9 * size
        answer[fits & ~found] = z[fits & ~found]
        found |= fits
    if not np.all(found):
        raise NotConverged(
            f"The law of a single {law.kind} site has no solution at {int(np.sum(~found))} of {n} fields.",
            best=answer,
            hint="larger sizes: the measured self-coupling must have the sign that makes the site stable",
        )
    return answer


__all__ = ["Insertion", "extended", "insert", "single_site"]
