"""Finite instances of a declared problem, solved exactly and read in the words of the declaration."""

from importlib import import_module
from typing import Any

_NAMES = {
    "CavityExperiment": "experiment",
    "Comparison": "compare",
    "Simulation": "simulation",
    "Simulations": "simulation",
    "Sweep": "swept",
    "plot_comparison": "plots",
    "plot_distribution": "plots",
    "plot_scatter": "plots",
    "plot_sweep": "sweep_plots",
}
__all__ = list(_NAMES)  # names that are loaded at their first use


def __getattr__(name: str) -> Any:
    """Load what simulations return, and their plots, at their first use."""
    if name in _NAMES:
        return getattr(import_module(f"symcavity.finite.{_NAMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
