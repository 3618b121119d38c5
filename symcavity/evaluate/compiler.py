"""Compile the engine's expressions to functions: NumPy in double, mpmath at any precision.

Averages over sites, Gaussian averages and implicit averages are nodes of their own; each becomes a
quadrature or a sum around the compiled body, so nested averages need no special case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mpmath
import numpy as np
from sympy import Dummy, Expr, Sum, Symbol, lambdify, oo

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.phi import mp_phi
from symcavity.algebra.polyhedral import CellAverage
from symcavity.errors import NotConverged, ValuesError
from symcavity.evaluate.quenched import SiteLaw
from symcavity.evaluate.special import np_phi
from symcavity.model.quantities import Average, Quenched, SiteQuantity
from symcavity.sites.sets.averages import ProjectionAverage

NODES = (Average, Sum, GaussianAverage, ImplicitAverage)
Environment = Mapping[Any, Any]
LAWS = "laws"
REACH = 9.0  # the Gaussian weight beyond nine standard deviations is below double precision
FINEST = 1024


class Compiled:
    """A compiled expression: call it with a mapping from symbols to values.

    Parameters
    ----------
    expr : Expr
    backend : str
        ``'numpy'`` (values broadcast) or ``'mpmath'`` (scalars, at the current precision).

    Notes
    -----
    Under the key ``LAWS`` the mapping holds the :class:`SiteLaw` of each side, where averages over sites
    occur; so one compiled expression serves all values.
    """

    def __init__(self, expr: Expr, backend: str) -> None:
        self.expr, self.backend = expr, backend
        nodes = _outermost(expr)
        self._marks = {node: Dummy(f"n{k}") for k, node in enumerate(nodes)}
        body = expr.xreplace(self._marks)
        quantities = sorted(body.atoms(SiteQuantity), key=str)
        self._quantities = {q: Dummy(q.family.name) for q in quantities}
        body = body.xreplace(self._quantities)
        marks = set(self._marks.values()) | set(self._quantities.values())
        self._symbols = sorted(body.free_symbols - marks, key=str)
        self._nodes = [_node(node, backend) for node in nodes]
        arguments = [*self._symbols, *self._quantities.values(), *self._marks.values()]
        modules: list[Any] = (
            [{"phi": np_phi}, "scipy", "numpy"] if backend == "numpy" else [{"phi": mp_phi}, "mpmath"]
        )
        self._call = lambdify(arguments, body, modules, cse=True)

    def __call__(self, env: Environment) -> Any:
        """Evaluate at the values of a mapping."""
        try:
            plain = [env[s] for s in self._symbols]
        except KeyError as missing:
            raise ValuesError(f"{missing.args[0]} has no value.", "a value for every parameter") from None
        quenched = [env[q.family] for q in self._quantities]
        return self._call(*plain, *quenched, *(node(env) for node in self._nodes))


def _outermost(expr: Expr) -> list[Expr]:
    found: dict[Expr, None] = {}

    def walk(node: Expr) -> None:
        if isinstance(node, NODES):
            found.setdefault(node)
            return
        for arg in node.args:
            walk(arg)

    walk(expr)
    return list(found)


def _node(node: Expr, backend: str) -> Callable[[Environment], Any]:
    if isinstance(node, Average | Sum):
        return _SiteAverage(node, backend)
    if isinstance(node, ProjectionAverage):
        from symcavity.evaluate.set_averages import Projected

        return Projected(node, Compiled, backend)
    if isinstance(node, CellAverage):
        from symcavity.evaluate.polyhedra import Cell

        return Cell(node, Compiled, backend)
    if isinstance(node, GaussianAverage):
        return _Gaussian(node, backend)
    return _Implicit(node, backend)


def _spread(env: Environment, keep: set[Any]) -> dict[Any, Any]:
    """Give arrays a last axis of length one, over which nodes or sites will run."""
    return {
        k: v[..., None] if isinstance(v, np.ndarray) and v.ndim and k not in keep else v
        for k, v in env.items()
    }


def _own_quantities(body: Expr) -> set[SiteQuantity]:
    """Return the site quantities that an average binds: those of averages inside it are bound there."""
    if isinstance(body, SiteQuantity):
        return {body}
    if isinstance(body, Average | Sum):
        return set()
    return set().union(*(_own_quantities(arg) for arg in body.args))


class _SiteAverage:
    """An average or a sum over the sites of one side."""

    def __init__(self, node: Expr, backend: str) -> None:
        body = node.args[0]
        families = sorted({q.family for q in _own_quantities(body)}, key=lambda f: f.name)
        side = families[0].slots[0] if families else None  # None: what varies was averaged inside already
        self.side, self.families = side, families
        self.body = Compiled(body, backend)
        self.backend = backend
        self.size = node.limits[0][2] if isinstance(node, Sum) else None

    def __call__(self, env: Environment) -> Any:
        scale = env[self.size] if self.size is not None else 1
        if self.side is None:
            return scale * self.body(env)
        law: SiteLaw = env[LAWS][self.side]
        if self.backend == "mpmath":
            return scale * self._mpmath(env, law)
        columns, weights = law.columns()
        inner = _spread(env, set())
        values = self.body({**inner, **columns})
        values = np.asarray(values)
        if values.ndim == 0 or values.shape[-1] == 1:
            return scale * (values[..., 0] if values.ndim else values)
        total = values.mean(axis=-1) if law.uniform and not law.continuous else values @ weights
        return scale * total

    def _mpmath(self, env: Environment, law: SiteLaw) -> Any:
        mp = mpmath.mp
        needed = [q for q, _ in law.continuous if q in self.families]
        if len(needed) > 2:
            raise ValuesError(
                f"{len(needed)} continuous distributions in one average at more than 15 digits.",
                "at most two continuous quenched parameters a side at high precision",
            )
        densities = [_density(law, q) for q in needed]
        used = [k for k, q in enumerate(law.names) if q in self.families]
        table = _table(law, used)
        total = mp.zero
        for values, weight in table:
            here = {**env, **{law.names[k]: v for k, v in zip(used, values, strict=True)}}
            if not densities:
                total += weight * self.body(here)
                continue

            def integrand(*x: Any, here: dict[Any, Any] = here) -> Any:
                w = mp.one
                for value, (pdf, _) in zip(x, densities, strict=True):
                    w *= pdf(value)
                return w * self.body({**here, **dict(zip(needed, x, strict=True))})

            total += weight * mp.quad(integrand, *(ends for _, ends in densities))
        return total


def _table(law: SiteLaw, used: list[int]) -> list[tuple[tuple[Any, ...], Any]]:
    """Joint values of the parameters that are needed, as mpf, with their weights."""
    mp = mpmath.mp
    if law.arrays:
        names = [law.names[k] for k in used]
        count = len(next(iter(law.arrays.values())))
        return [(tuple(mp.mpf(float(law.arrays[q][n])) for q in names), mp.one / count) for n in range(count)]
    merged: dict[tuple[Any, ...], Any] = {}
    for point, weight in zip(law.points, law.weights, strict=True):
        key = tuple(point[k] for k in used)
        merged[key] = merged.get(key, 0) + weight
    return [(tuple(to_mpf(v) for v in key), to_mpf(weight)) for key, weight in merged.items()]


def _density(law: SiteLaw, q: Quenched) -> tuple[Callable[[Any], Any], list[Any]]:
    from sympy.stats import density

    variable = next(v for name, v in law.continuous if name == q)
    x = Symbol("x", real=True)
    pdf = lambdify(x, density(variable)(x), "mpmath")
    domain = variable.pspace.domain.set
    low, high = (
        (mpmath.mpf("-inf") if domain.inf == -oo else to_mpf(domain.inf)),
        (mpmath.mpf("inf") if domain.sup == oo else to_mpf(domain.sup)),
    )
    from sympy.stats import E

    centre = to_mpf(E(variable))
    return pdf, [low, centre, high]


def to_mpf(value: Any) -> Any:
    """Return an exact value as an mpf of the current precision."""
    if isinstance(value, float | int | mpmath.mpf):
        return mpmath.mpf(value)
    if getattr(value, "is_Rational", False):
        return mpmath.mpf(int(value.p)) / int(value.q)
    return mpmath.mpf(value.evalf(mpmath.mp.dps + 5)._to_mpmath(mpmath.mp.prec))  # noqa: SLF001


def _legendre(count: int) -> tuple[np.ndarray, np.ndarray]:
    if count not in _RULES:
        _RULES[count] = np.polynomial.legendre.leggauss(count)
    return _RULES[count]


_RULES: dict[int, tuple[np.ndarray, np.ndarray]] = {}


def panel_average(f: Callable[[np.ndarray], Any], edges: np.ndarray) -> Any:
    """Integrate over consecutive panels (last axis of ``edges``) by Gauss-Legendre rules, until two agree.

    Raises
    ------
    NotConverged
        If the finest rule and the one before it differ by more than 1e-9 of the result.
    """
    previous = None
    count = 14
    while count <= FINEST:
        x, w = _legendre(count)
        middle, half = (edges[..., 1:] + edges[..., :-1]) / 2, (edges[..., 1:] - edges[..., :-1]) / 2
        nodes = middle[..., None] + half[..., None] * x
        flat = nodes.reshape(*nodes.shape[:-2], -1)
        weights = (half[..., None] * w).reshape(*nodes.shape[:-2], -1)
        with np.errstate(all="ignore"):
            value = np.sum(np.where(weights > 0, f(flat) * weights, 0.0), axis=-1)
        if previous is not None:
            gap = np.max(np.abs(value - previous) / (np.abs(value) + 1e-300)) if np.size(value) else 0.0
            if not np.all(np.isfinite(value)) or gap < 1e-13 or (count >= 112 and gap < 1e-11):
                return value
        previous = value
        count *= 2
    if gap > 1e-9:
        raise NotConverged(
            "A Gaussian average did not converge.", value, float(gap), "a smoother law, or dps above 15"
        )
    return value


class _Gaussian:
    """A Gaussian average without closed form, split at its break points."""

    def __init__(self, node: GaussianAverage, backend: str) -> None:
        self.z, self.backend = node.z, backend
        self.body = Compiled(node.expr, backend)
        self.breaks = [Compiled(b, backend) for b in node.breaks]

    def __call__(self, env: Environment) -> Any:
        if self.backend == "mpmath":
            from symcavity.algebra.quadrature import mp_gaussian

            points = [b(env) for b in self.breaks]
            return mp_gaussian(lambda z: self.body({**env, self.z: z}), points)
        cuts = [np.clip(np.nan_to_num(np.asarray(b(env), dtype=float)), -REACH, REACH) for b in self.breaks]
        grid = [np.asarray(v) for v in np.linspace(-REACH, REACH, 7)]
        edges = np.sort(np.stack(np.broadcast_arrays(*grid, *cuts), axis=-1), axis=-1)
        inner = _spread(env, set())
        return panel_average(
            lambda z: self.body({**inner, self.z: z}) * np.exp(-z * z / 2) / np.sqrt(2 * np.pi), edges
        )


class _Implicit:
    """An average over an implicitly fixed unknown, by the change of variables z = psi(x)."""

    def __init__(self, node: ImplicitAverage, backend: str) -> None:
        expr, self.x, psi, low, high = node.args
        self.backend = backend
        self.body = Compiled(expr * psi.diff(self.x), backend)
        self.psi = Compiled(psi, backend)
        self.double = Compiled(psi, "numpy")
        self.slope = Compiled(psi.diff(self.x), "numpy")
        self.ends = [None if abs(e) == oo else Compiled(e, "numpy") for e in (low, high)]

    def _panels(self, env: Environment) -> np.ndarray:
        """Edges of the panels in x: where z takes equidistant values, cut at the ends of the branch."""
        shape = np.broadcast_shapes(*(np.shape(v) for v in env.values() if isinstance(v, np.ndarray)), ())
        targets = np.broadcast_to(np.linspace(-REACH, REACH, 13), (*shape, 13))
        inner = _spread(env, set())
        x = invert(lambda v: self.double({**inner, self.x: v}), targets)
        for end, clip in zip(self.ends, (np.maximum, np.minimum), strict=True):
            if end is not None:
                x = clip(x, np.asarray(end(env), dtype=float)[..., None])
        return np.sort(x, axis=-1)

    def __call__(self, env: Environment) -> Any:
        if self.backend == "mpmath":
            return self._mpmath(env)
        inner = _spread(env, set())

        def integrand(x: np.ndarray) -> Any:
            z = self.double({**inner, self.x: x})
            return self.body({**inner, self.x: x}) * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)

        edges = self._panels(env)
        middle = {**env, self.x: edges[..., edges.shape[-1] // 2]}
        return np.sign(self.slope(middle)) * panel_average(integrand, edges)

    def _mpmath(self, env: Environment) -> Any:
        mp = mpmath.mp
        plain = {k: float(v) if isinstance(v, mpmath.mpf) else v for k, v in env.items()}
        reach = float(mp.sqrt(2 * mp.prec * mp.ln2) + 2)
        count = 2 * int(reach) + 1
        targets = np.linspace(-reach, reach, count)
        x = invert(lambda v: self.double({**plain, self.x: v}), targets)
        for end, clip in zip(self.ends, (np.maximum, np.minimum), strict=True):
            if end is not None:
                x = clip(x, float(end(plain)))
        grid = sorted({float(v) for v in x})
        ends = [Compiled(e.expr, "mpmath") if e is not None else None for e in self.ends]
        points = [mp.mpf(v) for v in grid]
        for k, end in ((0, ends[0]), (-1, ends[1])):
            if end is not None and points:
                points[k] = end(env)
        if len(points) < 2:
            return mp.zero

        def integrand(v: Any) -> Any:
            here = {**env, self.x: v}
            z = self.psi(here)
            return self.body(here) * mp.npdf(z)

        sign = 1 if self.slope({**plain, self.x: grid[len(grid) // 2]}) > 0 else -1
        return sign * mp.quad(integrand, points)


def invert(psi: Callable[[np.ndarray], Any], targets: np.ndarray) -> np.ndarray:
    """Solve ``psi(x) = target`` for a monotone psi: bracket outwards, then bisect and polish by secants.

    Raises
    ------
    NotConverged
        If a target is not reached within the range of doubles.
    """
    with np.errstate(all="ignore"):
        grows = np.all(psi(np.full_like(targets, 0.5)) >= psi(np.full_like(targets, -0.5)))
    sign = 1.0 if grows else -1.0

    def f(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return sign * (np.asarray(psi(x), dtype=float) - targets)

    low, high = np.full_like(targets, -1.0), np.full_like(targets, 1.0)
    for _ in range(200):
        bad_low, bad_high = ~(f(low) <= 0), ~(f(high) >= 0)
        if not (bad_low.any() or bad_high.any()):
            break
        low, high = np.where(bad_low, low * 2, low), np.where(bad_high, high * 2, high)
    else:
        raise NotConverged("An implicit law could not be bracketed.", (low, high), float("nan"))
    for _ in range(80):
        middle = (low + high) / 2
        up = f(middle) >= 0
        low, high = np.where(up, low, middle), np.where(up, middle, high)
    return (low + high) / 2
