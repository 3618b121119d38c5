"""Functions of data that are sums of a kernel, as sums over features.

A function ``f(x) = sum_nu K(x, x^nu) lambda^nu`` with ``K(x, x') = sum_i rho_i phi_i(x) phi_i(x')`` is
``sum_i w_i phi_i(x)`` with ``w_i = rho_i sum_nu lambda^nu phi_i(x^nu)``, and its squared norm
``sum_(mu nu) K(x^mu, x^nu) lambda^mu lambda^nu`` is ``sum_i w_i^2 / rho_i``.  A problem that knows the coefficients by
such functions and norms only is one in w: by the representer theorem its minimum over all w has this form.
"""

from __future__ import annotations

from typing import Any

from sympy import Basic, Expr, Mul, Sum

from symcavity.errors import DeclarationError
from symcavity.model.kernels import EXAMPLE, KernelValue
from symcavity.model.kinds import DATUM, FEATURE
from symcavity.model.names import fresh_name
from symcavity.model.quantities import SiteQuantity, Variable, site_quantities
from symcavity.model.rewriting import Declaration, Rewriting


class Kernels(Rewriting):
    """A problem without its kernels: sums of them by a variable of the features.

    Attributes
    ----------
    kernel : Kernel or None
    coefficients, weights : SiteQuantity
        ``lambda[mu]``, and ``w[i]``, which takes its place.
    replaced : dict
        The declared expression, and its replacement.
    """

    key = "kernel"

    def __init__(self, declaration: Declaration) -> None:
        entries = [] if declaration.objective is None else [e for e in declaration.parts if isinstance(e, Basic)]
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

    def apply(self, declaration: Declaration) -> Declaration:
        """Return the declaration in the variable of the features.

        Raises
        ------
        DeclarationError
            If the coefficients stand elsewhere than in sums of the kernel.
        """
        return declaration.mapped(self._written) if self else declaration

    @property
    def symbols(self) -> dict[Expr, Expr]:
        """The variable of the features."""
        if self.kernel is None:
            return {}
        phi, rho, i = self.kernel.functions, self.kernel.values, FEATURE.index
        return {self.weights: rho[i] * Sum(self.coefficients * phi[DATUM.index, i], DATUM.range)}

    def _written(self, entry: Any) -> Any:
        if not isinstance(entry, Basic):
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
