"""The systems that users declare, with the verbs that derive their theories and draw their instances."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from symcavity.face.identities import Symmetry
from symcavity.face.instances import WithInstances
from symcavity.face.refusals import refuse_motion
from symcavity.face.theories import Theory
from symcavity.model.system import System as SystemData
from symcavity.record.verbs import with_verbs

if TYPE_CHECKING:
    from sympy import Expr, Symbol

    from symcavity.method.equivalent import LinearEquivalent as LinearEquivalentData


class BipartiteSystem(WithInstances, SystemData):
    """A system of coupled kinds of sites: features, data, and those that :func:`symcavity.Sites` declares.

    Parameters
    ----------
    equations : sequence of Eq
        Equations of a site (one free index, such as ``i`` or ``mu``), whose coupling to other sites is a sum
        ``Sum(x[mu, i]*..., (i, 1, N))``; and global conditions without a free index, such as
        ``Eq(Sum(y[mu]*lam[mu], (mu, 1, P)), 0)``.
    conditions : sequence of Complementary, or bounds
        Complementarity conditions of a site; ``n[i] >= 0`` where the equation of ``n[i]`` has several roots.
        Equations and pairs may be in either list.
    fixed : sequence of Eq
        Conditions on averages, ``Eq(average(w[i]**2), 1/kappa**2)``.
    initial : sequence of Eq
        Of states that move: their first values, ``Eq(x[i, 0], a[i])``.
    name : str, optional
        A title for the derivation.
    cite : str, optional
        Works, separated by semicolons, which derivations cite; equation numbers in ``source`` are those of the first.
    says : str, optional
        What is found about the system, in plain words: a sentence or two, with which its document begins.
    source : dict, optional
        Its equation numbers by the key of the step: ``{"datum.cavity_field": "40"}``.
    named : dict, optional
        Names of observables: ``{E: average(...)}``.

    Raises
    ------
    DeclarationError
        Before any work, if the declaration is not a system of this form.

    Notes
    -----
    The engine adds the sources ``I_i`` and ``I^mu`` itself, to the right-hand side of each equation
    that carries a random field (paper, equations 28, 29, 126, 127).  The keywords after ``named`` are those of systems
    that the package makes of a problem: its optimality conditions, its descent, its measures.

    Examples
    --------
    >>> from sympy import Eq, Sum, Symbol
    >>> from symcavity import BipartiteSystem, Coupling, Datum, Feature, N, P, i, mu
    >>> x, w, e = Coupling('x'), Feature('w'), Datum('e')
    >>> gamma = Symbol('gamma', positive=True)
    >>> error = Eq(e[mu], 1 - Sum(x[mu, i]*w[i], (i, 1, N)))
    >>> ridge = BipartiteSystem([error, Eq(gamma*w[i], Sum(x[mu, i]*e[mu], (mu, 1, P)))])
    >>> ridge.cavity().unknowns
    [S_e, q_e, S_w, q_w]
    """

    def _system(self) -> BipartiteSystem:
        return self

    @cached_property
    def _cavity(self) -> Theory:
        return Theory(self, naive=False)

    @cached_property
    def _naive(self) -> Theory:
        return Theory(self, naive=True)

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs: a theory is derived again there, if one is requested."""
        return {name: value for name, value in vars(self).items() if name not in ("_cavity", "_naive")}

    def cavity(self) -> Theory:
        """Derive the cavity theory; a second call returns the same object.

        Raises
        ------
        UnsupportedLaw
            If the law of a site has no form that the engine can solve.
        """
        return self._cavity

    def naive(self) -> Theory:
        """Derive the naive mean field: the self-coupling of the features dropped."""
        refuse_motion(self, "the naive analysis")
        return self._naive

    def symmetry(self) -> Symmetry:
        """Look for the rescaling of the datum states that makes the naive analysis right."""
        from symcavity.method.symmetry import find_symmetry

        return with_verbs(Symmetry, find_symmetry(self))

    def as_equivalent(self, found: LinearEquivalentData) -> LinearEquivalent:
        """The linear equivalent that was found of this system's theory, as a declaration."""
        return LinearEquivalent(list(found.equations), name="A linear equivalent").equivalent_to(found)

    def _repr_latex_(self) -> str:
        from symcavity.writing.displays import system_latex

        return system_latex(self)


System = BipartiteSystem


class LinearEquivalent(BipartiteSystem):
    """A linear system with the couplings of another one, as :meth:`Theory.linear_equivalent` returns it.

    Attributes
    ----------
    slopes, noises : dict
        The parameters of its equations, in averages of the theory that it is equivalent to.
    """

    _found: LinearEquivalentData
    slopes: dict[Symbol, Expr]
    noises: dict[Symbol, Expr]

    def equivalent_to(self, found: LinearEquivalentData) -> Self:
        """The same system, which knows to what it is equivalent."""
        self._found, self.slopes, self.noises = found, dict(found.slopes), dict(found.noises)
        return self

    def where(self, marked: Callable[[Any], Any]) -> Self:
        """Return the same system with a function applied to all of its expressions."""
        return super().where(marked).equivalent_to(self._found)

    def at(self, solution: Any) -> dict[Any, Any]:
        """The values at which it is equivalent to a solution of the theory."""
        return self._found.at(solution)
