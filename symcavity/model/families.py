"""Families of quantities, one for each site, and the quantities of single sites that expressions hold.

A *family* (``w = Feature("w")``) is indexed to give a *site quantity* (``w[i]``), an ordinary SymPy
expression.  What a family is (its side, its statistics) travels inside the expression, so that an
expression alone is a complete statement.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, ClassVar, NoReturn, Self

from sympy import Basic, Derivative, Expr, S, Symbol, Tuple

from symcavity.algebra.door import as_sympy
from symcavity.algebra.indexed import fresh_index
from symcavity.algebra.node import part
from symcavity.algebra.signs import FewValued
from symcavity.algebra.text import text
from symcavity.errors import DeclarationError
from symcavity.model.atoms import NamedAtom, entry
from symcavity.model.kinds import Kind, is_index
from symcavity.model.names import latex_name
from symcavity.model.times import Time, read_time


class SharedSymbol(Symbol):
    """A symbol that stands for a state of the whole system: it is the index of nothing."""


class Family(NamedAtom):
    """A family of quantities, one for each site; indexing it gives the quantity of a site.

    It is atomic: replacing an index in ``x[mu, i]`` must not reach into what the family *is*.
    """

    __slots__ = ()
    _word: ClassVar[str] = "quantity"
    has_vectors: ClassVar[bool] = True  # whether a declaration may give it components

    components: Tuple = entry(1, "The range ``(a, 1, D + 1)`` of the inner component index, or an empty tuple.")

    @property
    def slots(self) -> tuple[Kind, ...]:
        """The kind of site that carries it; both kinds of a coupling, in the order of its indices."""
        return (self._data[2],)

    @property
    def over(self) -> Time | None:
        """The time over which it moves; None for what keeps still."""
        return self._data[-1] if isinstance(self._data[-1], Time) else None

    @property
    def few(self) -> tuple[Expr, ...]:
        """The values of one site, where they are known to be these few; none elsewhere."""
        return ()

    @property
    def sign(self) -> int | None:
        """One where all values are positive, zero where none is negative, None where that is not known."""
        return None

    def __getitem__(self, index: Any) -> SiteQuantity:
        entries = list(index) if isinstance(index, tuple) else [index]
        when: list[Expr] = []
        if self.over is not None and len(entries) > len(self.slots) + bool(self.components):
            when = [read_time(entries.pop(), self.name, self.over)]
        return SiteQuantity(self, *map(self._index, entries), *when)

    def _index(self, entry: Any) -> Expr:
        try:
            index = as_sympy(entry)
        except DeclarationError:
            index = None
        plain = isinstance(index, Expr) and index.is_integer is not False and not index.has(SiteQuantity, SharedSymbol)
        if not plain or index.is_negative:
            raise DeclarationError(
                f"{self.name} is indexed by {entry!r}.",
                "index symbols: i for features, mu for data, the index of an enclosing Sum",
                f"{self.at_site()}",
            )
        return index

    def _unindexed(self, *_: Any) -> NoReturn:
        raise DeclarationError(
            f"{self.name} stands in an expression without an index.", "the quantity of one site", f"{self.at_site()}"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _unindexed
    __pow__ = __rpow__ = __neg__ = __pos__ = __abs__ = __float__ = __int__ = __complex__ = _unindexed
    __lt__ = __le__ = __gt__ = __ge__ = _unindexed

    def __iter__(self) -> Any:
        raise TypeError(f"{self.name} is a family of site quantities; write {self.name}[...] with an index.")

    def renamed(self, name: str) -> Self:
        """The same family under another name."""
        return self._make(name, *self._data[1:])

    def at_site(self) -> SiteQuantity:
        """Return the quantity at the canonical site index or indices (and the declared component index)."""
        sites: list[Symbol] = []
        for slot in self.slots:
            sites.append(fresh_index(slot.index, sites) if slot.index in sites else slot.index)
        return self[(*sites, *self.components[:1], *([] if self.over is None else [self.over]))]

    def _latex(self, _printer: Any) -> str:
        return latex_name(self.name)

    def _repr_latex_(self) -> str:
        return f"${latex_name(self.name)}$"


class SiteQuantity(FewValued, Expr):
    """The quantity of one site, such as ``w[i]``, ``lambda[mu]`` or ``x[mu, i]``."""

    is_commutative = True
    is_real = True
    is_finite = True
    is_symbol = True  # differentiated as it stands: a stand-in of SymPy would not be real
    _diff_wrt = True

    def __new__(cls, family: Family, *indices: Any) -> SiteQuantity:
        """Return the expression, read and checked."""
        moving = [] if family.over is None else [family.over]
        expected = len(family.slots) + (1 if family.components else 0) + len(moving)
        if len(indices) != expected:
            slots = ", ".join(map(str, (*(slot.index for slot in family.slots), *family.components[:1], *moving)))
            more = len(indices) == len(family.slots) + 1 > expected
            what = ""
            times = [symbol for symbol in getattr(indices[-1], "free_symbols", ()) if isinstance(symbol, Time)]
            if more and times:
                what = f"over={times[0]} in its declaration, if it moves"
            elif more and family.has_vectors:
                what = f"{family.name}[{slots}, 1], with components=(k, 1, n) in its declaration"
            raise DeclarationError(
                f"{family.name}[{', '.join(map(str, indices))}] has {len(indices)} indices.",
                f"{expected}: {family.name}[{slots}]",
                what,
            )
        for index, slot in zip(indices, family.slots, strict=False):
            if is_index(index) and index != slot.index:
                of_one_kind = len(family.slots) > 1 and {k for k in indices if is_index(k)} == {index}
                made = f'{type(family).__name__}("{family.name}", between=({index}, {index}))'
                own = f"; between sites of one kind, {made}" if of_one_kind else ""
                raise DeclarationError(
                    f"{family.name}[{', '.join(map(str, indices))}] has the index {index} in the place of a {slot}.",
                    f"{slot} indices there, such as {slot.index}",
                    f"{family.at_site()}{own}",
                )
        return Expr.__new__(cls, family, *indices)

    family: Family = part(0, "The family that this quantity belongs to.")

    @property
    def few(self) -> tuple[Expr, ...]:
        """The values of a quenched parameter with a declared finite law."""
        return self.family.few

    @property
    def indices(self) -> tuple[Expr, ...]:
        """The indices of sites, then the component's, without the time."""
        return self.args[1:] if self.family.over is None else self.args[1:-1]

    @property
    def time(self) -> Expr | None:
        """The time at which it is taken; None for what keeps still."""
        return None if self.family.over is None else self.args[-1]

    @property
    def now(self) -> SiteQuantity:
        """The same quantity at the time over which it moves, whatever time it is taken at."""
        return _now(self)

    @property
    def site(self) -> dict[Kind, Expr]:
        """The index of each kind of site that this quantity carries."""
        return dict(zip(self.family.slots, self.args[1:], strict=False))

    @property
    def free_symbols(self) -> set[Any]:
        """The free index symbols, times among them."""
        return set().union(*(index.free_symbols for index in self.args[1:]))

    def _eval_derivative(self, symbol: Any) -> Expr:
        if self.time is not None and symbol in self.time.free_symbols:
            return Derivative(self, symbol, evaluate=False)  # as a user writes x[i, t].diff(t)
        return S.One if self == symbol else S.Zero

    def _eval_is_positive(self) -> bool | None:
        return True if self.family.sign == 1 else None

    def _eval_is_nonnegative(self) -> bool | None:
        return None if self.family.sign is None else True

    def _sympystr(self, printer: Any) -> str:
        return f"{self.family.name}[{', '.join(printer.doprint(index) for index in self.args[1:])}]"

    def _latex(self, printer: Any) -> str:
        family = self.family
        placed = list(zip(family.slots, self.indices, strict=False))
        upper = " ".join(printer.doprint(index) for kind, index in placed if kind.upper)
        lower = [printer.doprint(index) for kind, index in placed if not kind.upper]
        lower += [printer.doprint(index) for index in self.indices[len(family.slots) :]]
        tex, _, tail = latex_name(family.name).partition("_{")
        below = ",".join(filter(None, (tail[:-1], " ".join(lower))))
        below = f"_{{{below}}}" if below else ""
        above = f"^{{{upper}}}" if upper else ""
        when = "" if self.time is None else f"({printer.doprint(self.time)})"
        return f"{tex}{below}{above}{when}"


@lru_cache(maxsize=4096)
def _now(quantity: SiteQuantity) -> SiteQuantity:
    """A quantity at the time over which it moves: one object, which tables find without a comparison."""
    over = quantity.family.over
    return quantity if over is None or quantity.args[-1] == over else quantity.func(*quantity.args[:-1], over)


def site_quantities(expr: Any, *kinds: type[Family]) -> list[SiteQuantity]:
    """Return the site quantities of the given kinds in ``expr``, in a fixed order."""
    found = _site_quantities(expr) if isinstance(expr, Basic) else ()
    return [q for q in found if not kinds or isinstance(q.family, kinds)]


@lru_cache(maxsize=4096)
def _site_quantities(expr: Basic) -> tuple[SiteQuantity, ...]:
    """All of them, looked up once: the same expressions are asked at every turn."""
    return tuple(sorted(expr.atoms(SiteQuantity), key=lambda q: (q.family.name, text(q))))


def families(exprs: Iterable[Any], *kinds: type[Family]) -> list[Family]:
    """Return the families of the given kinds in several expressions, in order of first appearance."""
    seen: dict[Family, None] = {}
    for expr in exprs:
        for quantity in site_quantities(expr, *kinds):
            seen.setdefault(quantity.family)
    return list(seen)
