"""The command line of sensitivities, optima and boundaries."""

from symcavity.cli import main

DECLARATION = """
from sympy import Sum, Symbol
from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, i, mu
x, w, t, e = Coupling("x"), Feature("w"), Quenched("t", i), Quenched("e", mu)
gamma, s = Symbol("gamma", positive=True), Symbol("s", positive=True)
gap = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - s * e[mu]
problem = ConvexProblem(Sum(gap**2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
"""


def test_sensitivity(capsys):
    assert main(["sensitivity", "gardner", "kappa=1", "--of", "alpha", "--by", "kappa", "--dps", "30"]) == 0
    assert capsys.readouterr().out == "d(alpha)/d(kappa) = -0.584893509563617079958116111964\n"
    assert main(["sensitivity", "gardner", "kappa=1", "--of", "alpha", "--by", "C"]) == 2
    assert "not a parameter of this theory" in capsys.readouterr().err


def test_optimize_and_boundary(capsys, tmp_path):
    file = tmp_path / "ridge.py"
    file.write_text(DECLARATION)
    laws = ["t=1:1/2,-1:1/2", "e=1:1/2,-1:1/2"]
    of = ["--of", "average((w[i] - t[i])**2)"]
    assert main(["optimize", str(file), "alpha=2", "s=1/2", *laws, *of, "--over", "gamma=0.01,10"]) == 0
    assert "at gamma = 0.25" in capsys.readouterr().out
    assert main(["optimize", str(file), "alpha=2", "s=1/2", *laws, *of, "--over", "gamma=1,2,3"]) == 2
    assert "two numbers" in capsys.readouterr().err
    line = ["--what", "average((w[i] - t[i])**2)", "--across", "gamma=1,2"]
    assert main(["boundary", str(file), "alpha=2", "s=1/2", *laws, *line]) == 2
    assert "No boundary" in capsys.readouterr().err
    assert main(["boundary", "gardner", "--what", "feasible", "--across", "alpha=1,3"]) == 2
    assert "Try: 'feasibility'" in capsys.readouterr().err


def test_a_quiet_derivation_prints_nothing_beside_its_files(capsys, tmp_path):
    assert main(["derive", "gardner", "-q", "--latex", str(tmp_path / "gardner.tex")]) == 0
    assert capsys.readouterr().out == ""
    assert main(["derive", "gardner", "-q"]) == 0
    assert "Assumptions" in capsys.readouterr().out
