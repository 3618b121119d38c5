"""Derive, print, evaluate and test cavity theories of convex learning problems."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from symcavity.algebra.checks import check
from symcavity.algebra.gaussian import gaussian_average
from symcavity.algebra.phi import phi
from symcavity.errors import (
    DeclarationError,
    FlatMinimum,
    Infeasible,
    InternalError,
    JumpingLaw,
    MissingDependency,
    NegativeEntropy,
    NoClosedForm,
    NotConverged,
    NotConvex,
    OutOfTime,
    RoughSolution,
    SeveralSolutions,
    SymcavityError,
    UnstableSolution,
    UnsupportedLaw,
    ValuesError,
)
from symcavity.face import BipartiteSystem, ConvexProblem, Derivation, Problem, System, Theory, prove
from symcavity.model.averages import average, expect, fresh, norm, response
from symcavity.model.complementary import Complementary
from symcavity.model.couplings import Coupling
from symcavity.model.equations import Equation
from symcavity.model.kernels import Kernel
from symcavity.model.kinds import (
    N,
    P,
    Sites,
    alpha,
    i,
    mu,
)
from symcavity.model.noise import Noise
from symcavity.model.quantities import Datum, Feature, Field, Global, Quenched, Variable
from symcavity.model.support import SupportFunction
from symcavity.model.times import Time

if TYPE_CHECKING:
    from symcavity.shapes import (
        Ball,
        CallableShape,
        Ellipsoid,
        ExpressionShape,
        PointCloud,
        Polytope,
        Projection,
        Segment,
        Shape,
        ShapeWarning,
        TwoPoints,
    )
    from symcavity.study.spectrum import spectrum

__version__ = "0.2.0"

__all__ = [
    "Ball",
    "BipartiteSystem",
    "CallableShape",
    "Complementary",
    "ConvexProblem",
    "Coupling",
    "Datum",
    "DeclarationError",
    "Derivation",
    "Ellipsoid",
    "Equation",
    "ExpressionShape",
    "Feature",
    "Field",
    "FlatMinimum",
    "Global",
    "Infeasible",
    "InternalError",
    "JumpingLaw",
    "Kernel",
    "MissingDependency",
    "N",
    "NegativeEntropy",
    "NoClosedForm",
    "Noise",
    "NotConverged",
    "NotConvex",
    "OutOfTime",
    "P",
    "PointCloud",
    "Polytope",
    "Problem",
    "Projection",
    "Quenched",
    "RoughSolution",
    "Segment",
    "SeveralSolutions",
    "Shape",
    "ShapeWarning",
    "Sites",
    "SupportFunction",
    "SymcavityError",
    "System",
    "Theory",
    "Time",
    "TwoPoints",
    "UnstableSolution",
    "UnsupportedLaw",
    "ValuesError",
    "Variable",
    "alpha",
    "average",
    "check",
    "expect",
    "fresh",
    "gaussian_average",
    "i",
    "mu",
    "norm",
    "phi",
    "prove",
    "response",
    "spectrum",
]

# what the worked systems offer beside their declarations
__all__ += import_module("symcavity.derivations").__all__

_SETS = (
    "Ball",
    "CallableShape",
    "Ellipsoid",
    "ExpressionShape",
    "PointCloud",
    "Polytope",
    "Projection",
    "Segment",
    "Shape",
    "ShapeWarning",
    "TwoPoints",
)


def __getattr__(name: str) -> Any:
    """Load the convex sets, spectra, and what the worked systems offer, at their first use."""
    if name in _SETS:
        return getattr(import_module("symcavity.shapes"), name)
    if name == "spectrum":
        return import_module("symcavity.study.spectrum").spectrum
    if name in __all__:
        return getattr(import_module("symcavity.derivations"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__, "derivations", "errors", "shapes"})
