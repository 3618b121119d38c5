"""What tables and plots show: every curve, every failed point, atoms as atoms, numbers with their errors."""

import importlib.util

import numpy as np
import pytest
from sympy import Max, Rational, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Equation, Feature, N, P, ValuesError, alpha, average, i, mu
from symcavity.derivations import soft_margin
from symcavity.finite.plots import plot_distribution
from symcavity.finite.swept import Sweep
from symcavity.finite.tables import with_error

problem = soft_margin.problem
C = problem.kkt().parameters[0]
w, lam = (problem.kkt().variables[name] for name in ("w", "lambda"))


@pytest.fixture(scope="module")
def simulation():
    return problem.simulate({alpha: 2, C: 1}, N=100, seeds=4)


@pytest.fixture(scope="module")
def theory():
    return problem.cavity()


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (0.35341, 0.0048, "0.3534(48)"),
        (0.351, 0.48, "0.35(48)"),
        (12.34, 4.8, "12.3(4.8)"),
        (-53.2, 12.1, "-53(12)"),
        (0.99999, 0.00995, "1.000(10)"),
        (1234567, 1e5, "1.23(10)e+06"),
        (2.5e-9, 3.3e-11, "2.500(33)e-09"),
        (0.5, float("nan"), "0.5"),
        (0.5, 0.0, "0.5"),
        (0.2, 2e-17, "0.2"),
        (0.0, 2e-17, "0.0(2.0)e-17"),
    ],
)
def test_errors_stand_in_the_last_two_digits(value, error, shown):
    assert with_error(value, error) == shown


def test_every_value_of_a_second_parameter_has_its_curve():
    rows = [
        {"point": f"C={c}; alpha={a}", "alpha": float(a), "C": float(c), "y": a * c}
        for c in (1, 2, 5)
        for a in (1, 2, 3)
    ]
    finite = {"N": 50, "C": 2.0}
    rows += [finite | {"point": f"C=2; alpha={a}", "alpha": a, "y": 2 * a + s} for a in (1, 3) for s in (0, 1)]
    ax = Sweep(rows, ("alpha", "C", "y")).plot("alpha", "y")
    lines = [line for line in ax.get_lines() if len(line.get_xdata()) == 3]
    assert [list(line.get_ydata()) for line in lines] == [[1, 2, 3], [2, 4, 6], [5, 10, 15]]
    (points,) = ax.containers
    assert list(points.lines[0].get_ydata()) == [2.5, 6.5]
    assert points.lines[0].get_color() == lines[1].get_color() != lines[0].get_color()
    told = [text.get_text() for text in ax.get_legend().get_texts()]
    assert told == ["$C$ = 1", "$C$ = 2", "$C$ = 5", "theory", "simulation, $N=50$"]


def test_a_sweep_draws_itself_where_one_choice_is_there(theory):
    loads = [Rational(3, 2), 2]
    sweep = theory.sweep({alpha: loads, C: [1]}, observables=[average(w**2)])
    ax = sweep.plot()
    (line,) = ax.get_lines()
    assert list(line.get_xdata()) == [1.5, 2]
    assert list(line.get_ydata()) == [float(theory.solve({alpha: a, C: 1})[average(w**2)]) for a in loads]
    assert ax.get_xlabel() == "$\\alpha$"
    wide = theory.sweep({alpha: loads, C: [1, 2]}, observables=[average(w**2), average(lam)])
    with pytest.raises(ValuesError, match="parameter that varies: C, alpha"):
        wide.plot()
    with pytest.raises(ValuesError, match=r"more than one observable: average\(w\[i\]\*\*2\), average\(lambda\[mu\]\)"):
        wide.plot(alpha)
    assert [line.get_label() for line in wide.plot(alpha, average(lam)).get_lines()] == ["$C$ = 1", "$C$ = 2"]
    with pytest.raises(ValuesError, match="no parameter that varies"):
        theory.sweep({alpha: [2], C: [1]}, observables=[average(w**2)]).plot()


def test_a_line_is_broken_where_there_is_no_solution():
    values = [1.0, None, 3.0, float("inf")]
    rows = [{"point": f"alpha={a}", "alpha": a, "y": y, "error": "" if y else "none"} for a, y in enumerate(values)]
    ax = Sweep(rows, ("alpha", "y")).plot("alpha", "y")
    line, marks = ax.get_lines()
    assert np.isnan(line.get_ydata()).tolist() == [False, True, False, True]
    assert list(marks.get_xdata()) == [1, 3]


def test_atoms_are_drawn_as_atoms(simulation, theory):
    solution = theory.solve({alpha: 2, C: 1}, dps=20)
    ax = plot_distribution(simulation, lam, solution=solution, bins=6)
    side = ax.figure.axes[1]
    stems = [line.get_xydata()[-1] for line in side.get_lines() if len(line.get_xdata()) == 2]
    measured, said = np.array(stems[:2]), np.array(stems[2:])
    assert measured[:, 0] == pytest.approx([0, 1], abs=1e-9)
    values = simulation.values(lam).ravel()
    assert measured[:, 1] == pytest.approx([np.mean(values < 1e-9), np.mean(values > 1 - 1e-9)])
    assert said[:, 1] == pytest.approx([float(solution[average(lam <= 0)]), float(solution[average(lam >= 1)])])
    top = ax.get_lines()[0].get_ydata()
    assert top.sum() / len(top) + said[:, 1].sum() == pytest.approx(1, abs=1e-9)  # lambda lies between 0 and 1
    heights = ax.patches[0].get_data().values
    assert heights.mean() + measured[:, 1].sum() == pytest.approx(1)


def test_a_density_does_not_show_the_nodes_of_an_average():
    from scipy.special import ndtr

    from symcavity.finite.densities import density_of

    edges = np.linspace(-3, 3, 91)
    middle = (edges[1:] + edges[:-1]) / 2
    want = 0.9 * np.exp(-(middle**2) / 2) / np.sqrt(2 * np.pi)
    atom = {0.5: 0.1}
    exact = density_of(lambda u: 0.9 * ndtr(-u) + 0.1 * (u < 0.5), edges, atom)
    assert exact == pytest.approx(want, abs=1e-3)
    nodes = np.random.default_rng(1).standard_normal(3000)
    rough = density_of(lambda u: 0.9 * np.mean(nodes > u) + 0.1 * (u < 0.5), edges, atom)
    assert rough == pytest.approx(want, abs=0.04)
    assert np.count_nonzero(np.diff(np.sign(np.diff(rough)))) < 5


def test_figures_show_themselves_in_a_notebook(simulation, theory, tmp_path):
    comparison = theory.compare(simulation)
    ax = comparison.plot()
    assert ax._repr_svg_().count("<svg") == ax.figure._repr_svg_().count("<svg") == 1
    ax.figure.savefig(tmp_path / "z.png")
    from PIL import Image

    with Image.open(tmp_path / "z.png") as picture:
        assert picture.info["dpi"][0] == pytest.approx(300, abs=1)
    assert ax.xaxis.label.get_fontfamily() == ["serif"]


def test_tables_for_notebooks(simulation, theory):
    comparison = theory.compare(simulation)
    row = comparison[average(w**2)]
    assert with_error(row.simulation.mean, row.simulation.stderr) in comparison._repr_html_()
    solution = theory.solve({alpha: 2, C: 1})
    assert "alpha = 2, C = 1" in solution._repr_html_()
    assert "100" in simulation._repr_html_()
    swept = theory.sweep({alpha: [1, 2], C: [1, -1]}, observables=[average(w**2)])
    assert swept._repr_html_().count("<tr>") == 5
    assert "2 of 4 rows failed" in swept._repr_html_()


def test_laws_are_shown_with_a_solution():
    from symcavity.derivations.anisotropic import kappa, l
    from symcavity.derivations.anisotropic import problem as uneven

    solution = uneven.cavity().solve({kappa: 1, l: {"1/5": Rational(1, 2), "9/5": Rational(1, 2)}})
    assert str(solution).startswith("Solution at kappa = 1, l = {1/5: 1/2, 9/5: 1/2}\n")


@pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="pandas is not installed")
def test_tables_become_data_frames(simulation, theory):
    frame = theory.compare(simulation).to_pandas()
    assert list(frame.columns) == ["observable", "theory", "simulation", "stderr", "z", "note"]
    assert frame["theory"][0] == theory.compare(simulation).rows[0].theory
    swept = theory.sweep({alpha: [1, 2]}, values={C: 1})
    assert list(swept.to_pandas()["alpha"]) == [1.0, 2.0]


def test_a_table_is_a_grid_and_a_sweep_has_labelled_axes(theory):
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    frame = pandas.DataFrame({"alpha": [1.0, 2.0], "C": [1.0, 0.5]})
    swept = [theory.sweep(grid, observables=["q_w"]) for grid in (frame, frame.to_dict("records"))]
    assert swept[0].rows == swept[1].rows
    data = theory.sweep({alpha: [1, 2, 3], C: ["1/2", 1]}, observables=["q_w"]).to_xarray()
    assert dict(data.sizes) == {"alpha": 3, "C": 2}
    assert float(data["q_w"].sel(alpha=2, C=0.5)) == swept[0].rows[1]["q_w"]
    with pytest.raises(ValuesError, match="same alpha"):
        (theory.sweep({alpha: [1, 2]}, values={C: 1}) + theory.sweep({alpha: [1, 2]}, values={C: 1})).to_xarray()


def test_no_raw_objects_are_printed(theory):
    assert repr(Equation(Symbol("a"), Symbol("b"))) == "a = b"
    for shown in (repr(theory.equations), repr(theory.reduced), repr(theory.derivation), repr(theory.derivation[2])):
        assert "lhs=" not in shown
        assert "origins" not in shown
        assert "Step(" not in shown
    assert "<eta^0**2> = q_w" in str(theory.datum)


def test_an_atom_at_an_end_that_few_sites_reach_is_no_spike_of_the_density():
    """Fewer than one weight in a hundred has its largest value."""
    x, v, penalty = Coupling("x"), Feature("v"), Symbol("C", positive=True)
    short = Sum(Max(0, 1 - Sum(x[mu, i] * v[i], (i, 1, N))), (mu, 1, P))
    capped = ConvexProblem(Sum(v[i] ** 2, (i, 1, N)) / 2 + penalty * short, subject_to=[v[i] <= Rational(17, 10)])
    values = {alpha: 1, penalty: 1}
    solution, sim = capped.cavity().solve(values), capped.simulate(values, N=60, seeds=4)
    top = float(sim.values(v[i]).max())
    share = float(np.mean(sim.values(v[i]) == top))
    assert top == pytest.approx(1.7)
    assert 0 < share < 0.01
    ax = plot_distribution(sim, v, solution=solution, bins=12)
    curve = ax.get_lines()[0].get_ydata()
    assert curve[-1] < 0.2 * max(curve)
    stems = [line.get_xydata()[-1] for line in ax.figure.axes[1].get_lines() if len(line.get_xdata()) == 2]
    ends = dict(map(tuple, stems))
    assert ends[top] == pytest.approx(float(solution[average(v[i] >= Rational(17, 10))]), abs=1e-9)


def test_names_of_observables_are_read_and_compared_in_instances():
    share, twice = Symbol("n"), Symbol("m")
    named = ConvexProblem(
        soft_margin.problem.minimize,
        subject_to=soft_margin.problem.subject_to,
        named={share: average(lam > 0), twice: 2 * share},
    )
    sim = named.simulate({alpha: 2, C: 1}, N=30, seeds=4)
    direct = sim[average(lam > 0)]
    assert sim["n"].mean == sim[share].mean == direct.mean
    assert sim["m"].mean == pytest.approx(2 * direct.mean)
    table = named.cavity().compare(sim)
    assert [str(row.shown) for row in table][-2:] == ["n", "m"]
    assert table["m"].theory == pytest.approx(2 * table["n"].theory)
