"""The command line: what it prints, what it refuses, and that no traceback of ours reaches a user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from symcavity.algebra.door import read_number
from symcavity.cli import main
from symcavity.commands.arguments import read_pairs
from symcavity.errors import ValuesError
from symcavity.loading import installed, load
from symcavity.model.typed import read_observable

DECLARATION = '''
from sympy import Sum, Symbol
from symcavity import ConvexProblem, Coupling, Datum, Feature, N, P, i, mu

x, w, xi = Coupling("x"), Feature("w"), Datum("xi")
C = Symbol("C", positive=True)


def make(penalty):
    return ConvexProblem(
        minimize=Sum(w[i] ** 2, (i, 1, N)) / 2 + penalty * Sum(xi[mu] ** 2, (mu, 1, P)) / 2,
        subject_to=[Sum(x[mu, i] * w[i], (i, 1, N)) >= 1 - xi[mu]],
    )

'''
FIVE = {"anisotropic", "gardner", "kernel_ridge", "output_bias", "soft_margin"}


class Run:
    """The outcome of one command."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *argv: str) -> None:
        capsys.readouterr()
        try:
            self.status = main(argv)
        except SystemExit as left:  # argparse leaves this way
            self.status = int(left.code or 0)
        self.out, self.err = capsys.readouterr()


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *argv: Run(capsys, *argv)


# -- what it does --------------------------------------------------------------------------------------


def test_list_names_every_installed_derivation_with_a_line_about_it(run):
    out = run("list").out
    assert set(installed()) >= FIVE
    for name, words in installed().items():
        assert words, name
        assert f"{name} " in out
        assert words in out


def test_paper_prints_the_table_of_the_equations(run):
    rows = json.loads(run("paper", "--json").out)
    assert len(rows) == 179
    assert all(list(row) == ["number", "verdict", "witness", "where", "remark"] for row in rows)
    assert "sign" in next(row["remark"] for row in rows if row["number"] == "138")
    lines = run("paper").out.splitlines()
    assert lines[0].split() == ["number", "verdict", "witness", "where"]
    assert len(lines) == 181
    assert lines[-1].startswith("179 equations")


def test_derive_prints_the_whole_record(run):
    got = run("derive", "gardner")
    assert got.status == 0
    assert "Perceptron capacity" in got.out
    assert "Assumptions" in got.out
    assert "Traceback" not in got.out


def test_derive_writes_latex_and_html_from_any_folder(run, tmp_path):
    got = run("derive", "gardner", "--latex", "g.tex", "--html", "g.html")
    assert got.status == 0
    assert (tmp_path / "g.tex").read_text(encoding="utf-8").startswith("\\documentclass")
    assert "<html" in (tmp_path / "g.html").read_text(encoding="utf-8")
    assert "wrote g.tex" in got.err


def test_a_fragment_has_no_preamble(tmp_path):
    file = tmp_path / "part.tex"
    assert main(["derive", "gardner", "--latex", str(file), "--fragment", "--detail", "paper", "--quiet"]) == 0
    text = file.read_text(encoding="utf-8")
    assert text.startswith("\\noindent A perceptron with the margin $\\kappa$")
    assert "\\begin{document}" not in text
    assert "\\section{" in text


def test_derive_prints_latex_to_stdout_on_request(run):
    assert run("derive", "gardner", "--latex", "-").out.startswith("\\documentclass")


def test_derive_naive_is_another_derivation(run):
    assert run("derive", "gardner", "--method", "naive").out != run("derive", "gardner").out


def test_solve_prints_as_many_digits_as_asked(run):
    got = run("solve", "gardner", "kappa=1", "--dps", "38")
    assert got.status == 0
    assert "0.5195722296049379694876559648691737282" in got.out


def test_solve_finds_kappa_where_alpha_is_given(run):
    got = json.loads(run("solve", "gardner", "alpha=1.2", "--json").out)
    back = json.loads(run("solve", "gardner", f"kappa={got['values']['kappa']}", "--json").out)
    assert float(back["values"]["alpha"]) == pytest.approx(1.2, rel=1e-12)


def test_solve_json_keeps_digits_values_and_residual(run):
    got = json.loads(run("solve", "gardner", "kappa=1/2", "--dps", "50", "--json").out)
    assert got["given"] == {"kappa": "1/2"}
    assert got["dps"] == 50
    assert isinstance(got["values"]["alpha"], str)
    assert len(got["values"]["alpha"]) >= 50
    assert float(got["residual"]) < 1e-50


def test_values_may_stand_after_options(run):
    a = run("solve", "gardner", "--dps", "20", "kappa=1/2").out
    assert a == run("solve", "gardner", "kappa=1/2", "--dps", "20").out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["anisotropic", "kappa=1/2", "l=0.2,1.8"], "0.77024"),
        (["anisotropic", "kappa=1/2", "l=0.2:1/2,1.8:0.5"], "0.77024"),
        (["output_bias", "kappa=1", "f=0.8"], "0.72063"),
    ],
)
def test_solve_reads_laws_and_arrays_of_quenched_parameters(run, words, expected):
    assert expected in run("solve", *words).out


def test_solve_reads_arrays_from_files(run, tmp_path):
    rho = 1 / np.arange(1, 41) ** 2
    np.save("rho.npy", rho)
    (tmp_path / "a.csv").write_text("\n".join(repr(float(v)) for v in np.sqrt(rho)), encoding="utf-8")
    got = run("solve", "kernel_ridge", "gamma=1/10", "P=20", "rho=@rho.npy", "a=@a.csv", "--json")
    assert got.status == 0, got.err
    values = json.loads(got.out)
    assert float(values["values"]["S_varepsilon"]) > 0
    assert len(values["given"]["rho"]) == 40


def test_solve_shows_observables_in_the_words_of_the_declaration(run):
    words = ["average(lambda[mu] > 0)", "average(lam[mu] > 0)", "S_w", "response(w)"]
    options = [option for word in words for option in ("--show", word)]
    got = json.loads(run("solve", "gardner", "kappa=1", "--json", *options).out)
    shown = got["observables"]
    assert float(shown["average(lambda[mu] > 0)"]) == pytest.approx(0.841344746068543)
    assert shown["average(lam[mu] > 0)"] == shown["average(lambda[mu] > 0)"]
    assert shown["S_w"] == shown["response(w)"] == got["values"]["S_w"]


def test_a_shape_is_read_as_a_value(run):
    got = run("solve", "manifold", "kappa=1/2", "g_S=Ball(5, 1)", "--dps", "20")
    assert got.status == 0, got.err
    assert "0.23756601758186617676" in got.out
    for wrong in ("g_S=Ball(5,1,2)", "g_S=open('x')", "g_S=Cube(3)", "g_S=Ball()"):
        assert run("solve", "manifold", "kappa=1/2", wrong).status == 2


def test_laws_of_convex_sets_are_simulated_in_the_same_words(run):
    shown = ["average(Sum(Lambda[mu, a]**2, (a, 1, D + 1)))", "average(regime[mu] == 3)", "average(V[mu, 3])"]
    words = [word for text in shown for word in ("--show", text)]
    got = run("simulate", "manifold", "alpha=0.3", "g_S=Ball(2,1)", "--N", "20", "--seeds", "2", *words)
    assert got.status == 0, got.err
    assert "cutting planes" in got.out
    assert got.out.count("average(") >= 3
    got = run("experiment", "manifold", "alpha=0.3", "g_S=Segment(1)", "--N", "20", "--seeds", "2")
    assert got.status == 0, got.err
    assert "between different components" in got.out
    got = run("sweep", "manifold", "kappa=0.5,1", "g_S=Ball(1,1)", "--simulate", "--N", "20", "--seeds", "2")
    assert got.status == 0, got.err
    got = run("simulate", "manifold", "alpha=0.3", "g_S=Bal(2,1)", "--N", "20", "--seeds", "2")
    assert got.status == 2
    assert "Ball(D,R)" in got.err
    got = run("simulate", "manifold", "alpha=0.3", "--N", "20", "--seeds", "2")
    assert got.status == 2
    assert "The set of g_S is not given" in got.err


def test_check_accepts_what_is_derived(run):
    got = run("check", "gardner", "--dps", "15")
    assert got.status == 0, got.out + got.err
    assert "0 FAILED" in got.out


def test_check_fails_with_status_1_if_a_claim_fails(run, monkeypatch):
    from symcavity.face import Derivation, Verification
    from symcavity.record.derivation import Checked, Verdict

    def verify(self, dps):
        assert dps == 20
        return Verification((Checked(self[0], (Verdict("symbolic", ok=False, detail="a sign"),)),))

    monkeypatch.setattr(Derivation, "verify", verify)
    assert run("check", "gardner", "--dps", "20").status == 1


def test_simulate_compares_theory_with_instances(run):
    got = run("simulate", "gardner", "alpha=1.2", "--N", "60", "--seeds", "4")
    assert got.status == 0, got.err
    assert "average(w[i]**2)" in got.out
    assert "4 instances" in got.out


def test_simulate_writes_its_table(run, tmp_path):
    file = tmp_path / "table.csv"
    words = ["--N", "30", "--seeds", "3", "--show", "average(w[i]**2)", "--csv", str(file)]
    got = run("simulate", "gardner", "alpha=1", *words)
    assert got.status == 0, got.err
    head, row = file.read_text(encoding="utf-8").splitlines()
    assert head == "observable,theory,simulation,stderr,z,note"
    assert row.startswith("average(w[i]**2),4.514337")
    assert run("simulate", "gardner", "alpha=1", "--N", "30", "--csv", str(tmp_path / "no" / "t.csv")).status == 2


def test_simulate_takes_the_load_from_the_theory_where_an_average_is_given(run):
    got = run("simulate", "gardner", "kappa=1", "--N", "60", "--seeds", "3", "--show", "average(w[i]**2)")
    assert got.status == 0, got.err
    assert "P = 31" in got.out
    assert "alpha = 0.519572" in got.err


def test_simulate_takes_a_parameter_from_the_theory_where_a_condition_fixes_it(run, tmp_path):
    path = tmp_path / "ridge.py"
    path.write_text(
        "from sympy import Eq, Rational, Sum, Symbol\n"
        "from symcavity import *\n"
        "x, w, y = Coupling('x'), Feature('w'), Quenched('y', mu, law={1: '1/2', -1: '1/2'})\n"
        "gamma = Symbol('gamma', positive=True)\n"
        "misfit = Sum((y[mu] - Sum(x[mu, i]*w[i], (i, 1, N)))**2, (mu, 1, P))/2\n"
        "norm = Sum(w[i]**2, (i, 1, N))/2\n"
        "problem = ConvexProblem(minimize=misfit + gamma*norm, fixed=[Eq(average(w[i]**2), Rational(3, 5))])\n"
    )
    for given, size in (("gamma=1/10", "P = 93"), ("alpha=3/2", "P = 60")):
        got = run("simulate", str(path), given, "--N", "40", "--seeds", "6")
        assert got.status == 0, got.err
        assert "average(w[i]**2) = 3/5: the theory has " in got.err
        assert size in got.out
        row = next(line.split() for line in got.out.splitlines() if line.startswith("average(w[i]**2)"))
        assert float(row[1]) == pytest.approx(0.6, rel=0.02)  # the load is rounded
        assert abs(float(row[3])) < 4


def test_sweep_writes_resumes_and_draws(run, tmp_path):
    words = ("sweep", "gardner", "kappa=0:2:3", "--csv", "c.csv", "--plot", "c.png")
    assert run(*words).status == 0
    first = (tmp_path / "c.csv").read_text(encoding="utf-8")
    assert len(first.splitlines()) == 4
    assert (tmp_path / "c.png").stat().st_size > 1000
    again = run(*words)
    assert again.status == 2
    assert "--resume" in again.err
    assert (tmp_path / "c.csv").read_text(encoding="utf-8") == first
    assert run(*words, "--resume").status == 0
    assert (tmp_path / "c.csv").read_text(encoding="utf-8") == first


def test_a_sweep_is_not_resumed_from_the_file_of_another(run, tmp_path):
    words = ("sweep", "anisotropic", "kappa=1/2,1", "--csv", "c.csv")
    assert run(*words, "l=0.2,1.8", "--method", "naive").status == 0
    before = (tmp_path / "c.csv").read_text(encoding="utf-8")
    for other in (("l=0.5,50",), ("l=0.2,1.8",)):
        got = run(*words, *other, "--resume")
        assert got.status == 2
        assert got.out == ""
        assert "there method = naive" in got.err
        assert "here method = cavity" in got.err
        assert (tmp_path / "c.csv").read_text(encoding="utf-8") == before
    assert run(*words, "l=0.2,1.8", "--method", "naive", "--resume").status == 0


def test_sweep_simulates_beside_the_theory(run, tmp_path):
    options = ("--simulate", "--N", "40", "--seeds", "2", "--csv", "c.csv")
    got = run("sweep", "gardner", "kappa=0.5,1.5", *options)
    assert got.status == 0, got.err
    rows = (tmp_path / "c.simulation.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 1 + 4


def test_experiment_inserts_sites(run):
    got = run("experiment", "gardner", "alpha=0.5", "--N", "40", "--seeds", "6")
    assert got.status == 0, got.err
    assert "one feature added" in got.out
    assert "one datum added" in got.out


def test_manifold_measures_point_clouds(run, tmp_path):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(2, 1, 12)) * 3 + 0.3 * rng.normal(size=(2, 8, 12))
    np.save("points.npy", points)
    got = run("manifold", "points.npy", "--samples", "512", "--csv", "geometry.csv")
    assert got.status == 0, got.err
    assert "capacity" in got.out
    assert len((tmp_path / "geometry.csv").read_text(encoding="utf-8").splitlines()) == 3
    table = json.loads(run("manifold", "points.npy", "--samples", "512", "--json").out)
    assert len(table["manifolds"]) == 2


# -- files of the user's -------------------------------------------------------------------------------


def test_a_file_of_ones_own_goes_through(run, tmp_path):
    (tmp_path / "mine.py").write_text(DECLARATION + "soft = make(C)\n", encoding="utf-8")
    assert run("derive", "mine.py").status == 0
    assert run("solve", "mine.py", "alpha=1", "C=2").status == 0


def test_problem_wins_and_object_selects(run, tmp_path):
    source = DECLARATION + "problem = make(C)\nother = make(2 * C)\n"
    (tmp_path / "two.py").write_text(source, encoding="utf-8")
    one = json.loads(run("solve", "two.py", "alpha=1", "C=2", "--json").out)
    two = json.loads(run("solve", "two.py", "alpha=1", "C=1", "--object", "other", "--json").out)
    assert one["values"] == two["values"]
    assert run("derive", "kernel_ridge", "--object", "from_loss").status == 0
    assert load("kernel_ridge") is not load("kernel_ridge", "from_loss")


def test_what_a_file_prints_does_not_spoil_the_output(run, tmp_path):
    (tmp_path / "loud.py").write_text(DECLARATION + "print('hello')\nproblem = make(C)\n", encoding="utf-8")
    got = run("solve", "loud.py", "alpha=1", "C=2", "--json")
    assert json.loads(got.out)["values"]
    assert "hello" in got.err


def test_a_file_may_import_its_neighbour_and_give_one_problem_two_names(run, tmp_path):
    (tmp_path / "base.py").write_text(DECLARATION + "shared = make(C)\n", encoding="utf-8")
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "beside.py").write_text(DECLARATION, encoding="utf-8")
    (folder / "uses.py").write_text("from beside import make, C\na = make(C)\nb = a\n", encoding="utf-8")
    assert run("solve", "elsewhere/uses.py", "alpha=1", "C=2").status == 0


BAD_FILES = {
    "no problem": ("x = 1\n", ["declares no problem", "ConvexProblem"]),
    "only a function": (DECLARATION, ["declares no problem", "make(...)"]),
    "two problems": (
        DECLARATION + "a = make(C)\nb = make(2 * C)\n",
        ["declares 2 problems: a, b", "--object a"],
    ),
    "their exception": ("y = 2\nprint(z)\n", ["bad.py, line 2", "NameError", "print(z)"]),
    "a word with a letter missing": ("x = Couplng('x')\n", ["NameError", "Try: from symcavity import Coupling"]),
    "a word of SymPy's": ("y = Rationa(1, 2)\n", ["Try: from sympy import Rational"]),
    "an index on a symbol": ("from sympy import Symbol\nSymbol('w')[1]\n", ["TypeError", 'Feature("w")']),
    "a comparison for an equality": (
        (
            "from sympy import Sum\nfrom symcavity import *\nw = Feature('w')\n"
            "problem = ConvexProblem(Sum(w[i]**2, (i, 1, N)), [w[i] == 1])\n"
        ),
        ["constant False", "Eq(a, b), not a == b"],
    ),
    "their syntax": ("def f(:\n", ["bad.py, line 1", "SyntaxError"]),
    "their exit": ("import sys\nsys.exit(3)\n", ["bad.py, line 2", "SystemExit"]),
    "a float": (
        DECLARATION + "problem = make(1.5)\n",
        ["bad.py, line", "float 0.75", "Rational(3, 4)"],
    ),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_refused_with_its_reason(run, tmp_path, case):
    source, said = BAD_FILES[case]
    (tmp_path / "bad.py").write_text(source, encoding="utf-8")
    got = run("derive", "bad.py")
    assert got.status == 2
    assert got.out == ""
    for words in said:
        assert words in got.err
    assert "Traceback" not in got.err
    assert "loading.py" not in got.err


# -- bad input -----------------------------------------------------------------------------------------

BAD_COMMANDS = {
    "an unknown name": (["derive", "gardnr"], ["No derivation is named 'gardnr'", "Try: gardner"]),
    "a file that is not there": (["derive", "nowhere.py"], ["nowhere.py cannot be read"]),
    "a folder": (["derive", "./"], ["cannot be read"]),
    "an unknown object": (["derive", "kernel_ridge", "--object", "fromloss"], ["from_loss"]),
    "an unknown parameter": (["solve", "gardner", "kapa=1"], ["no parameter kapa", "Try: kappa"]),
    "an unknown of the theory": (["solve", "gardner", "kappa=1", "w=1"], ["variable", "solved for"]),
    "a value twice": (["solve", "gardner", "kappa=1", "kappa=2"], ["given twice"]),
    "no value": (["solve", "gardner"], ["missing"]),
    "too many values": (["solve", "gardner", "kappa=1", "alpha=1"], ["Too many values"]),
    "no equals sign": (["solve", "gardner", "kappa"], ["name=value"]),
    "a word for a value": (["solve", "gardner", "kappa=one"], ["'one'", "fractions"]),
    "code for a value": (["solve", "gardner", "kappa=__import__('os')"], ["fractions"]),
    "a value too large": (["solve", "gardner", "kappa=1e9999"], ["1e-5000 to 1e300"]),
    "a value too small": (["solve", "gardner", "kappa=1e-9999"], ["1e-5000 to 1e300"]),
    "an endless exponent": (["solve", "gardner", "kappa=1e999999999"], ["fractions"]),
    "a division by zero": (["solve", "gardner", "kappa=1/0"], ["division by zero"]),
    "a negative value": (["solve", "gardner", "kappa=-1"], ["positive"]),
    "above capacity": (["solve", "gardner", "alpha=3"], ["capacity 2"]),
    "no digits": (["solve", "gardner", "kappa=1", "--dps", "0"], ["positive integer"]),
    "no digits of a check": (["check", "gardner", "--dps", "0"], ["positive integer"]),
    "weights": (["solve", "anisotropic", "kappa=1", "l=1:0.8,2:0.3"], ["11/10", "sum to one"]),
    "half a law": (["solve", "anisotropic", "kappa=1", "l=1:0.8,2"], ["some have none"]),
    "a law that is missing": (["solve", "anisotropic", "kappa=1"], ["l has no value", "a law value:weight"]),
    "an array that is not there": (["solve", "anisotropic", "kappa=1", "l=@no.csv"], ["no.csv"]),
    "code for an observable": (
        ["solve", "gardner", "kappa=1", "--show", "__import__('os').system('true')"],
        ["cannot be read"],
    ),
    "an observable that was cut": (
        ["solve", "gardner", "kappa=1", "--show", "average(w[i]**2)" + 100 * "+1000" + "0"],
        ["has 517 characters", "up to 400"],
    ),
    "an endless number in an observable": (["solve", "gardner", "kappa=1", "--show", "1e9999"], ["1e300"]),
    "an attribute": (["solve", "gardner", "kappa=1", "--show", "w.family"], ["cannot be read"]),
    "a tower of powers": (["solve", "gardner", "kappa=1", "--show", "9**9**9"], ["powers"]),
    "a variable outside an average": (["solve", "gardner", "kappa=1", "--show", "w[i]"], ["average"]),
    "a folder that is not there": (["derive", "gardner", "--latex", "no/such/g.tex"], ["cannot be written"]),
    "a plot of no format": (["simulate", "gardner", "alpha=1", "--N", "20", "--plot", "p.xyz"], [".pdf"]),
    "no size": (["simulate", "gardner", "alpha=1"], ["N"]),
    "no seeds": (["simulate", "gardner", "alpha=1", "--N", "20", "--seeds", "0"], ["seeds"]),
    "a size of words": (["simulate", "gardner", "alpha=1", "--N", "many"], ["whole numbers"]),
    "unknown couplings": (
        ["simulate", "gardner", "alpha=1", "--N", "20", "--couplings", "cauchy"],
        ["gaussian"],
    ),
    "no grid": (["sweep", "gardner", "kappa=1"], ["Try: kappa=1/2:2:7"]),
    "no grid of another problem": (["sweep", "soft_margin", "alpha=0", "C=1"], ["Try: alpha=0:1:7"]),
    "no number to sweep about": (["sweep", "spin_glass"], ["Try: H=1/2:2:7"]),
    "half a grid": (["sweep", "gardner", "kappa=0:3"], ["start:stop:count"]),
    "no size in a sweep": (["sweep", "gardner", "kappa=0:3:4", "--simulate"], ["--N 200"]),
    "no points": (["manifold", "points.npy"], ["points.npy", "cannot be read"]),
    "an option that is none": (["solve", "gardner", "kappa=1", "--digits", "3"], ["unrecognized"]),
    "an option that is nearly one": (["derive", "gardner", "--latx", "g.tex"], ["did you mean --latex"]),
    "a value with dashes": (["solve", "gardner", "--kappa", "1"], ["have no dashes: alpha=2"]),
    "sizes that are missing": (["solve", "kernel_ridge"], ["N and P are not given", "P=100 N=200"]),
    "an experiment of no size": (["experiment", "gardner", "alpha=1"], ["number of features", "--N 400"]),
    "a fixed average in an instance": (
        ["simulate", "gardner", "kappa=1", "alpha=1", "--N", "20"], ["Try: alpha=1;", "symcavity solve at kappa=1"]
    ),
    "no command": ([], ["COMMAND", "examples:", "symcavity derive gardner"]),
}


@pytest.mark.parametrize("case", BAD_COMMANDS)
def test_bad_input_is_refused_in_a_sentence(run, case):
    argv, said = BAD_COMMANDS[case]
    got = run(*argv)
    assert got.status == 2, (got.out, got.err)
    assert got.out == ""
    for words in said:
        assert words in got.err
    assert "Traceback" not in got.err
    assert "defect" not in got.err


def test_an_output_is_refused_before_the_work_and_leaves_no_file(run, tmp_path):
    assert run("derive", "gardnr", "--latex", "g.tex").status == 2
    assert not (tmp_path / "g.tex").exists()


def test_pickled_arrays_are_refused(run):
    np.save("evil.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    for argv in (["manifold", "evil.npy"], ["solve", "anisotropic", "kappa=1", "l=@evil.npy"]):
        got = run(*argv)
        assert got.status == 2
        assert "objects are not loaded" in got.err


def test_arrays_whose_header_claims_more_than_the_file_holds_are_refused(run):
    for count in (10**12, 10**30):
        with open("vast.npy", "wb") as handle:
            np.lib.format.write_array_header_1_0(
                handle, {"descr": "<f8", "fortran_order": False, "shape": (count,)}
            )
            handle.write(8 * b"\0")
        for argv in (["manifold", "vast.npy"], ["solve", "anisotropic", "kappa=1", "l=@vast.npy"]):
            got = run(*argv)
            assert got.status == 2, got.err
            assert "not a .npy array" in got.err


def test_a_defect_of_ours_is_said_in_a_sentence(run, monkeypatch):
    from symcavity.commands import actions

    def broken(*_):
        raise ZeroDivisionError("at the worst moment")

    monkeypatch.setattr(actions, "theory_of", broken)
    got = run("derive", "gardner")
    assert got.status == 3
    assert "defect of symcavity" in got.err
    assert "Traceback" not in got.err


def test_interruption_is_quiet(run, monkeypatch):
    from symcavity.commands import actions

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(actions, "theory_of", interrupted)
    got = run("derive", "gardner")
    assert (got.status, got.out, got.err) == (130, "", "symcavity: stopped\n")


# -- the readers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [("1/2", (1, 2)), ("0.1", (1, 10)), ("1e-3", (1, 1000)), ("-2.50", (-5, 2)), (".5", (1, 2))],
)
def test_numbers_are_exact(text, value):
    found = read_number(text, "kappa")
    assert (found.p, found.q) == value


@pytest.mark.parametrize("text", ["", "nan", "inf", "1_000", "0x10", "1/2/3", "1.5/2", "pi", "--1", "1 2"])
def test_other_numbers_are_refused(text):
    with pytest.raises(ValuesError):
        read_number(text, "kappa")


def test_observables_are_read_like_code_but_are_none():
    import sympy

    import symcavity as sc
    from symcavity.derivations.soft_margin import problem, w, xi

    system = problem.kkt()
    read = {
        "average(w[i]**2)": sc.average(w[sc.i] ** 2),
        "average(xi[mu] > 1)": sc.average(xi[sc.mu] > 1),
        "Sum(w[i]**2, (i, 1, N))/2": sympy.Sum(w[sc.i] ** 2, (sc.i, 1, sc.N)) / 2,
        "average(tanh(w[i])**2 + Max(0, w[i]))": sc.average(sympy.tanh(w[sc.i]) ** 2 + sympy.Max(0, w[sc.i])),
        "sqrt(average(w[i]**2)) - 0.5*response(w)": sympy.sqrt(sc.average(w[sc.i] ** 2)) - sc.response(w) / 2,
    }
    for text, expected in read.items():
        assert read_observable(text, system) == expected
    for text in ("exp(exp(exp(9)))", "average(tanh(w[i], 2))"):
        with pytest.raises(ValuesError, match="cannot be read"):
            read_observable(text, system)


def test_values_are_read_by_name():
    from symcavity.derivations.anisotropic import kappa, l, problem

    found = read_pairs(["l=1/5:0.8,9/5:0.2", "kappa=1/2"], problem.kkt())
    assert set(found) == {l, kappa}
    assert sum(found[l].values()) == 1


# -- whole processes -----------------------------------------------------------------------------------


def _process(*argv: str, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "symcavity.cli", *argv]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)  # noqa: S603


def test_the_whole_process_works_in_an_empty_folder(tmp_path):
    got = _process("derive", "gardner", cwd=tmp_path)
    assert got.returncode == 0, got.stderr
    assert "Perceptron capacity" in got.stdout
    assert got.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_of_few_letters_gets_question_marks(tmp_path):
    got = _process("derive", "gardner", cwd=tmp_path, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert got.returncode == 0, got.stderr
    assert "Perceptron capacity" in got.stdout


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_broken_pipe_is_quiet(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        command = [sys.executable, "-m", "symcavity.cli", "derive", "gardner"]
        got = subprocess.run(  # noqa: S603
            command, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False, timeout=120, cwd=tmp_path
        )
    assert got.returncode == 141
    assert got.stderr == ""


def test_help_teaches_by_examples_that_parse(run, monkeypatch):
    import re
    import shlex

    from symcavity.cli import build_parser

    monkeypatch.setenv("COLUMNS", "60")  # what says what a command does is wrapped; examples keep their lines
    examples = []
    for command in ("list", "paper", "derive", "check", "solve", "simulate", "sweep", "experiment", "manifold"):
        text = run(command, "--help").out
        found = re.findall(r"^  symcavity (.+?)(?:\s+#.*)?$", text, flags=re.MULTILINE)
        assert found, command
        assert all(len(line) <= 60 for line in text.partition("examples:")[0].splitlines()), command
        examples += found
    for example in examples:
        build_parser().parse_args(shlex.split(example))


def test_the_package_on_disk_has_the_derivations():
    import symcavity.derivations

    assert Path(next(iter(symcavity.derivations.__path__))).is_dir()


def test_the_jobs_of_an_array_share_out_the_seeds():
    from symcavity.cli import build_parser

    words = ["sweep", "soft_margin", "alpha=1", "C=1", "--simulate", "--N", "20"]
    assert build_parser().parse_args([*words, "--seeds", "40:43"]).seeds == [40, 41, 42]
    assert build_parser().parse_args([*words, "--seeds", "3"]).seeds == 3
    with pytest.raises(SystemExit):
        build_parser().parse_args([*words, "--seeds", "3:x"])


def test_states_that_move_are_run_at_one_size(run):
    """The second of two sizes was left out without a word."""
    values = ["g=3/2", "r=1/2", "h=1/2", "a=1", "--until", "3"]
    got = run("evolve", "reciprocal_network", *values, "--N", "40,60")
    assert got.status != 0
    assert "one whole number of features" in got.err


@pytest.mark.parametrize(
    ("command", "said"),
    [("messages", "message passing"), ("simulate", "simulate"), ("experiment", "experiment"), ("sweep", "sweep")],
)
def test_states_that_move_are_sent_to_their_own_command(run, command, said):
    got = run(command, "chaotic_network", "g=2", "a=1")
    assert got.status != 0
    assert f"The states depend on time, and {said} needs a theory at rest" in got.err
    assert "symcavity evolve NAME name=value --until T, with --N and --seeds for instances" in got.err
