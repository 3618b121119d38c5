"""Kinds of sites: their index, their number, and how their index is printed.

Features and data come with the package; a declaration adds others with :func:`Sites`.  Nothing in the
engine knows how many kinds there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sympy import Expr, S, Symbol, sqrt

from symcavity.errors import DeclarationError
from symcavity.model.atoms import NamedAtom, entry


class _OfKind(Symbol):
    """A symbol that belongs to a kind of site; never equal to a user's symbol of the same name."""

    __slots__ = ("_of", "kind")
    _of: str
    kind: Kind

    def __new__(cls, name: str, *, of: str) -> Any:
        """Return a new symbol; ``of`` is the name of its kind, which enters its identity."""
        symbol = Symbol.__xnew__(cls, name, integer=True, positive=True)
        symbol._of = of  # noqa: SLF001 - its own slot
        return symbol

    def _hashable_content(self) -> tuple[Any, ...]:
        return (*super()._hashable_content(), self._of)

    def __reduce__(self) -> Any:
        return _symbol_of, (self.kind, type(self).__name__)

    def __reduce_ex__(self, _protocol: Any) -> Any:
        return self.__reduce__()


class SiteIndex(_OfKind):
    """The canonical index of a kind of site, such as ``i`` or ``mu``."""

    __slots__ = ()


class SiteCount(_OfKind):
    """How many sites of a kind there are, such as ``N`` or ``P``."""

    __slots__ = ()


def one_of(kind: Any) -> str:
    """One site by the name of its kind, with its article: ``a feature``, ``an a-site``."""
    return f"{'an' if str(kind).startswith(tuple('aeiou')) else 'a'} {kind}"


def one_site(kind: Any) -> str:
    """A site in words, by the name of its kind: ``a feature site``, ``an a-site``."""
    return one_of(kind) + ("" if _is_whole(str(kind)) else " site")


def _is_whole(name: str) -> bool:
    """Whether the name of a kind reads well without the word site behind it."""
    return name.endswith("site") or " of " in name


class Kind(NamedAtom):
    """One sort of site.

    Attributes
    ----------
    name : str
        What one site is called: ``'feature'``.
    plural : str
        What several are called.
    index : SiteIndex
        The canonical index, which runs from 1 to ``size``.
    size : SiteCount
        How many there are.
    ratio : Expr
        ``size/N``, which stays fixed as the system grows: one for features, ``alpha`` for data.
    upper : bool
        Whether the index is printed as an upper one, as the field does for data.
    """

    __slots__ = ()

    def __new__(cls, name: str, plural: str, index: str, size: str, ratio: Expr, *, upper: bool = False) -> Kind:
        """Return the kind, with an index and a number of its own."""
        return cls._make(name, plural, index, size, ratio, upper)

    @classmethod
    def _make(cls, *data: Any) -> Kind:
        kind = super()._make(*data)
        return _KNOWN.setdefault(data, kind)

    @property
    def key(self) -> str:
        """The name as it stands in the keys of steps."""
        return self.name.replace(" ", "_")

    @property
    def plural(self) -> str:
        """What several sites are called."""
        return str(self._data[1])

    @property
    def sites(self) -> str:
        """The sites in words: ``feature sites``, ``a-sites``."""
        return self.plural if _is_whole(self.name) else f"{self.name} sites"

    @property
    def site(self) -> str:
        """One of them in words: ``a feature site``, ``an a-site``."""
        return one_site(self.name)

    @property
    def index(self) -> SiteIndex:
        """The canonical site index."""
        return _symbol_of(self, "SiteIndex")

    @property
    def size(self) -> SiteCount:
        """The number of sites."""
        return _symbol_of(self, "SiteCount")

    ratio: Expr = entry(4, "The number of sites over N.")

    @property
    def upper(self) -> bool:
        """Whether the index is printed as an upper one."""
        return bool(self._data[5])

    @property
    def range(self) -> tuple[SiteIndex, int, SiteCount]:
        """The limits of a sum over all sites."""
        return self.index, 1, self.size

    def __str__(self) -> str:  # quicker than SymPy's
        return self.name


_KNOWN: dict[tuple[Any, ...], Kind] = {}
_SYMBOLS: dict[tuple[Kind, str], Any] = {}


def _symbol_of(kind: Kind, which: str) -> Any:
    """The index or the number of a kind; there is one of each."""
    key = kind, which
    if key not in _SYMBOLS:
        cls, place = (SiteIndex, 2) if which == "SiteIndex" else (SiteCount, 3)
        symbol = cls(kind._data[place], of=kind.name)  # noqa: SLF001 - the class above
        symbol.kind = kind
        _SYMBOLS[key] = symbol
    return _SYMBOLS[key]


alpha = Symbol("alpha", positive=True)
FEATURE = Kind("feature", "features", "i", "N", S.One)
DATUM = Kind("datum", "data", "mu", "P", alpha, upper=True)
i, N = FEATURE.index, FEATURE.size
mu, P = DATUM.index, DATUM.size


def _several(one: str) -> str:
    """The plural of what one site is called: ``hidden units``, ``memories``, ``examples of the second task``."""
    noun, of, rest = one.partition(" of ")
    if noun.endswith("y") and noun[-2:-1] not in (*"aeiou", ""):
        return f"{noun[:-1]}ies{of}{rest}"
    return f"{noun}{'es' if noun.endswith(('s', 'x', 'z', 'ch', 'sh')) else 's'}{of}{rest}"


def Sites(index: str, size: str, name: str = "") -> tuple[SiteIndex, SiteCount]:
    """Declare one more kind of site.

    Parameters
    ----------
    index : str
        The name of its index.
    size : str
        The name of the number of sites.  At evaluation the ratio is given, ``{K/N: 2}``.
    name : str, optional
        What one site is called in derivations, for instance ``'hidden unit'``.

    Returns
    -------
    (SiteIndex, SiteCount)
        The index and the number: ``a, K = Sites("a", "K")``.

    Raises
    ------
    DeclarationError
        If a name is not an identifier, or belongs to the features or the data.

    Examples
    --------
    >>> from symcavity import Coupling, Sites, i
    >>> a, K = Sites('a', 'K', 'hidden unit')
    >>> Coupling('F', between=(a, i))[a, i]
    F[a, i]
    """
    for word in (index, size):
        if not isinstance(word, str) or not word.isidentifier():
            raise DeclarationError(f"Sites are declared with the name {word!r}.", 'names such as Sites("a", "K")')
        if word in ("i", "N", "mu", "P", "alpha"):
            raise DeclarationError(
                f"Sites are declared with the name {word!r}, which features or data have.", 'Sites("a", "K")'
            )
    one = name or f"{index}-site"
    kind = Kind(one, _several(one), index, size, Symbol(f"alpha_{size}", positive=True))
    return kind.index, kind.size


def is_index(symbol: Any) -> bool:
    """Whether a symbol is the canonical index of a kind of site."""
    return isinstance(symbol, SiteIndex)


def in_units_of_n(expr: Expr) -> Expr:
    """Write every number of sites as its fixed ratio to N."""
    return expr.xreplace({s: s.kind.ratio * N for s in expr.atoms(SiteCount)})


def in_ratios(expr: Expr) -> Expr:
    """Write numbers of sites as ratios, where N cancels between them."""
    if not expr.atoms(SiteCount):
        return expr
    found = in_units_of_n(expr)
    return expr if found.atoms(SiteCount) else found


def to_leading_order(expr: Expr) -> Expr:
    """An expression in proportion to the number of sites without its terms of order 1/sqrt(N)."""
    return expr.xreplace({1 / sqrt(N): S.Zero})


def sizes_compared(key: Any) -> tuple[Kind, Kind] | None:
    """The kinds whose numbers of sites an expression such as ``K/N`` compares; None for anything else."""
    if not isinstance(key, Expr) or not key.is_Mul or len(key.args) != 2:
        return None
    over, under = key.as_numer_denom()
    if isinstance(over, SiteCount) and isinstance(under, SiteCount):
        return over.kind, under.kind
    return None


def sorted_kinds(kinds: Iterable[Kind]) -> list[Kind]:
    """Kinds in a fixed order: features, data, then those that a user adds, by name."""
    first = [FEATURE, DATUM]
    return sorted(set(kinds), key=lambda k: (first.index(k) if k in first else len(first), k.name, str(k.index)))


def kind_of_range(limits: Any) -> Kind | None:
    """The kind that a summation range runs over, to P or to ``alpha*N``; None for a range of components."""
    if isinstance(limits[-1], SiteCount):
        return limits[-1].kind
    return DATUM if limits[-1] == in_units_of_n(P) else None
