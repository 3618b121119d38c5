"""Every system of the gallery: what is shown of it, against instances of itself."""

import re

import pytest
from gallery_shared import NAMES, PAGE, module, solution, table, theory

FAR = 4.5
SMALL = {
    "supplied_resources": (40, 3),  # the search for all solutions of an instance takes seconds
    # measures are summed over all states, or sampled
    "spin_glass": (12, 20), "binary_perceptron": (12, 20), "sparse_means": (9, 20), "bayes_perceptron": (12, 6),
    "spiked_matrix": (14, 20), "boltzmann_machine": (5, 40),
}


@pytest.mark.parametrize("name", NAMES)
def test_instances(name):
    size, seeds = SMALL.get(name, (60, 8))
    found = module(name)
    if not getattr(found, "instances", True):
        pytest.skip("the file says why no small instance has these numbers")
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


@pytest.mark.parametrize("name", NAMES)
def test_the_row_of_the_table(name):
    """Each row of docs/gallery.md says what is true today, but for its times."""
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(f"| [`{name}`]")]
    assert len(rows) == 1, f"python benchmarks/gallery.py writes {PAGE.name}"
    system, count, _, _, numbers, source = (cell.strip() for cell in rows[0].strip("|").split(" | "))
    wanted = table.cells(name, module(name), solution(name))
    assert (system, int(count), source) == (wanted[0], wanted[1], wanted[3])
    found = [float(text) for text in re.findall(r" = (\S+?)(?:,|$)", numbers)]
    assert found == pytest.approx([float(solution(name)[o]) for o in module(name).shown], rel=2e-5, abs=1e-12)
