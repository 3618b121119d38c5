"""Couplings between sites: random matrices by their first two moments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Add, Expr, Mul, S, Symbol, Tuple, expand_mul, sqrt

from symcavity.algebra.indexed import fresh_index
from symcavity.errors import DeclarationError
from symcavity.model.atoms import entry
from symcavity.model.attributes import kind_of
from symcavity.model.exact import exact
from symcavity.model.keywords import known_words
from symcavity.model.kinds import Kind, N, i, in_units_of_n, mu
from symcavity.model.names import component_range, family_name
from symcavity.model.quantities import Family, Quenched, site_quantities


def _separated(expr: Expr, where: str) -> Expr:
    """An expression as a sum of products of what belongs to one site each."""
    out = expr if len({k for q in site_quantities(expr) for k in q.site}) < 2 else expand_mul(expr)
    for term in Add.make_args(out):
        for factor in Mul.make_args(term):
            if len({k for q in site_quantities(factor) for k in q.site}) > 1:
                raise DeclarationError(
                    f"{where} is {expr}: {factor} does not factorize into quantities of the two sites.",
                    "sums of products, (l[i] + s[mu])/N or l[i]*s[mu]/N",
                    "an expansion in a few such products",
                )
    return out


def _indices(first: Kind, second: Kind) -> tuple[Symbol, Symbol]:
    """The indices of the two ends of a coupling: different ones of one kind, too."""
    return first.index, second.index if first != second else fresh_index(second.index, {first.index})


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
        Mean of one coupling: a sum of products of quenched parameters of both sites over ``N``, as in
        ``y[mu]*m[i]/N``, or over ``sqrt(N)``, as in ``c/sqrt(N)``.  Zero by default.  A mean of order ``1/sqrt(N)``
        gives each sum a part of order ``sqrt(N)``, which has to balance the threshold of that order that is
        written beside it, zero without one.
    correlation : dict, optional
        Other couplings between the same sites, by the coefficient of their correlation with this one at equal
        indices: ``{x: rho}`` says ``<x[mu, i] z[mu, i]> = rho sqrt(var x var z)``.
    reciprocity : Expr, optional
        Of couplings between sites of one kind, ``<J[i, j] J[j, i]> / <J[i, j]**2>``: between -1 and 1, 0 by default.
        The coupling of a site to itself has the variance times ``1 + reciprocity``.

    Notes
    -----
    Only the first two moments enter at large N (central limit theorem; paper, equations 11 and 12).

    Examples
    --------
    >>> from symcavity import Coupling, N, Quenched, i, mu
    >>> l = Quenched('l', i)
    >>> Coupling('x', variance=l[i]/N)[mu, i]
    x[mu, i]
    """

    _word = "coupling"

    @known_words
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
        here, there = _indices(*ends)
        if ends[0] == ends[1]:
            far = {index for q in site_quantities(centre) for index in q.site.values()} - {here}
            centre = centre.xreplace({far.pop(): there}) if len(far) == 1 else centre
        for word, expr, known in (("variance", scale, {k.index for k in ends}), ("mean", centre, {here, there})):
            for q in site_quantities(expr):
                if not isinstance(q.family, Quenched) or any(q.site[k] not in known or k not in ends for k in q.site):
                    both = " and ".join(f"l[{index}]" for index in sorted(known, key=str))
                    raise DeclarationError(
                        f"{q} stands in the {word} of {name}.",
                        f"quenched parameters of the sites that are coupled, {both}",
                    )
        scale = _separated(scale, f"The variance of {name}")
        inner = component_range(components)
        _check_mean(centre, name, S.One if in_units_of_n(scale).has(N) else sqrt(N), vector=bool(inner))
        word = family_name(name, cls._word)
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
    def slots(self) -> tuple[Kind, ...]:
        """The two kinds of site that are coupled, in the order of the indices."""
        return self._data[3], self._data[4]

    variance: Expr = entry(2, "The variance of one coupling, at the canonical site indices.")
    mean: Expr = entry(5, "The mean of one coupling, at the indices of its ends.")

    @property
    def ends(self) -> tuple[Symbol, Symbol]:
        """The indices at which the mean is written."""
        return _indices(*self.slots)

    @property
    def correlation(self) -> dict[Coupling, Expr]:
        """The coefficients of its correlations with other couplings at equal indices."""
        return dict(self._data[6])

    reciprocity: Expr = entry(7, "The coefficient of the correlation of two couplings with turned indices.")

    @property
    def moments(self) -> tuple[Expr, ...]:
        """The expressions in its second moments: the variance, and the coefficients of correlations."""
        return (self.variance, *self.correlation.values(), self.reciprocity)

    def centred(self, name: str, partners: Mapping[Coupling, Coupling], unit: Expr = S.One) -> Coupling:
        """The same couplings without their mean, in a unit, under another name; their partners may have others too."""
        pairs = Tuple(*(Tuple(partners.get(other, other), rho) for other, rho in self.correlation.items()))
        variance = self.variance / unit**2
        return self._make(name, self._data[1], variance, *self._data[3:5], S.Zero, pairs, self.reciprocity)

    def copied(self, name: str, rule: Mapping[Any, Any], correlation: Mapping[Coupling, Expr]) -> Coupling:
        """Couplings of the same moments in other quenched parameters, correlated with others."""
        pairs = Tuple(*(Tuple(other, rho) for other, rho in correlation.items()))
        variance, mean = (moment.xreplace(dict(rule)) for moment in (self.variance, self.mean))
        return self._make(name, self._data[1], variance, *self._data[3:5], mean, pairs, self.reciprocity)

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


def _check_mean(mean: Expr, name: str, unit: Expr, *, vector: bool) -> None:
    """Refuse a mean that is of another order than 1/N or 1/sqrt(N), in units of what its sums are divided by."""
    if mean == 0:
        return
    for term in Add.make_args(expand_mul(mean)):
        if any(not in_units_of_n(term * scale / unit).cancel().has(N) for scale in (N, sqrt(N))):
            continue
        raise DeclarationError(
            f"The mean {mean} of {name} is neither of order 1/N nor of order 1/sqrt(N)"
            + (", in units of sqrt(N)." if unit != 1 else "."),
            "means of order 1/N, sums of products of quenched parameters, mean=y[mu]*m[i]/N; "
            "means of order 1/sqrt(N), mean=c/sqrt(N); sqrt(N) times that where the variance is of order one",
        )
    if vector:
        raise DeclarationError(
            f"{name} has components and the mean {mean}.",
            "means of couplings without components",
            f"one coupling for each component, with a name of its own: Coupling(\"{name}_1\", mean=...)",
        )
