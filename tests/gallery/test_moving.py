"""Every system of the gallery that moves: what is shown of it, against instances of itself and the page."""

import re

import pytest
from gallery_shared import MOVING, PAGE, module, table, theory

FAR = 4.5


@pytest.fixture(scope="module", params=MOVING)
def shown(request):
    found = module(request.param)
    run = theory(request.param).evolve(found.values, paths=table.PATHS, seed=table.SEED, **table.span(found))
    return request.param, found, run


def test_instances(shown):
    _, found, run = shown
    sim = found.problem.simulate(found.values, N=200, seeds=8, **table.span(found))
    comparison = run.compare(sim, found.shown)
    for row in comparison:
        assert row.rms < 2.5, str(comparison)
        assert abs(row.z).max() < FAR, str(comparison)


def test_the_row_of_the_table(shown):
    """Each row of docs/gallery.md says what is true today, but for its times."""
    name, found, run = shown
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(f"| [`{name}`]")]
    assert len(rows) == 1, f"python benchmarks/gallery.py writes {PAGE.name}"
    system, count, _, _, numbers, source = (cell.strip() for cell in rows[0].strip("|").split(" | "))
    wanted = table.cells(name, found, dict.fromkeys(found.shown, 0))
    assert (system, int(count), source) == (wanted[0], wanted[1], wanted[3])
    told = re.findall(r" = (\S+) ± (\S+?)(?:,|$)", numbers)
    assert len(told) == len(found.shown)
    for observable, (value, error) in zip(found.shown, told, strict=True):
        assert abs(float(value) - table.at_the_end(run, observable)[0]) < 0.02 + 4 * float(error)


def test_what_a_file_says(shown):
    _, found, _ = shown
    assert found.__doc__.partition("\n")[0].endswith(".")
    assert found.problem.name
    assert found.problem.time is not None
