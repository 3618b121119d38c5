"""The names of quantities and the ranges of their components: how they are read, and how they are printed."""

from __future__ import annotations

from itertools import chain, count
from typing import Any

from sympy import Symbol, Tuple

from symcavity.errors import DeclarationError
from symcavity.model.exact import exact
from symcavity.model.kinds import N, P, alpha, i, mu

RESERVED = {"N": N, "P": P, "alpha": alpha, "i": i, "mu": mu}

ALIASES = {"lam": "lambda", "eps": "varepsilon"}

_GREEK = frozenset(
    (
        *("alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "kappa", "lambda"),
        *("mu", "nu", "xi", "pi", "rho", "sigma", "tau", "phi", "psi", "chi", "omega"),
        *("Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Phi", "Psi", "Omega"),
    )
)


def latex_name(name: str) -> str:
    """LaTeX of a family's name: Greek words become letters, digits and tails become subscripts."""
    if name.isdigit():
        return name
    if "" in name.split("_"):  # an underscore with nothing on one side has no place in a formula
        return f"\\mathrm{{{name.replace('_', chr(92) + '_')}}}"
    head, _, tail = name.partition("_")
    base = head.rstrip("0123456789")
    digits = head[len(base) :]
    below = ",".join(map(_letter, filter(None, (digits, *tail.split("_")))))
    return f"{_letter(base)}_{{{below}}}" if below else _letter(base)


def _letter(word: str) -> str:
    """LaTeX of one part of a name: a Greek letter, a letter or a number as such, and words upright."""
    return f"\\{word}" if word in _GREEK else word if len(word) == 1 or word.isdigit() else f"\\mathrm{{{word}}}"


def family_name(name: Any, word: str) -> str:
    """Read the name of a family, refusing what is no identifier or is taken by the package."""
    if not isinstance(name, str) or not name.isidentifier():
        raise DeclarationError(f"The name of a {word} is {name!r}.", "a Python identifier such as 'w' or 'lambda'")
    refuse_unprintable(name, f"The name of a {word}")
    if name in RESERVED:
        raise DeclarationError(
            f"The name of a {word} is {name!r}, which is taken: N and P are the numbers of sites, alpha is P/N, "
            "i and mu are their indices.",
            "any other name",
        )
    return ALIASES.get(name, name)


def refuse_unprintable(name: str, what: str) -> None:
    """Refuse text that no format can print: control characters, and two underscores at an end."""
    if not name.isprintable():
        raise DeclarationError(f"{what} is {name!r}, which holds control characters.", "text that can be printed")
    if name.startswith("__") or name.endswith("__"):
        raise DeclarationError(
            f"{what} is {name!r}: names that begin or end with two underscores are Python's own.",
            "letters, digits, and underscores between them",
            name.strip("_") or "w",
        )


def read_text(text: Any, what: str) -> str:
    """Read a title or a citation: text without control characters, line breaks apart."""
    if not isinstance(text, str) or not all(c.isprintable() or c in "\n\t\xa0\u2009\u202f" for c in text):
        raise DeclarationError(f"{what} is {text!r:.80}.", "text without control characters")
    return text


def fresh_name(taken: set[str], *names: str) -> str:
    """The first of some names that is not taken, or the last with a number behind it; it is taken from then on."""
    every = chain(names, (f"{names[-1]}_{k}" for k in count(2)))
    taken.add(chosen := next(name for name in every if name not in taken))
    return chosen


def component_range(components: Any) -> Tuple:
    """Read the range of a component index; empty where there is none."""
    if components is None or components == ():
        return Tuple()
    entries = tuple(components) if isinstance(components, tuple | list | Tuple) else ()
    if len(entries) != 3 or not isinstance(entries[0], Symbol) or entries[0] in (i, mu):
        raise DeclarationError(
            f"The components are {components!r}.",
            "a range (a, first, last) of an index symbol other than i and mu",
            'components=(a, 1, D + 1); a variance is given by its word: Coupling("x", variance=...)',
        )
    index, low, high = entries[0], exact(entries[1], "a component range"), exact(entries[2], "a component range")
    if (high - low).is_negative:
        raise DeclarationError(f"The components run from {low} down to {high}.", "a range (a, first, last)")
    if (high - low).is_integer is False or low.is_integer is False:
        raise DeclarationError(f"The components run from {low} to {high}.", "integers (a, first, last)")
    if {N, P, alpha, i, mu} & (high.free_symbols | low.free_symbols):
        raise DeclarationError(
            f"The components run from {low} to {high}: their number depends on the numbers of sites.",
            "a number of components that stays fixed as N and P grow, such as D + 1",
            "a quantity with as many entries as there are sites is a variable of the sites: w[i], xi[mu]",
        )
    return Tuple(index, low, high)
