"""The words of a declaration: families of site quantities, couplings, quenched parameters.

A *family* (``w = Feature("w")``) is indexed to give a *site quantity* (``w[i]``), an ordinary SymPy
expression.  What a family is (its side, its statistics) travels inside the expression, so that an
expression alone is a complete statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NoReturn

from sympy import Add, Basic, Expr, Mul, S, Symbol, SympifyError, Tuple, expand_mul, sqrt, sympify
from sympy.printing.precedence import PRECEDENCE

from symcavity.algebra.signs import FewValued
from symcavity.errors import DeclarationError
from symcavity.model.atoms import DataAtom
from symcavity.model.exact import exact, finite_law
from symcavity.model.kinds import Kind, N, P, SiteIndex, alpha, i, in_units_of_n, is_index, mu

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
    head, _, tail = name.partition("_")
    base = head.rstrip("0123456789")
    digits = head[len(base) :]
    tex = f"\\{base}" if base in _GREEK else base if len(base) == 1 else f"\\mathrm{{{base}}}"
    below = ",".join(part for part in (digits, tail) if part)
    return f"{tex}_{{({below})}}" if below else tex


class Family(DataAtom):
    """A family of quantities, one for each site; indexing it gives the quantity of a site.

    It is atomic: replacing an index in ``x[mu, i]`` must not reach into what the family *is*.
    """

    __slots__ = ()
    slots: tuple[Kind, ...] = ()
    _word: ClassVar[str] = "quantity"

    @property
    def name(self) -> str:
        """The declared name."""
        return str(self._data[0])

    @property
    def components(self) -> Tuple:
        """The range ``(a, 1, D + 1)`` of the inner component index, or an empty tuple."""
        return self._data[1]

    def __getitem__(self, index: Any) -> SiteQuantity:
        indices = index if isinstance(index, tuple) else (index,)
        return SiteQuantity(self, *(self._index(entry) for entry in indices))

    def _index(self, entry: Any) -> Expr:
        try:
            index = sympify(entry, strict=True)
        except (SympifyError, TypeError):
            index = None
        plain = isinstance(index, Expr) and index.is_integer is not False and not index.has(SiteQuantity, Global)
        if not plain or index.is_negative:
            raise DeclarationError(
                f"{self.name} is indexed by {entry!r}.",
                "index symbols: i for features, mu for data, the index of an enclosing Sum",
                f"{self.at_site()}",
            )
        return index

    def _unindexed(self, *_: Any) -> NoReturn:
        raise DeclarationError(
            f"{self.name} stands in an expression without an index.",
            "the quantity of one site",
            f"{self.at_site()}",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _unindexed
    __pow__ = __rpow__ = __neg__ = __pos__ = __abs__ = __float__ = __int__ = __complex__ = _unindexed
    __lt__ = __le__ = __gt__ = __ge__ = _unindexed

    def __iter__(self) -> Any:
        raise TypeError(f"{self.name} is a family of site quantities; write {self.name}[...] with an index.")

    def at_site(self) -> SiteQuantity:
        """Return the quantity at the canonical site index (and the declared component index)."""
        inner = (self.components[0],) if self.components else ()
        return self[(*(slot.index for slot in self.slots), *inner)]

    def _sympystr(self, _printer: Any) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    def _latex(self, _printer: Any) -> str:
        return latex_name(self.name)

    def _repr_latex_(self) -> str:
        return f"${latex_name(self.name)}$"


def _family_name(name: Any, word: str) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        raise DeclarationError(f"The name of a {word} is {name!r}.", "a Python identifier such as 'w' or 'lambda'")
    if name in RESERVED:
        raise DeclarationError(
            f"The name of a {word} is {name!r}, which is taken: N and P are the numbers of sites, alpha is P/N, "
            "i and mu are their indices.",
            "any other name",
        )
    return ALIASES.get(name, name)


def _component_range(components: Any) -> Tuple:
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
            "what has as many entries as there are sites is a variable of the sites: w[i], xi[mu]",
        )
    return Tuple(index, low, high)


class Variable(Family):
    """A state variable of every site of a kind.

    Parameters
    ----------
    name : str
        Its name; Greek names print as letters.
    index : SiteIndex
        The index of the sites: ``i`` (features), ``mu`` (data), or one from :func:`Sites`.
    components : tuple, optional
        Range ``(a, 1, D + 1)`` of an inner component index.
    """

    __slots__ = ()

    def __new__(cls, name: Any, index: Any, components: Any = None) -> Variable:
        """Return the family, read and checked."""
        kind = kind_of(index, f"The variable {name}", f'Variable("{name}", i)')
        return cls._make(_family_name(name, kind.name), _component_range(components), kind)

    @property
    def kind(self) -> Kind:
        """The kind of site that carries it."""
        return self._data[2]

    @property
    def slots(self) -> tuple[Kind, ...]:  # type: ignore[override]
        """The kind of site that carries it."""
        return (self._data[2],)


def Feature(name: Any, components: Any = None) -> Variable:
    """Declare a state variable of every feature site ``i = 1..N``, for instance a weight.

    Parameters
    ----------
    name : str
        Its name; Greek names print as letters.
    components : tuple, optional
        Range ``(a, 1, D + 1)`` of an inner component index.
    """
    return Variable(name, i, components)


def Datum(name: Any, components: Any = None) -> Variable:
    """Declare a state variable of every datum site ``mu = 1..P``, for instance a multiplier or a slack.

    Parameters
    ----------
    name : str
        Its name; Greek names print as letters.
    components : tuple, optional
        Range ``(a, 1, D + 1)`` of an inner component index.
    """
    return Variable(name, mu, components)


def kind_of(index: Any, what: str, example: str) -> Kind:
    """The kind of site that an index belongs to.

    Raises
    ------
    DeclarationError
        If it is not the index of a kind of site.
    """
    if isinstance(index, SiteIndex):
        return index.kind
    raise DeclarationError(
        f"{what} is declared over {index}.",
        "the site indices i (features) and mu (data), or an index of further sites",
        f'{example}; a, K = Sites("a", "K") for sites of another kind',
    )


class Field(Family):
    """A named quantity of a site that is given by an equation, such as the local field ``h[mu]``.

    Parameters
    ----------
    name : str
        Its name.
    index : Symbol, optional
        ``mu`` (the default) for a field of the data, ``i`` for a field of the features.
    """

    _word = "field"

    def __new__(cls, name: Any, components: Any = None, index: Any = mu) -> Field:
        """Return the expression, read and checked."""
        if isinstance(components, SiteIndex):
            components, index = None, components
        kind = kind_of(index, f"The field {name}", f'Field("{name}", mu)')
        return cls._make(_family_name(name, cls._word), _component_range(components), kind)

    @property
    def slots(self) -> tuple[Kind, ...]:  # type: ignore[override]
        """The kind of site that this field belongs to."""
        return (self._data[2],)


class Quenched(Family):
    """A fixed parameter of every site: a label, an eigenvalue, a teacher weight, a noise.

    Parameters
    ----------
    name : str
        Its name.
    index : Symbol
        ``i`` for a parameter of the features, ``mu`` for one of the data.
    law : dict, SymPy random variable, or None
        A finite law ``{value: weight}``, a distribution from ``sympy.stats``, or nothing: then a
        dictionary, a distribution or an array (one entry a site) is given at evaluation.
    positive : bool, optional
        Declare that all values are positive, where no law says so: penalties, scales, eigenvalues.

    Raises
    ------
    DeclarationError
        If the weights are negative or do not sum to one, or if a float stands in the law.
    """

    _word = "quenched parameter"

    def __new__(cls, name: Any, index: Any = None, law: Any = None, *, positive: bool = False) -> Quenched:
        """Return the expression, read and checked."""
        kind = kind_of(index, f"The quenched parameter {name}", f'Quenched("{name}", mu)')
        return cls._make(_family_name(name, cls._word), Tuple(), kind, _law(law, str(name)), bool(positive))

    def assumed_positive(self) -> Quenched:
        """The same parameter, declared positive."""
        return self._make(*self._data[:4], True)

    @property
    def positive(self) -> bool:
        """Whether all values are positive, by declaration or by a finite law."""
        law = self.law
        return self._data[4] or (isinstance(law, Tuple) and all(value.is_positive for value, _ in law))

    @property
    def slots(self) -> tuple[Kind, ...]:  # type: ignore[override]
        """The kind of site that this parameter belongs to."""
        return (self._data[2],)

    @property
    def law(self) -> Basic | None:
        """The declared law: a SymPy random variable, a Tuple of (value, weight), or None."""
        return None if self._data[3] == Tuple() else self._data[3]


def _law(law: Any, name: str) -> Basic:
    if law is None or law == Tuple():
        return Tuple()
    if isinstance(law, Mapping):
        return finite_law(law, name, exact_values=True)
    if isinstance(law, Tuple) and all(isinstance(entry, Tuple) and len(entry) == 2 for entry in law):
        return finite_law(dict(law), name, exact_values=True)
    from sympy.stats.rv import RandomSymbol

    if isinstance(law, RandomSymbol):
        return law
    raise DeclarationError(
        f"The law of {name} is {law!r}.",
        "a dictionary {value: weight}, or a random variable of sympy.stats",
        f"leave the law out, and give an array of values at evaluation: {{{name}: [...]}}",
    )


def _separated(expr: Expr, where: str) -> Expr:
    """An expression as a sum of products of what belongs to one site each."""
    out = expr if len({k for q in site_quantities(expr) for k in q.site}) < 2 else expand_mul(expr)
    for term in Add.make_args(out):
        for factor in Mul.make_args(term):
            if len({k for q in site_quantities(factor) for k in q.site}) > 1:
                raise DeclarationError(
                    f"{where} is {expr}: {factor} does not factorise into what belongs to either site.",
                    "sums of products, (l[i] + s[mu])/N or l[i]*s[mu]/N",
                    "an expansion in a few such products",
                )
    return out


class Coupling(Family):
    """Random couplings ``x[mu, i]`` between the sites of two kinds: given mean and variance, independent entries.

    Parameters
    ----------
    name : str
        Its name.
    components : tuple, optional
        Range ``(a, 1, D + 1)`` of an inner component index: ``u[mu, i, a]``; components are independent.
    variance : Expr, optional
        Variance of one coupling, ``1/N`` by default.  It may contain quenched parameters of either
        site, as in ``l[i]/N``.
    between : tuple of SiteIndex, optional
        The indices of the two kinds of site that are coupled, in the order in which they are written;
        ``(mu, i)`` by default.
    mean : Expr, optional
        Mean of one coupling, of order ``1/N``: a sum of products of quenched parameters of both sites over ``N``,
        as in ``y[mu]*m[i]/N``.  Zero by default.
    correlation : dict, optional
        Other couplings between the same sites, by the coefficient of their correlation with this one at equal
        indices: ``{x: rho}`` says ``<x[mu, i] z[mu, i]> = rho sqrt(var x var z)``.
    reciprocity : Expr, optional
        Of couplings between sites of one kind, ``<J[i, j] J[j, i]> / <J[i, j]**2>``: between -1 and 1, 0 by default.
        The coupling of a site to itself has the variance times ``1 + reciprocity``.

    Notes
    -----
    Only the first two moments enter at large N (central limit theorem; paper, equations 11 and 12).
    """

    _word = "coupling"

    def __new__(
        cls,
        name: Any,
        components: Any = None,
        variance: Any = None,
        *,
        between: Any = (mu, i),
        mean: Any = 0,
        correlation: Any = None,
        reciprocity: Any = 0,
    ) -> Coupling:
        """Return the family, read and checked."""
        if not isinstance(between, tuple | list) or len(between) != 2:
            raise DeclarationError(f"{name} is a coupling between {between!r}.", "two site indices: between=(mu, i)")
        example = f'Coupling("{name}", between=(mu, i))'
        ends = tuple(kind_of(index, f"The coupling {name}", example) for index in between)
        scale: Any = 1 / N if variance is None else exact(variance, f"the variance of {name}")
        if scale.is_nonpositive:
            raise DeclarationError(f"The variance of {name} is {scale}.", "a positive variance")
        centre = exact(mean, f"the mean of {name}")
        for word, expr in (("variance", scale), ("mean", centre)):
            for q in site_quantities(expr):
                if not isinstance(q.family, Quenched) or any(q.site[k] != k.index or k not in ends for k in q.site):
                    raise DeclarationError(
                        f"{q} stands in the {word} of {name}.",
                        "quenched parameters of the two sites that are coupled, l[i] and s[mu]",
                    )
        scale = _separated(scale, f"The variance of {name}")
        inner = _component_range(components)
        _check_mean(centre, name, vector=bool(inner))
        word = _family_name(name, cls._word)
        pairs = _correlations(word, correlation, ends, vector=bool(inner))
        back = _coefficient(reciprocity, f"the reciprocity of {name}")
        if back != 0 and (ends[0] != ends[1] or inner or pairs or site_quantities(scale)):
            raise DeclarationError(
                f"{name} has the reciprocity {back}"
                + (" and couples two kinds of sites." if ends[0] != ends[1] else ", beside components, a correlation "
                   "or a variance that differs from site to site."),
                "couplings between sites of one kind, alike for all sites",
                f'Coupling("{name}", between=(i, i), reciprocity={back})',
            )
        return cls._make(word, inner, scale, *ends, centre, pairs, back)

    @property
    def slots(self) -> tuple[Kind, ...]:  # type: ignore[override]
        """The two kinds of site that are coupled, in the order of the indices."""
        return self._data[3], self._data[4]

    @property
    def variance(self) -> Expr:
        """The variance of one coupling, at the canonical site indices."""
        return self._data[2]

    @property
    def mean(self) -> Expr:
        """The mean of one coupling, at the canonical site indices."""
        return self._data[5]

    @property
    def correlation(self) -> dict[Coupling, Expr]:
        """The coefficients of its correlations with other couplings at equal indices."""
        return dict(self._data[6])

    @property
    def reciprocity(self) -> Expr:
        """The coefficient of the correlation of two couplings with turned indices."""
        return self._data[7]

    @property
    def moments(self) -> tuple[Expr, ...]:
        """The expressions in its second moments: the variance, and the coefficients of correlations."""
        return (self.variance, *self.correlation.values(), self.reciprocity)

    def centred(self, name: str, partners: Mapping[Coupling, Coupling]) -> Coupling:
        """The same couplings without their mean, under another name; those that it correlates with may have others."""
        pairs = Tuple(*(Tuple(partners.get(other, other), rho) for other, rho in self.correlation.items()))
        return self._make(name, *self._data[1:5], S.Zero, pairs, self.reciprocity)

    def explicit(self, components: Tuple, variance: Expr) -> Coupling:
        """The same couplings with explicit components."""
        return self._make(self.name, components, variance, *self._data[3:])


def correlation_of(one: Coupling, other: Coupling) -> Expr:
    """The coefficient of correlation of two different couplings at equal indices."""
    return one.correlation.get(other, other.correlation.get(one, S.Zero))


def _coefficient(value: Any, where: str) -> Expr:
    """A coefficient of correlation."""
    found = exact(value, where)
    if (1 - found**2).is_negative or site_quantities(found):
        raise DeclarationError(f"{where[0].upper()}{where[1:]} is {found}.", "one number between -1 and 1")
    return found


def _correlations(name: str, given: Any, ends: tuple[Kind, ...], *, vector: bool) -> Tuple:
    """Read the correlations of a coupling."""
    if given is None:
        return Tuple()
    if not isinstance(given, Mapping) or not all(isinstance(other, Coupling) for other in given):
        raise DeclarationError(
            f"The correlation of {name} is {given!r}.", "a dictionary {coupling: coefficient}", "correlation={x: rho}"
        )
    for other in given:
        if other.slots != ends or vector or other.components or other.reciprocity != 0 or other.name == name:
            raise DeclarationError(
                f"{name} is correlated with {other.name}"
                + (", which is itself." if other.name == name else "."),
                "couplings between the same two sites, in the same order, without components or reciprocity",
            )
    return Tuple(*(Tuple(other, _coefficient(rho, f"the correlation of {name}")) for other, rho in given.items()))


def _check_mean(mean: Expr, name: str, *, vector: bool) -> None:
    """Refuse a mean that is not of order 1/N, or not a sum of products over the two ends."""
    if mean == 0:
        return
    order = in_units_of_n(mean * N).cancel()
    if order.has(N):
        root = in_units_of_n(mean * sqrt(N)).cancel()
        raise DeclarationError(
            f"The mean {mean} of {name} is not of order 1/N"
            + (": with a mean of order 1/sqrt(N) each sum has a part of order sqrt(N)." if not root.has(N) else "."),
            "means of order 1/N, sums of products of quenched parameters: mean=y[mu]*m[i]/N",
            f"{name} with the mean {mean / sqrt(N)}, and a Global as the threshold" if not root.has(N) else "",
        )
    if vector:
        raise DeclarationError(
            f"{name} has components and the mean {mean}.",
            "means of couplings without components",
            f"one coupling for each component, with a name of its own: Coupling(\"{name}_1\", mean=...)",
        )


class Global(Symbol):
    """A variable shared by all sites, such as a bias; the problem is minimised over it too.

    Parameters
    ----------
    name : str
    positive : bool, optional
        Minimise over its values from zero on, only; ``nonnegative=True`` means the same.
    """

    def __new__(cls, name: str, **assumptions: Any) -> Global:
        """Return the expression, read and checked."""
        bounded = any(assumptions.pop(word, False) for word in ("positive", "nonnegative"))
        if assumptions not in ({}, {"real": True}):
            raise DeclarationError(
                f"The global variable {name} is declared with {', '.join(sorted(assumptions))}.",
                "global variables that range over all real numbers, or from zero on: positive=True",
                "a penalty N*(...) keeps it small",
            )
        known = {"nonnegative": True} if bounded else {}
        return super().__new__(cls, _family_name(name, "global variable"), real=True, **known)


class SiteQuantity(FewValued, Expr):
    """The quantity of one site, such as ``w[i]``, ``lambda[mu]`` or ``x[mu, i]``."""

    is_commutative = True
    is_real = True
    is_finite = True
    is_symbol = True  # differentiated as it stands: a stand-in of SymPy would not be real
    _diff_wrt = True

    def __new__(cls, family: Family, *indices: Any) -> SiteQuantity:
        """Return the expression, read and checked."""
        expected = len(family.slots) + (1 if family.components else 0)
        if len(indices) != expected:
            slots = [*(str(slot.index) for slot in family.slots)]
            slots += [str(family.components[0])] if family.components else []
            raise DeclarationError(
                f"{family.name}[{', '.join(map(str, indices))}] has {len(indices)} indices.",
                f"{expected}: {family.name}[{', '.join(slots)}]",
            )
        for index, slot in zip(indices, family.slots, strict=False):
            if is_index(index) and index != slot.index:
                raise DeclarationError(
                    f"{family.name}[{', '.join(map(str, indices))}] has the index {index} in the place of a {slot}.",
                    f"{slot} indices there, such as {slot.index}",
                    f"{family.name}[{', '.join(str(s.index) for s in family.slots)}]",
                )
        return Expr.__new__(cls, family, *indices)

    @property
    def family(self) -> Family:
        """The family that this quantity belongs to."""
        return self.args[0]

    @property
    def few(self) -> tuple[Expr, ...]:
        """The values of a quenched parameter with a declared finite law."""
        law = self.family.law if isinstance(self.family, Quenched) else None
        return tuple(value for value, _ in law) if isinstance(law, Tuple) else ()

    @property
    def indices(self) -> tuple[Expr, ...]:
        """All indices: the site's, then the component's."""
        return self.args[1:]

    @property
    def site(self) -> dict[Kind, Expr]:
        """The index of each kind of site that this quantity carries."""
        return dict(zip(self.family.slots, self.args[1:], strict=False))

    @property
    def free_symbols(self) -> set[Any]:
        """The free index symbols."""
        return set().union(*(index.free_symbols for index in self.indices))

    def _eval_derivative(self, symbol: Any) -> Expr:
        return S.One if self == symbol else S.Zero

    def _eval_is_positive(self) -> bool | None:
        return True if isinstance(self.family, Quenched) and self.family.positive else None

    @property
    def precedence(self) -> int:
        """Bind weaker than a power where an upper index already stands."""
        return PRECEDENCE["Pow"] - 1 if any(k.upper for k in self.family.slots) else PRECEDENCE["Atom"]

    def _sympystr(self, printer: Any) -> str:
        return f"{self.family.name}[{', '.join(printer.doprint(index) for index in self.indices)}]"

    def _latex(self, printer: Any) -> str:
        family = self.family
        placed = list(zip(family.slots, self.indices, strict=False))
        upper = " ".join(printer.doprint(index) for kind, index in placed if kind.upper)
        lower = [printer.doprint(index) for kind, index in placed if not kind.upper]
        lower += [printer.doprint(index) for index in self.indices[len(family.slots) :]]
        tex = latex_name(family.name)
        if "_{(" in tex:  # a compound name keeps its own subscript inside a group
            tex = f"{{{tex}}}"
        below = f"_{{{' '.join(lower)}}}" if lower else ""
        above = f"^{{{upper}}}" if upper else ""
        return f"{tex}{below}{above}"


class Complementary(Basic):
    """The condition ``0 <= p`` ⊥ ``q >= 0``: both non-negative, and one of them zero, at every site."""

    def __new__(cls, p: Any, q: Any) -> Complementary:
        """Return the expression, read and checked."""
        return Basic.__new__(cls, exact(p, "a complementarity condition"), exact(q, "a complementarity condition"))

    @property
    def pair(self) -> tuple[Expr, Expr]:
        """The two non-negative expressions."""
        return self.args[0], self.args[1]

    def _sympystr(self, printer: Any) -> str:
        p, q = map(printer.doprint, self.args)
        return f"0 <= {p} ⊥ {q} >= 0"

    def _latex(self, printer: Any) -> str:
        p, q = map(printer.doprint, self.args)
        return f"0 \\le {p} \\perp {q} \\ge 0"


def site_quantities(expr: Any, *kinds: type[Family]) -> list[SiteQuantity]:
    """Return the site quantities of the given kinds in ``expr``, in a fixed order."""
    found = expr.atoms(SiteQuantity) if isinstance(expr, Basic) else set()
    chosen = [q for q in found if not kinds or isinstance(q.family, kinds)]
    return sorted(chosen, key=lambda q: (q.family.name, str(q)))


def families(exprs: Iterable[Any], *kinds: type[Family]) -> list[Family]:
    """Return the families of the given kinds in several expressions, in order of first appearance."""
    seen: dict[Family, None] = {}
    for expr in exprs:
        for quantity in site_quantities(expr, *kinds):
            seen.setdefault(quantity.family)
    return list(seen)
