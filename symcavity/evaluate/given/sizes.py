"""How many sites there are of each kind: numbers, and their ratios to N, completed from each other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sympy import Symbol

from symcavity.errors import ValuesError
from symcavity.model.kinds import FEATURE, Kind, N, SiteCount, sizes_compared


def sized(kinds: Sequence[Kind]) -> list[Kind]:
    """The kinds that are counted in units of N."""
    return [kind for kind in kinds if kind != FEATURE]


def ratio_named(key: Any) -> Any:
    """The symbol of a ratio that a user writes as ``K/N``; anything else as it is."""
    pair = sizes_compared(key)
    return pair[0].ratio if pair and pair[1] == FEATURE else key


def resolved(ratios: Mapping[Kind, Any], compared: Mapping[tuple[Kind, Kind], Any]) -> dict[Kind, Any]:
    """Return the numbers of sites over N, by kind, from some of them and from comparisons such as ``K/P``.

    Raises
    ------
    ValuesError
        If they contradict each other, or do not lead to N.
    """
    known: dict[Kind, Any] = {**ratios, FEATURE: 1}
    left = dict(compared)
    while found := next((pair for pair in left if (pair[0] in known) != (pair[1] in known)), None):
        (over, under), share = found, left.pop(found)
        if under in known:
            known[over] = share * known[under]
        else:
            known[under] = known[over] / share
    for (over, under), share in left.items():
        if over not in known:
            raise ValuesError(
                f"{over.size}/{under.size} = {share} is given, and neither {over.size} nor {under.size} in units of N.",
                "one ratio to N for each kind of site, or to a size that has one",
                f"{{{under.size}/N: 1, {over.size}/{under.size}: {share}}}; where there are no features N is a unit",
            )
        if abs(known[over] - share * known[under]) > 1e-12 * abs(known[over]):
            raise ValuesError(
                f"{over.size}/{under.size} = {share} does not fit the other ratios.",
                "one ratio for each kind of site, such as K/N",
            )
    del known[FEATURE]
    return known


def completed(kinds: Sequence[Kind], env: dict[Any, Any]) -> dict[Any, Any]:
    """Complete the sizes and ratios in an environment from each other."""
    for kind in sized(kinds):
        if N not in env and kind.ratio in env and kind.size in env:
            env[N] = env[kind.size] / env[kind.ratio]
    for kind in sized(kinds):
        if N not in env:
            continue
        if kind.size in env:
            env.setdefault(kind.ratio, env[kind.size] / env[N])
        elif kind.ratio in env:
            env[kind.size] = env[kind.ratio] * env[N]
    return env


def complete(
    kinds: Sequence[Kind], plain: Mapping[Symbol, Any], lengths: Mapping[SiteCount, Any], needed: Collection[SiteCount]
) -> dict[Symbol, Any]:
    """Complete the sizes that a user gave, and the lengths of arrays over the sites, from each other.

    Parameters
    ----------
    kinds : sequence of Kind
        The kinds of the system.
    plain : mapping
        The values of a call by symbol; sizes and ratios among them.
    lengths : mapping
        The length of arrays, by the size that it stands for.
    needed : collection
        The sizes that stand in the equations themselves.

    Raises
    ------
    ValuesError
        If they contradict each other, or a size is missing that the equations contain.
    """
    others = sized(kinds)
    own = {N, *(kind.size for kind in others), *(kind.ratio for kind in others)}
    sizes = {s: v for s, v in plain.items() if s in own}
    for size, length in lengths.items():
        sizes.setdefault(size, length)
    for kind in others:
        both = {N, kind.size}
        if (both <= set(plain) or (needed and both <= set(sizes))) and sizes[N]:
            _add_ratio(sizes, kind)
    if not any(kind.ratio in sizes for kind in others) and N in sizes:
        # arrays on both ends of a coupling are samples of laws: their lengths give no load
        for kind in others:
            if kind.size in sizes:
                for size in {N, kind.size} - set(plain):
                    sizes.pop(size, None)
    for kind in others:
        if kind.ratio in sizes and kind.size in sizes:
            sizes.setdefault(N, sizes[kind.size] / sizes[kind.ratio])
    for kind in others:
        if kind.ratio in sizes and N in sizes:
            sizes.setdefault(kind.size, sizes[kind.ratio] * sizes[N])
    if missing := sorted((s for s in needed if s not in sizes), key=str):
        raise _incomplete(others, missing, needed)
    if not needed and not plain.keys() & {N, *(kind.size for kind in others)}:
        # the load is given: arrays are samples of laws, and their lengths are no sizes of the limit
        return {s: v for s, v in sizes.items() if not isinstance(s, SiteCount)}
    return sizes


def _add_ratio(sizes: dict[Symbol, Any], kind: Kind) -> None:
    """The ratio of two sizes that are given, which has to be the one that is given."""
    ratio = sizes[kind.size] / sizes[N]
    if sizes.setdefault(kind.ratio, ratio) != ratio:
        raise ValuesError(f"{kind.ratio} = {sizes[kind.ratio]}, but {kind.size}/N = {ratio}.", "values that agree")


def _incomplete(kinds: Sequence[Kind], missing: Sequence[SiteCount], needed: Collection[SiteCount]) -> ValuesError:
    every = " and ".join(map(str, sorted(needed, key=str)))
    ratios = ", ".join(["N", *(str(kind.size) for kind in kinds), *(str(kind.ratio) for kind in kinds)])
    return ValuesError(
        f"The equations contain the sizes {every}, and {' and '.join(map(str, missing))} "
        f"{'are' if len(missing) > 1 else 'is'} not given.",
        f"enough of {ratios} (N follows from arrays over the features)",
        "{P: 100, N: 200}; terms of one order, if the limit of many sites is meant: sums over all sites, or means, "
        "and couplings of variance 1/N, or sums over them divided by sqrt(N)",
    )
