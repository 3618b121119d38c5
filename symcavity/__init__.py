"""Derive, print, evaluate and test zero-temperature cavity theories of convex learning problems."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from symcavity.algebra.gaussian import gaussian_average
from symcavity.algebra.phi import phi
from symcavity.algebra.prove import check, prove
from symcavity.errors import (
    DeclarationError,
    FlatMinimum,
    Infeasible,
    MissingDependency,
    NoClosedForm,
    NotConverged,
    NotConvex,
    SymcavityError,
    UnsupportedLaw,
    ValuesError,
)
from symcavity.method.theory import Theory
from symcavity.model.equations import Equation
from symcavity.model.problem import ConvexProblem
from symcavity.model.quantities import (
    Complementary,
    Coupling,
    Datum,
    Feature,
    Field,
    Global,
    N,
    P,
    Quenched,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity.model.support import SupportFunction
from symcavity.model.system import BipartiteSystem

if TYPE_CHECKING:
    from symcavity.evaluate.capacity import ManifoldCapacity, manifold_capacity
    from symcavity.shapes import (
        Ball,
        CallableShape,
        CloudGeometry,
        Ellipsoid,
        ExpressionShape,
        PointCloud,
        Polytope,
        Projection,
        Segment,
        Shape,
        ShapeWarning,
        TwoPoints,
        cloud_geometry,
    )

__version__ = "0.1.0"

__all__ = [
    "Ball",
    "BipartiteSystem",
    "CallableShape",
    "CloudGeometry",
    "Complementary",
    "ConvexProblem",
    "Coupling",
    "Datum",
    "DeclarationError",
    "Ellipsoid",
    "Equation",
    "ExpressionShape",
    "Feature",
    "Field",
    "FlatMinimum",
    "Global",
    "Infeasible",
    "ManifoldCapacity",
    "MissingDependency",
    "N",
    "NoClosedForm",
    "NotConverged",
    "NotConvex",
    "P",
    "PointCloud",
    "Polytope",
    "Projection",
    "Quenched",
    "Segment",
    "Shape",
    "ShapeWarning",
    "SupportFunction",
    "SymcavityError",
    "Theory",
    "TwoPoints",
    "UnsupportedLaw",
    "ValuesError",
    "alpha",
    "average",
    "check",
    "cloud_geometry",
    "gaussian_average",
    "i",
    "manifold_capacity",
    "mu",
    "phi",
    "prove",
    "response",
]

_LATER = {
    **dict.fromkeys(
        (
            "Ball",
            "CallableShape",
            "CloudGeometry",
            "Ellipsoid",
            "ExpressionShape",
            "PointCloud",
            "Polytope",
            "Projection",
            "Segment",
            "Shape",
            "ShapeWarning",
            "TwoPoints",
            "cloud_geometry",
        ),
        "symcavity.shapes",
    ),
    **dict.fromkeys(("ManifoldCapacity", "manifold_capacity"), "symcavity.evaluate.capacity"),
}


def __getattr__(name: str) -> Any:
    """Load the convex sets where they are first asked for."""
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
