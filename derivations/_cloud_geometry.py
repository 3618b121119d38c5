"""Capacity, effective radius and dimension of manifolds that are given as arrays of points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symcavity.errors import DeclarationError
from symcavity.shapes.base import margin
from symcavity.shapes.clouds import PointCloud
from symcavity.shapes.sampling import SCRAMBLES, gaussian_scrambles, sample_size

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CloudGeometry:
    """One row per manifold: capacity, effective radius, effective dimension, each with its standard error.

    Attributes
    ----------
    capacity, capacity_stderr : ndarray, shape (manifolds,)
        Capacity of copies of this manifold, 1/<|v - t|^2>.
    radius, radius_stderr : ndarray, shape (manifolds,)
        R_M, the root mean square of the anchor points about their mean, in units of the distance of the
        center.
    dimension, dimension_stderr : ndarray, shape (manifolds,)
        D_M = D <unit(t).unit(s)>^2 over the D directions of the manifold.
    ambient : ndarray of int, shape (manifolds,)
        D, the dimension of the span of a manifold about its center.
    distance : ndarray, shape (manifolds,)
        Norm of the center in the units of the data.
    kappa : float
        The margin, in units of the distance of the center.
    samples : int
        Sampled sources per manifold.

    Examples
    --------
    >>> import numpy as np
    >>> from symcavity import cloud_geometry
    >>> points = np.random.default_rng(0).normal(size=(3, 8, 20))  # manifolds, points, dimensions
    >>> cloud_geometry(points, 0, samples=64).radius.shape
    (3,)
    """

    capacity: Array
    capacity_stderr: Array
    radius: Array
    radius_stderr: Array
    dimension: Array
    dimension_stderr: Array
    ambient: NDArray[np.int64]
    distance: Array
    kappa: float
    samples: int

    @property
    def mean_capacity(self) -> float:
        """Capacity of an even mixture of the manifolds: the harmonic mean."""
        return float(1 / np.mean(1 / self.capacity))

    @property
    def mean_capacity_stderr(self) -> float:
        """Standard error of the harmonic mean."""
        each = self.capacity_stderr / self.capacity**2
        return float(self.mean_capacity**2 * np.sqrt(np.square(each).sum()) / each.size)

    def __len__(self) -> int:
        return len(self.capacity)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield one dictionary per manifold, for tables."""
        for k in range(len(self)):
            yield {
                "manifold": k,
                "capacity": float(self.capacity[k]),
                "capacity_stderr": float(self.capacity_stderr[k]),
                "radius": float(self.radius[k]),
                "radius_stderr": float(self.radius_stderr[k]),
                "dimension": float(self.dimension[k]),
                "dimension_stderr": float(self.dimension_stderr[k]),
                "ambient": int(self.ambient[k]),
                "distance": float(self.distance[k]),
            }

    def __str__(self) -> str:
        lines = [f"{'manifold':>8}  {'capacity':>20}  {'radius':>20}  {'dimension':>20}  {'D':>5}"]
        for row in self.rows():
            cells = [
                f"{row[name]:.5g} +- {row[name + '_stderr']:.1g}"
                for name in ("capacity", "radius", "dimension")
            ]
            lines.append(
                f"{row['manifold']:>8}  "
                + "  ".join(f"{cell:>20}" for cell in cells)
                + f"  {row['ambient']:>5}"
            )
        lines.append(
            f"mixture capacity {self.mean_capacity:.5g} +- {self.mean_capacity_stderr:.1g}"
            f"   (kappa = {self.kappa:g}, {self.samples} sources per manifold)"
        )
        return "\n".join(lines)


def cloud_geometry(
    points: Any,
    kappa: Any = 0,
    *,
    samples: int | None = 4096,
    seed: int = 0,
    subtract_mean: bool = False,
    orthogonal: bool = True,
) -> CloudGeometry:
    """Return the capacity, effective radius and effective dimension of each of some point-cloud manifolds.

    Parameters
    ----------
    points : array_like, shape (manifolds, points, dimensions), or a sequence of (points, dimensions) arrays
        The data. Manifolds may have different numbers of points if they come as a sequence.
    kappa : number, optional
        Margin >= 0 in units of the distance of each manifold's center.
    samples : int, optional
        Sources per manifold.
    seed : int, optional
        Seed of the scrambled Sobol sequences.
    subtract_mean : bool, optional
        Take the mean over all data away first.
    orthogonal : bool, optional
        True: deviations from the center are taken as orthogonal to it, so that every point has last
        coordinate 1, the convention of the published analysis. False: the part of a deviation along the
        center is kept where it is.

    Returns
    -------
    CloudGeometry
        A table, one row per manifold.

    Raises
    ------
    DeclarationError
        For arrays of another shape, NaN, or a center at the origin; the manifold is named.

    Notes
    -----
    Chung, Lee and Sompolinsky, Phys. Rev. X 8, 031003 (2018): points are s = (deviation, 1) in units of the
    distance of the center, deviations in coordinates of their span (by SVD). With the anchor points s(t) of
    Gaussian t, and where t does not support the point of least height, R_M^2 = <|s - <s>|^2> over the D
    deviations (equation 28, divided by the last coordinate) and D_M = D <unit(t).unit(s)>^2 (equation 29).
    Error bars are the scatter of 16 scrambles. D is the dimension of the span, so that a ball has D_M = D;
    programs that count null directions in D report less. Correlations between centers are not removed.

    Examples
    --------
    >>> import numpy as np
    >>> from symcavity import cloud_geometry
    >>> points = np.random.default_rng(0).normal(size=(3, 8, 20))  # manifolds, points, dimensions
    >>> cloud_geometry(points, 0, samples=64).capacity.shape
    (3,)
    """
    clouds = _clouds(points)
    k, size = margin(kappa), sample_size(samples)
    if subtract_mean:
        mean = np.concatenate(clouds).mean(axis=0)
        clouds = [cloud - mean for cloud in clouds]
    table, ambient, distance = [], [], []
    seeds = np.random.SeedSequence(seed).generate_state(len(clouds)) if seed >= 0 else [seed]
    for index, (cloud, child) in enumerate(zip(clouds, seeds, strict=False)):
        standard, norm = _standard(cloud, index, orthogonal=orthogonal)
        table.append(_measure(PointCloud(standard), k, size, int(child)))
        ambient.append(standard.shape[1] - 1)
        distance.append(norm)
    a, da, r, dr, d, dd = np.array(table).T
    return CloudGeometry(
        a,
        da,
        r,
        dr,
        d,
        dd,
        ambient=np.array(ambient, dtype=np.int64),
        distance=np.array(distance),
        kappa=k,
        samples=size,
    )


def _clouds(points: Any) -> list[Array]:
    supported = "an array manifolds x points x dimensions, or a sequence of points x dimensions arrays"
    try:
        clouds = [np.asarray(cloud, dtype=np.float64) for cloud in points]
    except (TypeError, ValueError):
        raise DeclarationError("points is not an array of numbers.", supported) from None
    if not clouds:
        raise DeclarationError("There are no manifolds.", supported)
    for index, cloud in enumerate(clouds):
        if cloud.ndim != 2:
            raise DeclarationError(
                f"points has {cloud.ndim + 1} dimensions.",
                supported,
                "points[None] makes one manifold of a single cloud.",
            )
        if cloud.size == 0:
            raise DeclarationError(f"Manifold {index} is empty: shape {cloud.shape}.", "at least one point")
        if not np.isfinite(cloud).all():
            raise DeclarationError(f"Manifold {index} has NaN or infinite coordinates.", "finite numbers")
        if cloud.shape[1] != clouds[0].shape[1]:
            raise DeclarationError(
                f"Manifold {index} has {cloud.shape[1]} dimensions, manifold 0 has {clouds[0].shape[1]}.",
                "one number of dimensions",
            )
    return clouds


def _standard(cloud: Array, index: int, *, orthogonal: bool) -> tuple[Array, float]:
    """Return points (deviation in its span, along the center) in units of the distance, and the distance."""
    centre = cloud.mean(axis=0)
    norm = float(np.linalg.norm(centre))
    if norm <= 1e-9 * np.abs(cloud).max() or norm == 0:
        raise DeclarationError(
            f"The center of manifold {index} is at the origin.",
            "a center at a distance",
            "measure the data from another origin; subtract_mean=False keeps it.",
        )
    deviation, along = (cloud - centre) / norm, np.ones(len(cloud))
    if not orthogonal:
        axis = centre / norm
        part = deviation @ axis
        deviation, along = deviation - np.outer(part, axis), 1 + part
    left, sizes, _ = np.linalg.svd(deviation, full_matrices=False)
    rank = int((sizes > 1e-10 * max(1.0, float(sizes[0]))).sum()) if np.abs(deviation).max() > 1e-12 else 0
    return np.column_stack([left[:, :rank] * sizes[:rank], along]), norm


def _measure(shape: PointCloud, kappa: float, samples: int, seed: int) -> list[float]:
    """Return capacity, radius and dimension, each followed by its standard error."""
    D = shape.dimension - 1
    norms, firsts, seconds, overlaps = [], [], [], []
    for t in gaussian_scrambles(D + 1, samples, seed):
        p = shape.project(t, kappa)
        norms.append(np.square(p.lam_s).sum(axis=1).mean())
        s = p.anchor[:, :-1]
        reach = np.sqrt(np.square(s).sum(axis=1))
        with np.errstate(divide="ignore", invalid="ignore"):
            cosine = (t[:, :-1] * s).sum(axis=1) / (reach * np.sqrt(np.square(t[:, :-1]).sum(axis=1)))
        overlaps.append(np.where(reach > 0, cosine, 0.0).mean() if D else 0.0)
        firsts.append(s.mean(axis=0))
        last = p.anchor[:, -1]
        seconds.append((np.square(s) / last[:, None] ** 2).sum(axis=1).mean() if D else 0.0)
        firsts[-1] = np.concatenate(
            [firsts[-1], (s / last[:, None] ** 2).mean(axis=0), [(1 / last**2).mean()]]
        )
    first = np.array(firsts)
    middle = first[:, :D].mean(axis=0)
    spread = np.array(seconds) - 2 * first[:, D : 2 * D] @ middle + first[:, -1] * (middle @ middle)
    inverse, cosine = np.array(norms), np.array(overlaps)
    alpha, radius = 1 / inverse.mean(), np.sqrt(max(spread.mean(), 0.0))
    root = np.sqrt(SCRAMBLES)
    return [
        alpha,
        alpha**2 * inverse.std(ddof=1) / root,
        radius,
        spread.std(ddof=1) / root / (2 * radius) if radius > 0 else 0.0,
        D * cosine.mean() ** 2,
        2 * D * abs(cosine.mean()) * cosine.std(ddof=1) / root,
    ]
