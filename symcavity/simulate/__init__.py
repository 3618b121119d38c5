"""Finite instances of a declared problem, solved exactly and read in the words of the declaration."""

from symcavity.simulate.compare import Comparison, compare, point_of, witness
from symcavity.simulate.estimates import Estimate, Extrapolation
from symcavity.simulate.executors import BrokenExecutor, processes
from symcavity.simulate.plots import plot_comparison, plot_distribution, plot_scatter, plot_sweep
from symcavity.simulate.responses import Responses, response_by_source
from symcavity.simulate.run import Sample, Simulation, Simulations, simulate

__all__ = [
    "BrokenExecutor",
    "Comparison",
    "Estimate",
    "Extrapolation",
    "Responses",
    "Sample",
    "Simulation",
    "Simulations",
    "compare",
    "plot_comparison",
    "plot_distribution",
    "plot_scatter",
    "plot_sweep",
    "point_of",
    "processes",
    "response_by_source",
    "simulate",
    "witness",
]
