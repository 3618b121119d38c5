"""Every system of the gallery: what is shown of it, against instances of itself."""

import pytest
from gallery_shared import NAMES, module, solution, theory

FAR = 4.5
SMALL = {"supplied_resources": (40, 3)}  # the search for all solutions of an instance takes seconds


@pytest.mark.parametrize("name", NAMES)
def test_instances(name):
    size, seeds = SMALL.get(name, (60, 8))
    found = module(name)
    simulation = found.problem.simulate(found.values, N=size, seeds=seeds)
    assert len(simulation.feasible) >= seeds - 1
    for observable in found.shown:
        estimate, expected = simulation[observable], float(solution(name)[observable])
        scatter = max(estimate.stderr, 1e-9)  # a condition leaves none
        assert abs(estimate.mean - expected) < FAR * scatter, (observable, estimate, expected)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_file_says(name):
    found = module(name)
    assert found.__doc__.partition("\n")[0].endswith(".")
    assert found.shown
    assert solution(name).residual < 1e-10
    assert theory(name).system.name
