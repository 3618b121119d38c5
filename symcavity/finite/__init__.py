"""Finite instances of a declared problem, solved exactly and read in the words of the declaration."""

from symcavity.finite.compare import Comparison, compare, point_of
from symcavity.finite.estimates import Estimate, Extrapolation
from symcavity.finite.executors import BrokenExecutor, processes
from symcavity.finite.experiment import CavityExperiment, Finding, Inserted, cavity_experiment
from symcavity.finite.plots import plot_comparison, plot_distribution, plot_scatter, plot_sweep
from symcavity.finite.responses import Responses, response_by_source
from symcavity.finite.run import Simulation, Simulations, simulate
from symcavity.finite.sample import Sample
from symcavity.finite.sweep import Sweep, sweep_simulation, sweep_theory

__all__ = [
    "BrokenExecutor",
    "CavityExperiment",
    "Comparison",
    "Estimate",
    "Extrapolation",
    "Finding",
    "Inserted",
    "Responses",
    "Sample",
    "Simulation",
    "Simulations",
    "Sweep",
    "cavity_experiment",
    "compare",
    "plot_comparison",
    "plot_distribution",
    "plot_scatter",
    "plot_sweep",
    "point_of",
    "processes",
    "response_by_source",
    "simulate",
    "sweep_simulation",
    "sweep_theory",
]
