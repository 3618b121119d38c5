"""The problems that users declare, with the verbs that derive their theories and draw their instances."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

from symcavity.errors import ValuesError
from symcavity.face.identities import Symmetry
from symcavity.face.instances import WithInstances
from symcavity.face.systems import BipartiteSystem
from symcavity.face.theories import Theory
from symcavity.model.problem import Problem as ProblemData
from symcavity.record.verbs import with_verbs


class Problem(WithInstances, ProblemData):
    """A problem over the states of sites of which no convexity is asked: several minima, discrete states.

    Parameters
    ----------
    minimize : Expr
        Sums over the sites of one side, as of :class:`ConvexProblem`; pairs of one kind through symmetric couplings,
        ``-Sum(s[i]*Sum(J[i, j]*s[j], (j, 1, N)), (i, 1, N))/2``, with ``Coupling("J", between=(i, i), reciprocity=1)``.
        Coupling sums may contain products of states of one site.
    subject_to : sequence of relations
        Inequalities (``>=``, ``<=``) at every site.
    fixed, name, cite, says, source, named
        As of :class:`ConvexProblem`.

    Raises
    ------
    DeclarationError
        Before any work, if the declaration is not a problem of this form.

    Examples
    --------
    >>> from sympy import Sum, Symbol
    >>> from symcavity import Coupling, Feature, N, Problem, i
    >>> J, s, j = Coupling('J', between=(i, i), reciprocity=1), Feature('s', values=(-1, 1)), Symbol('j', integer=True)
    >>> magnet = Problem(-Sum(s[i]*Sum(J[i, j]*s[j], (j, 1, N)), (i, 1, N))/2)
    >>> magnet.gibbs(Symbol('beta', positive=True)).cavity().unknowns
    [S_m, q_m]
    """

    asks_convexity = False

    def gibbs(self, beta: Any) -> BipartiteSystem:
        """Return the Gibbs measure ``exp(-beta*objective)`` of this problem, as a system of thermal means.

        Its theory takes the temperature along: ``average(w[i]**2)`` is a thermal second moment, averaged over the
        disorder, and ``average(expect(w[i])**2)`` the square of a thermal mean.

        Parameters
        ----------
        beta : Symbol or number
            The inverse temperature, positive, in units of the objective.

        Raises
        ------
        DeclarationError
            If beta is not positive.
        UnsupportedLaw
            For global variables, and kinds of sites that send or hear several fields of states.
        """
        from symcavity.method.gibbs import gibbs

        return with_verbs(BipartiteSystem, gibbs(self, beta))

    def _system(self) -> Any:
        return self.lowest()

    def __getitem__(self, name: str) -> Any:
        """The family of the variable with the given name: ``problem["h"][mu]``."""
        return self._system()[name]

    def lowest(self, select: str = "lowest") -> BipartiteSystem:
        """Return the lowest minimum of this problem as a system of sites, at zero temperature.

        A site is at the lowest of the minima of its energy, and switches where two are equally low.

        Parameters
        ----------
        select : str
            ``'lowest'``; or ``'local'``, where a site follows the minimum that it has without feedback while the
            feedback is turned on, as a dynamics that begins there would. Where no site has several minima both are
            the same.

        Raises
        ------
        ValuesError
            For another word.
        UnsupportedLaw
            For energies of a site that are not squares between points, and declarations without a Gibbs measure here.
        """
        if select == "lowest":
            return self._lowest
        from symcavity.method.lowest import lowest

        return with_verbs(BipartiteSystem, lowest(self, select))

    @cached_property
    def _lowest(self) -> BipartiteSystem:
        from symcavity.method.lowest import lowest

        return with_verbs(BipartiteSystem, lowest(self))

    def cavity(self, select: str = "lowest") -> Theory:
        """Derive the cavity theory of the lowest minimum, at zero temperature: that of :meth:`lowest`.

        The record says what it assumes: that the lowest minimum is one state (replica symmetry).
        """
        return self.lowest(select).cavity()

    def naive(self) -> Theory:
        """Derive the naive mean field: the self-coupling of the features dropped."""
        return self._system().naive()

    def symmetry(self) -> Symmetry:
        """Return the rescaling that makes the naive analysis right, or the reason why there is none."""
        return self._system().symmetry()

    def _repr_latex_(self) -> str:
        from symcavity.writing.displays import problem_latex

        return problem_latex(self)


class ConvexProblem(Problem):
    """A high-dimensional convex optimization problem over the states of features, data, and further kinds of sites.

    Parameters
    ----------
    minimize : Expr
        Sums over the sites of a kind, ``Sum(w[i]**2, (i, 1, N))/2 + C*Sum(xi[mu], (mu, 1, P))``.  The
        summand of a datum may contain coupling sums ``Sum(x[mu, i]*w[i], (i, 1, N))``, which are of order one.  All
        terms are of order N, a penalty on a global variable, ``N*b**2/2``, too; or all of order one, if sums are means.
    subject_to : sequence of relations
        Inequalities (``>=``, ``<=``) and equalities ``Eq``.  One with a site index holds at every site of its kind; one
        without is a condition on a sum over all sites, ``Eq(Sum(w[i], (i, 1, N)), N)``, or a range of a parameter.
    fixed : sequence of Eq
        Values of averages at the solution, ``Eq(average(w[i]**2), 1/kappa**2)``.
    name : str, optional
        A title.
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
        Before any work, if the declaration is not a problem of this form.
    NotConvex
        If an objective or a constraint is provably not convex.

    Examples
    --------
    >>> from sympy import Sum, Symbol
    >>> from symcavity import ConvexProblem, Coupling, Feature, N, P, alpha, average, i, mu
    >>> x, w, gamma = Coupling('x'), Feature('w'), Symbol('gamma', positive=True)
    >>> h = Sum(x[mu, i]*w[i], (i, 1, N))
    >>> ridge = ConvexProblem(Sum((1 - h)**2, (mu, 1, P))/2 + gamma*Sum(w[i]**2, (i, 1, N))/2)
    >>> round(float(ridge.cavity().solve({alpha: 2, gamma: 1})[average(w[i]**2)]), 6)
    0.207107
    """

    asks_convexity = True

    @cached_property
    def _conditions(self) -> BipartiteSystem:
        from symcavity.method.kkt import optimality

        return with_verbs(BipartiteSystem, optimality(self))

    def _system(self) -> BipartiteSystem:
        return self.kkt()

    def copies(self, count: int = 2, share: Mapping[Any, Any] | None = None) -> ConvexProblem:
        """Several copies of this problem that share their couplings in part, as one problem.

        The states and globals of copy ``k`` are called ``w_k``, ``b_k``; so are the couplings, quenched parameters and
        parameters that it has for itself.  Overlaps between fits of overlapping data are averages,
        ``average(w_1[i]*w_2[i])`` with ``w_1 = problem.copies(...)["w_1"]``.

        Parameters
        ----------
        count : int
            How many copies.
        share : mapping, optional
            By coupling or quenched parameter how much the copies share, from 0 to 1, a number or a symbol; by symbol 0
            where each copy has its own.  Everything else is the same in all copies.  Of couplings, and of quenched
            parameters with a Gaussian law, it is the correlation between copies; of any other law the probability that
            a value is the same in all copies, and drawn for each otherwise.  Either way the covariance between copies
            is this share of the variance.

        Raises
        ------
        DeclarationError
            For shares of unknown words or beyond their range, parts of parameters whose law is left open, names that
            are taken, and fixed averages.
        """
        from symcavity.model.copies import copied

        objective, constraints, name, own = copied(self, count, share or {})
        problem = ConvexProblem(objective, constraints, name=name, cite=self.cite, says=self.says)
        problem._of_copies = own
        return problem

    _of_copies: Mapping[str, Any] = MappingProxyType({})

    def __getitem__(self, name: str) -> Any:
        """The family of the variable with the given name: ``problem["w"][i]``, ``problem["lambda"][mu]``.

        Of copies also what each has for itself: ``copies["y_1"][mu]``, to observe it or to name it in ``over=``.
        """
        return self._of_copies.get(name) or self.kkt()[name]

    def kkt(self) -> BipartiteSystem:
        """Return the optimality conditions: stationarity, feasibility, slackness, as a system."""
        return self._conditions

    def cavity(self, select: str = "lowest") -> Theory:  # noqa: ARG002 - a convex problem has one minimum
        """Derive the cavity theory of the optimality conditions; a second call returns the same object.

        A convex problem has one minimum, so that ``select`` changes nothing.

        Raises
        ------
        UnsupportedLaw
            If the law of a site has no form that the engine can solve.
        """
        return self.kkt().cavity()

    def descent(self, rate: Any, momentum: Any = 0, batch: Any = 1, *, initial: Any = ()) -> BipartiteSystem:
        """Gradient descent on this problem, as a system whose states move in steps.

        ``w(t + 1) = w(t) + momentum*(w(t) - w(t - 1)) - rate*(slope of the objective in w)``, from zero on.

        Parameters
        ----------
        rate : Expr or number
            The learning rate, of an objective that is written in proportion to N: a
            mean over data is taken times N.
        momentum : Expr or number
            The momentum: the fraction of the last step that is added to the next.
        batch : Expr or number
            The share of the data in a step: each is drawn with this probability, drawn anew at each step. Their losses
            count ``1/batch`` times, so that the mean of many steps is a step with all data; 1 is all data.
        initial : sequence of Eq
            Where states begin, if not at zero: ``Eq(w[i], a[i])``.

        Returns
        -------
        System
            Observables are written in the words of the problem: ``run[average(w[i]**2)]`` is an array over the
            steps.

        Raises
        ------
        UnsupportedLaw
            If there are constraints, or a slope of the objective jumps.
        DeclarationError
            For an invalid rate, momentum, batch or initial value.
        """
        from symcavity.method.descent import descent

        if rate is None:
            raise ValuesError("The rate of the descent is None.", "a positive rate; problem.flow() in continuous time")
        return with_verbs(BipartiteSystem, descent(self, rate, momentum, batch, initial))

    def flow(self, *, initial: Any = ()) -> BipartiteSystem:
        """Gradient flow on this problem, as a system in continuous time: ``dw/dt = -(slope of the objective in w)``.

        Parameters
        ----------
        initial : sequence of Eq
            Where states begin, if not at zero: ``Eq(w[i], a[i])``.

        Returns
        -------
        System
            Observables are written in the words of the problem, as those of :meth:`descent`.

        Raises
        ------
        UnsupportedLaw, DeclarationError
            As :meth:`descent`.
        """
        from symcavity.method.descent import descent

        return with_verbs(BipartiteSystem, descent(self, None, initial=initial))
