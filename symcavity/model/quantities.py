"""The words of a declaration: variables, fields, quenched parameters, what all sites share, and complements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Basic, Expr, Sum, Symbol, Tuple

from symcavity.algebra.door import as_sympy
from symcavity.errors import DeclarationError
from symcavity.model.atoms import entry
from symcavity.model.attributes import discrete_values, kind_of, law_of, moving_over
from symcavity.model.dependent import read_joint
from symcavity.model.exact import Count, drawn_law, exact, finite_law, sign_of_law
from symcavity.model.families import Family, SharedSymbol, SiteQuantity, site_quantities
from symcavity.model.keywords import known_words
from symcavity.model.kinds import Kind, SiteIndex, i, mu
from symcavity.model.names import component_range, family_name
from symcavity.model.times import Time


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
    values : sequence of numbers, optional
        The states of a discrete variable, two or more: ``Feature("s", values=(-1, 1))``.
    over : Time, optional
        The time over which it moves: ``x = Variable("x", i, over=t)``, and then ``x[i, t]``.

    Examples
    --------
    >>> from symcavity import Sites, Variable
    >>> a, K = Sites('a', 'K')
    >>> Variable('v', a)[a]
    v[a]
    """

    __slots__ = ()

    @known_words
    def __new__(
        cls, name: Any, index: Any, components: Any = None, *, values: Any = None, over: Time | None = None
    ) -> Variable:
        """Return the family, read and checked."""
        kind = kind_of(index, f"The variable {name}", f'Variable("{name}", i)')
        moving = moving_over(over, name, components)
        states = discrete_values(values, name, alone=not (components or moving))
        return cls._make(family_name(name, kind.name), component_range(components), kind, *states, *moving)

    @property
    def values(self) -> tuple[Expr, ...]:
        """The states of a discrete variable; none where it is continuous."""
        return next((tuple(part) for part in self._data[3:] if isinstance(part, Tuple)), ())

    kind: Kind = entry(2, "The kind of site that carries it.")


@known_words
def Feature(name: Any, components: Any = None, *, values: Any = None) -> Variable:
    """Declare a state variable of every feature site ``i = 1..N``, for instance a weight.

    Parameters
    ----------
    name : str
        Its name; Greek names print as letters.
    components : tuple, optional
        Range ``(a, 1, D + 1)`` of an inner component index.
    values : sequence of numbers, optional
        The states of a discrete variable, two or more: ``Feature("s", values=(-1, 1))``.

    Examples
    --------
    >>> from symcavity import Feature, i
    >>> Feature('w')[i]
    w[i]
    """
    return Variable(name, i, components, values=values)


@known_words
def Datum(name: Any, components: Any = None) -> Variable:
    """Declare a state variable of every datum site ``mu = 1..P``, for instance a multiplier or a slack.

    Parameters
    ----------
    name : str
        Its name; Greek names print as letters.
    components : tuple, optional
        Range ``(a, 1, D + 1)`` of an inner component index.

    Examples
    --------
    >>> from symcavity import Datum, mu
    >>> Datum('xi')[mu]
    xi[mu]
    """
    return Variable(name, mu, components)


class Field(Family):
    """A named quantity of a site that is given by an equation, such as the local field ``h[mu]``.

    Parameters
    ----------
    name : str
        Its name.
    components : tuple, optional
        Range ``(a, 1, D + 1)`` of an inner component index.
    index : SiteIndex, optional
        ``mu`` (the default) for a field of the data, ``i`` for one of the features, or an index from :func:`Sites`.
    over : Time, optional
        The time over which it moves.

    Examples
    --------
    >>> from sympy import Eq, Sum
    >>> from symcavity import Coupling, Field, Feature, N, i, mu
    >>> x, w, h = Coupling('x'), Feature('w'), Field('h', mu)
    >>> Eq(h[mu], Sum(x[mu, i]*w[i], (i, 1, N)))
    Eq(h[mu], Sum(w[i]*x[mu, i], (i, 1, N)))
    """

    _word = "field"

    def __new__(cls, name: Any, components: Any = None, index: Any = mu, *, over: Time | None = None) -> Field:
        """Return the expression, read and checked."""
        if isinstance(components, SiteIndex):
            components, index = None, components
        kind = kind_of(index, f"The field {name}", f'Field("{name}", mu)')
        moving = moving_over(over, name, components)
        return cls._make(family_name(name, cls._word), component_range(components), kind, *moving)


class DrawnOn(Symbol):
    """What the weights of a label hold until its field has a name; never equal to a parameter of the same name."""


class Quenched(Family):
    """A fixed parameter of every site: a label, an eigenvalue, a teacher weight, a noise.

    Parameters
    ----------
    name : str
        Its name.  A tuple of names gives as many parameters, which depend on each other.
    index : Symbol
        ``i`` for a parameter of the features, ``mu`` for one of the data, or an index from :func:`Sites`.
    law : dict, SymPy random variable, or None
        A finite law ``{value: weight}``, a distribution from ``sympy.stats``, or nothing: then a
        dictionary, a distribution or an array (one entry a site) is given at evaluation.  Of several
        parameters ``{(1, 2): weight, ...}``, or ``Normal("g", means, covariances)``.
    positive : bool, optional
        Declare that all values are positive, if the law does not imply it: penalties, scales, eigenvalues.  Laws on
        positive numbers, such as ``Exponential("c", 1)``, imply it.
    given : Expr, optional
        The field on which the law of a label depends: the weights of a finite law may contain it, or the parameters
        of one on the integers, ``Poisson("y", exp(u))``, and quenched parameters of the same site beside it. A sum
        over couplings times quenched parameters (the field of a teacher), ``u = Sum(x[mu, i]*t[i], (i, 1, N))``, or a
        `Field` that is one.
    over : Time, optional
        Draw it anew at each step of this time, independently of all before: ``s = Quenched("s", mu, over=t)``, and then
        ``s[mu, t]``, such as a mask that selects data.  Of one name, without ``given``.

    Raises
    ------
    DeclarationError
        If the weights are negative or do not sum to one, or if the law contains a float.

    Examples
    --------
    >>> from symcavity import Quenched, mu
    >>> y = Quenched('y', mu, law={1: '3/4', -1: '1/4'})
    >>> y[mu]
    y[mu]
    """

    _word = "quenched parameter"
    has_vectors = False

    @known_words
    def __new__(
        cls,
        name: Any,
        index: Any = None,
        law: Any = None,
        *,
        positive: bool = False,
        given: Any = None,
        over: Time | None = None,
    ) -> Any:
        """Return the family, read and checked."""
        said = ", ".join(map(str, name)) if isinstance(name, tuple | list) else name
        example = name if isinstance(name, tuple | list) else f'"{name}"'
        kind = kind_of(index, f"The quenched parameter {said}", f"Quenched({example}, mu)")
        if over is not None:
            if given is not None or isinstance(name, tuple | list):
                raise DeclarationError(
                    f"{name} is drawn anew, " + ("on a field." if given is not None else "several at once."),
                    "one name, with a law of its own",
                    f'Quenched("s", {index}, over={over}, law={{0: S.Half, 1: S.Half}})',
                )
            moving = moving_over(over, name)
            return cls._make(
                family_name(name, cls._word), Tuple(), kind, law_of(law, str(name)), bool(positive), Tuple(), *moving
            )
        if isinstance(name, tuple | list):
            alone = given is None and not positive
            return read_joint(cls, [family_name(n, cls._word) for n in name], index, law, alone=alone)
        word, positive = family_name(name, cls._word), bool(positive)
        if given is None:
            return cls._make(word, Tuple(), kind, law_of(law, str(name)), positive, Tuple())
        field = exact(given, f"what {name} is given on")
        mark = field if isinstance(field, SiteQuantity) else DrawnOn("u", real=True)
        rest, whole = field.as_independent(Sum, as_Add=True)  # which need not stand side by side where they are used
        factor, core = whole.as_independent(Sum, as_Add=False)
        at_mark = {field: mark} | ({core: (mark - rest) / factor} if isinstance(core, Sum) else {})
        pairs = drawn_law(law.xreplace(at_mark), str(name)) if isinstance(law, Basic) else None
        law = law if pairs is None else dict(pairs)
        if not isinstance(law, Mapping) or not site_quantities(field):
            raise DeclarationError(
                f"{name} is given {field}, with the law {law!r}.",
                "a finite law {value: weight}, or one of sympy.stats on the integers from a smallest one upwards, with "
                "a sum of couplings times quenched parameters in its weights or parameters; a label that is continuous "
                "is written out, as the field plus a quenched noise, or a scale times one",
                f'u = Sum(x[mu, i]*t[i], (i, 1, N)); Quenched("{name}", mu, law={{1: 1/(1 + exp(-u)), '
                "-1: 1/(1 + exp(u))}, given=u)",
            )
        weights = {v: as_sympy(w).xreplace(at_mark) for v, w in law.items() if not isinstance(w, str | float)}
        law = {**law, **weights}
        held = Tuple(*weights.values())
        own = [q for q in site_quantities(held, Quenched) if q.indices == (index,) and q.family.given is None]
        if stray := [q for q in site_quantities(held) if q != mark and q not in own]:
            raise DeclarationError(
                f"{stray[0]} stands in the law of {name}.",
                "weights in parameters, in given, and in quenched parameters of the same site",
            )
        read = pairs if pairs is None else Tuple(*(Tuple(v, w) for v, w in law.items()))
        read = read or finite_law(law, str(name), exact_values=True)
        return cls._make(word, Tuple(), kind, read, positive, Tuple(field, mark))

    def assumed_positive(self) -> Quenched:
        """The same parameter, declared positive."""
        return self._make(*self._data[:4], True, *self._data[5:])

    def drawn_by(self, law: Any) -> Quenched:
        """The same parameter with a law, which says by itself what is positive."""
        return self._make(*self._data[:3], law_of(law, self.name), False, *self._data[5:])

    def drawn_alike(self, name: str, law: Tuple) -> Quenched:
        """A label with a law of (value, weight) pairs that is drawn on what this one is drawn on."""
        return self._make(name, *self._data[1:3], law, False, *self._data[5:])

    def copied(self, name: str, rule: Mapping[Any, Any]) -> Quenched:
        """An independent parameter with the same law, drawn on other quantities where it is drawn on some."""
        drawn = Tuple(*(e.xreplace(dict(rule)) for e in self._data[5]))
        return self._make(name, *self._data[1:5], drawn, *self._data[6:])

    def at_field(self, field: SiteQuantity) -> Quenched:
        """The same label, drawn on a quantity of the site that has a name."""
        _, mark = self._data[5]
        return self._make(*self._data[:3], self._data[3].xreplace({mark: field}), self._data[4], Tuple(field, field))

    @property
    def given(self) -> Any:
        """What a label is drawn on; None where the law is that of a parameter that is fixed before all else."""
        return self._data[5][0] if self._data[5] else None

    @property
    def low(self) -> Expr | None:
        """The smallest of countably many values of a label; None of any other law."""
        if not isinstance(self.law, Tuple) or not (counts := self.law.atoms(Count)):
            return None
        ((least, _),) = self.law.args
        return least - counts.pop()

    def weight(self, value: Any) -> Expr:
        """The weight of one of countably many values."""
        ((least, weight),) = self.law.args  # type: ignore[union-attr]
        return weight.xreplace({least - self.low: value - self.low})

    @property
    def values(self) -> tuple[Expr, ...]:
        """The values of a finite law, or the first few of countably many; none where they are open."""
        if (low := self.low) is not None:
            return tuple(low + k for k in range(3))
        return tuple(value for value, _ in self.law) if isinstance(self.law, Tuple) else ()

    @property
    def few(self) -> tuple[Expr, ...]:
        """The values of a finite law."""
        return self.values if self.low is None else ()

    @property
    def sign(self) -> int | None:
        """One where all values are positive, zero where none is negative, None where that is not known."""
        return 1 if self.positive else sign_of_law(self.law)

    @property
    def positive(self) -> bool:
        """Whether all values are positive, by declaration or by their law."""
        if self._data[4] or not isinstance(self.law, Tuple):
            return self._data[4] or sign_of_law(self.law) == 1
        return all(value.is_positive for value in self.values)

    @property
    def law(self) -> Basic | None:
        """The declared law: a SymPy random variable, a Tuple of (value, weight), or None."""
        return None if self._data[3] == Tuple() else self._data[3]


class SharedState(Family):
    """A variable shared by all sites that moves: what ``Global("b", over=t)`` declares, and then ``b[t]``."""

    __slots__ = ()
    _word = "global variable"

    def __new__(cls, name: Any, over: Time) -> SharedState:
        """Return the family, read and checked."""
        return cls._make(family_name(name, cls._word), Tuple(), *moving_over(over, name))

    @property
    def slots(self) -> tuple[Kind, ...]:
        """No kind of site carries it."""
        return ()


class Global(SharedSymbol):
    """A variable shared by all sites, such as a bias; the problem is minimized over it too.

    Parameters
    ----------
    name : str
    positive : bool, optional
        Minimize over its values from zero on, only; ``nonnegative=True`` means the same.
    over : Time, optional
        The time over which it moves: ``b = Global("b", over=t)``, and then ``b[t]``, with an equation of its own,
        ``Eq(b[t + 1], b[t] - eta*Sum(lam[mu, t], (mu, 1, P))/N)``.

    Examples
    --------
    >>> from symcavity import Global
    >>> Global('b', positive=True)
    b
    """

    def __new__(cls, name: str, *, over: Time | None = None, **assumptions: Any) -> Any:
        """Return the expression, read and checked."""
        if over is not None and not assumptions:
            return SharedState(name, over)
        bounded = any(assumptions.pop(word, False) for word in ("positive", "nonnegative"))
        if assumptions not in ({}, {"real": True}):
            raise DeclarationError(
                f"The global variable {name} is declared with {', '.join(sorted(assumptions))}.",
                "global variables that range over all real numbers, or from zero on: positive=True",
                "a penalty N*(...) keeps it small",
            )
        known = {"nonnegative": True} if bounded else {}
        return super().__new__(cls, family_name(name, "global variable"), real=True, **known)

    @classmethod
    def above_zero(cls, name: str) -> Global:
        """A variable that is known to be positive where the problem has its minimum: it needs no bound."""
        return super().__new__(cls, name, real=True, positive=True)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (Global.above_zero, (self.name,)) if self.is_positive else super().__reduce_ex__(protocol)

    @property
    def is_bounded(self) -> bool:
        """Whether it makes a pair with its condition: it may be zero, or the condition an equality."""
        return bool(self.is_nonnegative and not self.is_positive)
