"""Finite instances of a declared problem, solved exactly and read in the words of the declaration."""

from symcavity.simulate.cavity import CavityExperiment, Finding, Inserted, cavity_experiment
from symcavity.simulate.compare import Comparison, compare, point_of
from symcavity.simulate.estimates import Estimate, Extrapolation
from symcavity.simulate.executors import BrokenExecutor, processes
from symcavity.simulate.plots import plot_comparison, plot_distribution, plot_scatter, plot_sweep
from symcavity.simulate.responses import Responses, response_by_source
from symcavity.simulate.run import Sample, Simulation, Simulations, simulate
from symcavity.simulate.sweep import Sweep, sweep_simulation, sweep_theory
from symcavity.simulate.witness import witness

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
    "witness",
]
