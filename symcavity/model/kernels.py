"""Kernels by their eigenfunctions and eigenvalues."""

from __future__ import annotations

from typing import Any

from sympy import Expr, Sum

from symcavity.algebra.door import as_sympy
from symcavity.algebra.node import Node, part
from symcavity.errors import DeclarationError
from symcavity.model.atoms import NamedAtom, entry
from symcavity.model.couplings import Coupling
from symcavity.model.kinds import DATUM, FEATURE
from symcavity.model.names import family_name
from symcavity.model.quantities import Quenched

EXAMPLE = 'K = Kernel("K", phi, rho); Sum(K[mu, nu]*lam[nu], (nu, 1, P))'


class Kernel(NamedAtom):
    """A kernel by its eigenfunctions and eigenvalues, ``K[mu, nu] = sum_i rho[i]*phi[mu, i]*phi[nu, i]``.

    Parameters
    ----------
    name : str
        Its name.
    functions : Coupling
        ``phi[mu, i]``: the value of eigenfunction i at example mu.
    values : Quenched
        ``rho[i]``: the eigenvalues, which are positive.

    Examples
    --------
    >>> from sympy import Symbol
    >>> from symcavity import Coupling, Kernel, Quenched, i, mu
    >>> nu = Symbol('nu', integer=True)
    >>> phi, rho = Coupling('phi', variance=1), Quenched('rho', i)
    >>> K = Kernel('K', phi, rho)
    >>> K[mu, nu]
    K[mu, nu]
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

    functions: Coupling = entry(1, "The eigenfunctions at the examples.")
    values: Quenched = entry(2, "The eigenvalues.")

    def __getitem__(self, index: Any) -> KernelValue:
        """The kernel at two examples."""
        if not isinstance(index, tuple) or len(index) != 2:
            raise DeclarationError(f"The kernel {self} is indexed by {index!r}.", "two examples", f"{self}[mu, nu]")
        return KernelValue(self, *map(as_sympy, index))

    def __iter__(self) -> Any:
        raise TypeError(f"{self.name} is a kernel of two examples; write {self.name}[mu, nu].")


class KernelValue(Node):
    """The value of a kernel at two examples."""

    kernel: Kernel = part(0, "The kernel.")

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
