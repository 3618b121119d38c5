"""Support functions of convex sets, as words of a declaration: ``g(V)`` and its gradient, the anchor point.

A vector is written by its component at a free component index: in ``g(Sum(u[mu, i, a]*w[i], (i, 1, N)))``
the index ``a`` is bound by ``g``, which takes the minimum of the scalar product over the points of its set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sympy import Dummy, Expr, Min, Mul, S, Sum, Symbol, Tuple

from symcavity.algebra.door import as_sympy
from symcavity.algebra.node import Node, part, raised, replaced_by
from symcavity.errors import DeclarationError
from symcavity.model.atoms import DataAtom, NamedAtom, entry
from symcavity.model.names import latex_name
from symcavity.model.quantities import Field, SiteQuantity, Variable, site_quantities

if TYPE_CHECKING:
    from symcavity.shapes.base import Shape


class SupportFunction(NamedAtom):
    """The support function ``g(V) = min over s in S of V.s`` of a convex set S whose hull is off the origin.

    Parameters
    ----------
    name : str
        Its name.
    shape : Shape, optional
        The set S; without it, the set is given at evaluation: ``theory.solve({g: Ball(5, 1), ...})``.
    samples, seed : int, optional
        Size and seed of quasi-random averages, for shapes that have no integrals.

    Examples
    --------
    >>> from symcavity import Ball, alpha
    >>> from symcavity.derivations.manifold import g, kappa, problem
    >>> round(float(problem.cavity().solve({kappa: '1/2', g: Ball(2, 1)})[alpha]), 6)
    0.426334
    """

    __slots__ = ()

    def __new__(cls, name: Any, shape: Any = None, *, samples: int | None = None, seed: int = 0) -> SupportFunction:
        """Return the function, read and checked."""
        if not isinstance(name, str) or not name.isidentifier():
            raise DeclarationError(f"The name of a support function is {name!r}.", "a Python identifier such as 'g_S'")
        if shape is not None:
            from symcavity.shapes.base import Shape

            if not isinstance(shape, Shape):
                raise DeclarationError(f"The set of {name} is {shape!r}.", "a shape, for instance Ball(5, 1)")
        return cls._make(name, shape, samples, seed, None)

    shape: Shape | None = entry(1, "The set, if it is known.")

    @property
    def sampling(self) -> tuple[int | None, int, int | None]:
        """Samples, seed, and the one scramble to be used (None for all)."""
        return self._data[2], self._data[3], self._data[4]

    def given(self, shape: Any, *, samples: int | None = None, seed: int = 0) -> SupportFunction:
        """Return the same function with its set given."""
        return SupportFunction(self.name, shape, samples=samples, seed=seed)

    def scramble(self, number: int) -> SupportFunction:
        """Return the same function, averaged over one of its independent sets of samples only."""
        return self._make(*self._data[:4], number)

    def __call__(self, V: Any, index: Any = None) -> Support:
        """Apply it to a vector, written by its component."""
        if isinstance(V, Tuple | list | tuple):
            raise DeclarationError(
                f"{self.name} is applied to {V}.",
                "a vector, written by its component",
                "g(Sum(u[mu, i, a]*w[i], (i, 1, N)))",
            )
        V = as_sympy(V, f"The argument of {self.name}")
        found = free_components(V)
        if index is not None:
            found = {k: v for k, v in found.items() if k == as_sympy(index)}
        if len(found) != 1:
            what = f"{len(found)} free component indices" if found else "no free component index"
            raise DeclarationError(
                f"The argument {V} of {self.name} has {what}.",
                "a vector, written by its component",
                'u = Coupling("u", components=(a, 1, D + 1)); g(Sum(u[mu, i, a]*w[i], (i, 1, N)))',
            )
        ((a, (low, high)),) = found.items()
        factor, vector = V.as_independent(*(q for q in site_quantities(V) if a in q.indices), as_Add=False)
        if isinstance(vector, Mul):  # what does not depend on the component, taken out of a product of sums
            inner = [f for f in vector.args if a in f.free_symbols]
            factor, vector = factor * Mul(*(f for f in vector.args if f not in inner)), Mul(*inner)
        if factor.is_positive:  # homogeneous of degree one
            return factor * Support(self, vector, Components(a, low, high))
        return Support(self, V, Components(a, low, high))

    def _latex(self, _printer: Any) -> str:
        return latex_name(self.name)


def free_components(expr: Expr) -> dict[Symbol, tuple[Expr, Expr]]:
    """The component indices that no sum and no support function binds, with their ranges."""
    expr = expr.xreplace({node: Dummy() for node in expr.atoms(Support, Anchor)})
    bound = {lim[0] for s in expr.atoms(Sum) for lim in s.limits}
    found: dict[Symbol, tuple[Expr, Expr]] = {}
    for q in site_quantities(expr):
        for index in q.indices[len(q.family.slots) :]:
            if index.is_Symbol and index not in bound:
                found[index] = (q.family.components[1], q.family.components[2])
    return found


class Components(DataAtom):
    """A component index that is bound, with its range; the index does not count as a symbol."""

    __slots__ = ()

    def __new__(cls, index: Symbol, low: Any, high: Any) -> Components:
        """Return the range."""
        return cls._make(index, as_sympy(low), as_sympy(high))

    index: Symbol = entry(0, "The bound index.")

    @property
    def range(self) -> Tuple:
        """The limits of a sum over the components."""
        return Tuple(*self._data)

    @property
    def size(self) -> Expr:
        """The number of components."""
        return self._data[2] - self._data[1] + 1

    def _sympystr(self, printer: Any) -> str:
        return printer.doprint(self._data[0])


class _Binder(Node):
    """A function of a vector that is written by its component; the component index is bound."""

    g: SupportFunction = part(0, "The support function.")
    body: Expr = part(1, "The component of the vector.")
    components: Components = part(2, "The bound index and its range.")

    @property
    def free_symbols(self) -> set[Any]:
        """The free symbols, without the bound index."""
        found: set[Any] = (self.body.free_symbols - {self.components.index}) | self.args[3].free_symbols
        return found.union(*(arg.free_symbols for arg in self.args[4:]))

    def _xreplace(self, rule: Any) -> tuple[Any, bool]:
        inner = {k: v for k, v in replaced_by(rule).items() if k != self.components.index}
        if self in rule:
            return rule[self], True
        parts = [self.g._xreplace(rule), self.body._xreplace(inner)]  # noqa: SLF001 - SymPy's own recursion
        tail = [arg._xreplace(rule) for arg in self.args[4:]]  # noqa: SLF001
        size, changed_size = self.args[3]._xreplace(rule)  # noqa: SLF001
        if not (any(changed for _, changed in (*parts, *tail)) or changed_size):
            return self, False
        index, low, _ = self.components.range
        components = Components(index, low, low + size - 1) if changed_size else self.components
        return self.func(parts[0][0], parts[1][0], components, *(value for value, _ in tail)), True

    def _eval_subs(self, old: Any, new: Any) -> Any:
        return self.xreplace({old: new})

    def vector(self, printer: Any) -> str:
        """The argument in bold, without its component index."""
        return str(printer.doprint(bold(self.body, self.components.index)))


class Support(_Binder):
    """The value ``g(V)`` of a support function."""

    def __new__(cls, g: SupportFunction, body: Expr, components: Components, *_: Any) -> Any:
        """Return the value of g at a vector; positive numbers and parameters stand in front of it."""
        factors = [f for f in Mul.make_args(body) if f.is_positive and not f.has(SiteQuantity)]
        scale = Mul(*(f for f in factors if components.index not in f.free_symbols))
        if scale != 1:
            return scale * cls(g, body / scale, components)
        return Expr.__new__(cls, g, body, components, components.size)

    def _eval_derivative(self, symbol: Any) -> Expr:
        slope = self.body.diff(symbol)
        if slope == 0:
            return S.Zero
        return Anchor(self.g, self.body, self.components, self.components.index) * slope

    @property
    def func(self) -> Callable[..., Support]:
        """Rebuild from arguments."""
        return Support

    def _sympystr(self, printer: Any) -> str:
        return f"{self.g}({printer.doprint(self.body)})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        power = f"^{{{exp}}}" if exp else ""
        return f"{self.g._latex(printer)}{power}\\left({self.vector(printer)}\\right)"  # noqa: SLF001


class Anchor(_Binder):
    """A component of the gradient of a support function: of the anchor point, where the minimum is taken."""

    def __new__(cls, g: SupportFunction, body: Expr, components: Components, *at: Any) -> Anchor:
        """Return a component of the anchor point of a vector; the last argument says which."""
        return Expr.__new__(cls, g, body, components, components.size, at[-1])

    @property
    def func(self) -> Callable[..., Anchor]:
        """Rebuild from arguments."""
        return Anchor

    at: Expr = part(4, "Which component.")

    def _eval_derivative(self, _symbol: Any) -> Expr:
        return S.NaN

    def _sympystr(self, printer: Any) -> str:
        return f"(grad {self.g})_{printer.doprint(self.at)}({printer.doprint(self.body)})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        name, at = self.g._latex(printer), printer.doprint(self.at)  # noqa: SLF001 - one layer
        tex = f"\\left(\\nabla {name}\\right)_{{{at}}}\\left({self.vector(printer)}\\right)"
        return raised(tex, exp)


class _Bold(Symbol):
    """A vector, or what is left of a quantity without one index: its name in bold."""

    __slots__ = ("quantity",)
    quantity: SiteQuantity

    def __new__(cls, quantity: SiteQuantity) -> _Bold:
        """Return the symbol of a quantity."""
        out = Symbol.__xnew__(cls, f"\\bm{{{quantity}}}")
        out.quantity = quantity
        return out

    def _hashable_content(self) -> tuple[Any, ...]:
        return (*super()._hashable_content(), self.quantity)

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        name = latex_name(self.quantity.family.name).partition("_{")[0]  # its number keeps its weight
        tex = self.quantity._latex(printer).replace(name, f"\\bm{{{name}}}", 1)  # noqa: SLF001 - one layer
        return f"{tex}^{{{exp}}}" if exp else tex


def bold(body: Expr, index: Symbol) -> Expr:
    """Return a vector that is written by its component: in bold, and without the index."""
    rule = {}
    for q in site_quantities(body):
        if index in q.indices:
            plain = type(q.family)._make(q.family.name, Tuple(), *q.family._data[2:])  # noqa: SLF001
            rule[q] = _Bold(SiteQuantity(plain, *(k for k in q.indices if k != index)))
    return body.xreplace(rule)


class Whole:
    """A vector-valued variable that is never written out by its components."""


class VectorVariable(Whole, Variable):
    """A vector-valued state of a site that is treated as a whole."""


class VectorField(Whole, Field):
    """A vector-valued field of a site that is treated as a whole."""


def stays_whole(q: SiteQuantity) -> bool:
    """Whether the components of a quantity are kept together: symbolic ranges, and vectors of a convex law."""
    if not q.family.components:
        return False
    _, low, high = q.family.components
    return isinstance(q.family, Whole) or not (low.is_Integer and high.is_Integer)


def surrogate(expr: Expr) -> Expr:
    """The expression with a concave, homogeneous function of one variable for each support function."""
    return expr.xreplace({node: Min(2 * node.body, node.body / 2) for node in expr.atoms(Support)})
