"""Derive, print, evaluate and test zero-temperature cavity theories of convex learning problems."""

from symcavity.algebra.gaussian import gaussian_average
from symcavity.algebra.phi import phi
from symcavity.algebra.prove import check, prove
from symcavity.cavity.theory import Theory
from symcavity.declare.problem import ConvexProblem
from symcavity.declare.quantities import (
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
from symcavity.declare.system import BipartiteSystem, Equation
from symcavity.errors import (
    DeclarationError,
    Infeasible,
    MissingDependency,
    NoClosedForm,
    NotConverged,
    NotConvex,
    SymcavityError,
    UnsupportedLaw,
    ValuesError,
)

__version__ = "0.1.0"

__all__ = [
    "BipartiteSystem",
    "Complementary",
    "ConvexProblem",
    "Coupling",
    "Datum",
    "DeclarationError",
    "Equation",
    "Feature",
    "Field",
    "Global",
    "Infeasible",
    "MissingDependency",
    "N",
    "NoClosedForm",
    "NotConverged",
    "NotConvex",
    "P",
    "Quenched",
    "SymcavityError",
    "Theory",
    "UnsupportedLaw",
    "ValuesError",
    "alpha",
    "average",
    "check",
    "gaussian_average",
    "i",
    "mu",
    "phi",
    "prove",
    "response",
]
