"""The worked systems, one declaration a file; files with an underscore hold functions about them."""

from importlib import import_module
from typing import Any

_FUNCTIONS = {
    "CloudGeometry": "_cloud_geometry",
    "ManifoldCapacity": "_manifold_capacity",
    "cloud_geometry": "_cloud_geometry",
    "manifold_capacity": "_manifold_capacity",
}

__all__ = ["CloudGeometry", "ManifoldCapacity", "cloud_geometry", "manifold_capacity"]


def __getattr__(name: str) -> Any:
    """Load a function where it is first asked for."""
    if name in _FUNCTIONS:
        return getattr(import_module(f"{__name__}.{_FUNCTIONS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
