"""Kernels by their eigenfunctions: functions of data that are sums of a kernel become sums over features.

A function ``f(x) = sum_nu K(x, x^nu) lambda^nu`` with ``K(x, x') = sum_i rho_i phi_i(x) phi_i(x')`` is
``sum_i w_i phi_i(x)`` with ``w_i = rho_i sum_nu lambda^nu phi_i(x^nu)``, and its squared norm
``sum_(mu nu) K(x^mu, x^nu) lambda^mu lambda^nu`` is ``sum_i w_i^2 / rho_i``.  A problem that knows the coefficients by
such functions and norms only is one in w: by the representer theorem its minimum over all w has this form.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sympy import Basic, Expr, Mul, Sum, sympify

from symcavity.algebra.node import Node
from symcavity.errors import DeclarationError
from symcavity.model.atoms import DataAtom
from symcavity.model.couplings import Coupling
from symcavity.model.kinds import DATUM, FEATURE
from symcavity.model.names import family_name, fresh_name
from symcavity.model.quantities import Quenched, SiteQuantity, Variable, site_quantities

EXAMPLE = 'K = Kernel("K", phi, rho); Sum(K[mu, nu]*lam[nu], (nu, 1, P))'


class Kernel(DataAtom):
    """A kernel by its eigenfunctions and eigenvalues, ``K[mu, nu] = sum_i rho[i]*phi[mu, i]*phi[nu, i]``.

    Parameters
    ----------
    name : str
        Its name.
    functions : Coupling
        ``phi[mu, i]``: the value of eigenfunction i at example mu.
    values : Quenched
        ``rho[i]``: the eigenvalues, which are positive.
    """

    __slots__ = ()

    def __new__(cls, name: Any, functions: Any, values: Any) -> Kernel:
        """Return the kernel, read and checked."""
        read = isinstance(functions, Coupling) and functions.slots == (DATUM, FEATURE)
        if not (read and isinstance(values, Quenched) and values.slots == (FEATURE,)):
            raise DeclarationError(
                f"The kernel {name} has the eigenfunctions {functions!r} and the eigenvalues {values!r}.",
                "a Coupling between data and features, and a Quenched parameter of the features",
                'phi, rho = Coupling("phi", variance=1), Quenched("rho", i); Kernel("K", phi, rho)',
            )
        return cls._make(family_name(name, "kernel"), functions, values)

    @property
    def name(self) -> str:
        """The declared name."""
        return str(self._data[0])

    @property
    def functions(self) -> Coupling:
        """The eigenfunctions at the examples."""
        return self._data[1]

    @property
    def values(self) -> Quenched:
        """The eigenvalues."""
        return self._data[2]

    def __getitem__(self, index: Any) -> KernelValue:
        """The kernel at two examples."""
        if not isinstance(index, tuple) or len(index) != 2:
            raise DeclarationError(f"The kernel {self} is indexed by {index!r}.", "two examples", f"{self}[mu, nu]")
        return KernelValue(self, *map(sympify, index))

    def __iter__(self) -> Any:
        raise TypeError(f"{self.name} is a kernel of two examples; write {self.name}[mu, nu].")

    def _sympystr(self, _printer: Any) -> str:
        return self.name


class KernelValue(Node):
    """The value of a kernel at two examples."""

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self.args[0]

    @property
    def free_symbols(self) -> set[Any]:
        """The indices of the two examples."""
        return self.args[1].free_symbols | self.args[2].free_symbols

    @property
    def expanded(self) -> Expr:
        """The value by eigenfunctions (Mercer)."""
        phi, rho, i = self.kernel.functions, self.kernel.values, FEATURE.index
        return Sum(rho[i] * phi[self.args[1], i] * phi[self.args[2], i], FEATURE.range)

    def _sympystr(self, printer: Any) -> str:
        return f"{self.kernel.name}[{printer.doprint(self.args[1])}, {printer.doprint(self.args[2])}]"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        first, second = (f"x^{{{printer.doprint(k)}}}" for k in self.args[1:])
        tex = f"{self.kernel.name}\\left({first}, {second}\\right)"
        return f"{tex}^{{{exp}}}" if exp else tex


class Expansion:
    """A problem without its kernels: sums of them by a variable of the features.

    Attributes
    ----------
    kernel : Kernel or None
    coefficients, weights : SiteQuantity
        ``lambda[mu]``, and ``w[i]``, which takes its place.
    replaced : dict
        What was written, and what stands in its place.
    """

    def __init__(self, entries: Iterable[Any]) -> None:
        entries = list(entries)
        nodes = sorted({node for e in entries for node in e.atoms(KernelValue)}, key=str)
        self.kernel = nodes[0].kernel if nodes else None
        self.replaced: dict[Expr, Expr] = {}
        if self.kernel is None:
            return
        if len({node.kernel for node in nodes}) > 1:
            raise DeclarationError("The problem has several kernels.", "one kernel", EXAMPLE)
        sums = {s for e in entries for s in e.atoms(Sum) if s.function.has(KernelValue) and not s.function.has(Sum)}
        taken = {q.family.name for e in entries for q in site_quantities(e)}
        name = fresh_name(taken, "w", "c", "w")
        found = {q.family for s in sums for q in site_quantities(s, Variable)}
        if len(found) != 1 or {kind for f in found for kind in f.slots} != {DATUM}:
            raise self._refused(nodes[0])
        (family,) = found
        self.coefficients: SiteQuantity = family.at_site()
        self.weights: SiteQuantity = Variable(name, FEATURE.index).at_site()
        for total in sorted(sums, key=str):
            self.replaced[total] = self._read(total, family)

    def __bool__(self) -> bool:
        return self.kernel is not None

    def __call__(self, entry: Any) -> Any:
        """Return an entry of the declaration in the variable of the features.

        Raises
        ------
        DeclarationError
            If the coefficients stand elsewhere than in sums of the kernel.
        """
        if not self or not isinstance(entry, Basic):
            return entry
        out = entry.xreplace(self.replaced)
        left = [*out.atoms(KernelValue), *(q for q in out.atoms(SiteQuantity) if q.family == self.coefficients.family)]
        if left:
            raise self._refused(left[0])
        return out

    def _read(self, total: Sum, family: Variable) -> Expr:
        """One sum of the kernel: a function of an example, or its squared norm."""
        indices = [lim[0] for lim in total.limits]
        (node, *more) = [f for f in Mul.make_args(total.function) if isinstance(f, KernelValue)]
        whole = all(tuple(lim)[1:] == (1, DATUM.size) for lim in total.limits)
        phi, rho, i = node.kernel.functions, node.kernel.values, FEATURE.index
        ends = list(node.args[1:])
        constant = total.function / node
        for k in indices:
            constant = constant / family[k]
        if more or not whole or constant.has(SiteQuantity, KernelValue, *indices) or not set(indices) <= set(ends):
            raise self._refused(total)
        if len(indices) == 2:
            return constant * Sum(self.weights**2 / rho[i], FEATURE.range)
        (other,) = [k for k in ends if k not in indices] or [None]
        if len(indices) != 1 or other is None:
            raise self._refused(total)
        return Sum(constant * phi[other, i] * self.weights, FEATURE.range)

    @staticmethod
    def _refused(what: Any) -> DeclarationError:
        return DeclarationError(
            f"The coefficients of a kernel stand in {what}.",
            "functions Sum(K[mu, nu]*lam[nu], (nu, 1, P)) of an example and their squared norm "
            "Sum(K[mu, nu]*lam[mu]*lam[nu], (mu, 1, P), (nu, 1, P))",
            EXAMPLE,
        )
