"""The command ``evolve``: tables, data and pictures of a theory that runs forward, with instances beside it."""

import json

import pytest

from symcavity.cli import main

NETWORK = '''
from sympy import Eq, Sum, Symbol, tanh
from symcavity import Coupling, N, Quenched, System, Time, Variable, i

t, g, j = Time("t"), Symbol("g", positive=True), Symbol("j")
x, a = Variable("x", i, over=t), Quenched("a", i)
J = Coupling("J", between=(i, i), variance=g**2 / N, reciprocity=Symbol("r", real=True))
heard = Sum(J[i, j] * tanh(x[j, t]), (j, 1, N))
problem = System([Eq(x[i, t + 1], heard)], initial=[Eq(x[i, 0], a[i])], name="A network")
'''
VALUES = ("g=3/2", "r=1/2", "a=1:1/2,-1:1/2")
RIDGE = ("noisy_teacher", "alpha=2", "gamma=1", "t=1:1/2,-1:1/2", "noise=0")


@pytest.fixture
def network(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "network.py").write_text(NETWORK, encoding="utf-8")
    return "network.py"


def test_a_run_is_a_table_with_a_picture_and_instances(network, capsys, tmp_path):
    shown = ("--show", "average(x[i]**2)", "--show", "average(x[i, t]*x[i, s])", "--show", "response(x[i, t], s)")
    words = ("evolve", network, *VALUES, "--until", "4", "--paths", "2000", *shown, "--N", "60", "--seeds", "4")
    assert main([*words, "--plot", "network.png"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("A network: paths, 4 steps\nt  average(x[i, t]**2)\n0                    1\n")
    assert "average(x[i, s]*x[i, t]) at t = 4" in out
    assert "4 instances with N = 60" in out
    assert (tmp_path / "network.png").stat().st_size > 5000
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["method"], found["times"]) == ("paths", [0, 1, 2, 3, 4])
    square, product, response = found["observables"]
    assert len(square["theory"]) == len(square["simulation"]) == len(product["theory"][4]) == 5
    assert "simulation" not in response


def test_a_problem_is_descended(capsys):
    assert main(["evolve", *RIDGE, "--rate", "1/10", "--momentum", "1/2", "--until", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["observables"][1] == {
        "observable": "average(w[i, k]**2)", "theory": ["0", "3/50", "249/1000"], "error": [0.0, 0.0, 0.0]
    }  # fmt: skip
    error = "average((w[i] - t[i])**2)"
    assert main(["evolve", *RIDGE, "--rate", "1/10", "--until", "2", "--show", error, "--dps", "20"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["2", "0.502"]
    assert main(["evolve", *RIDGE, "--step", "1/4", "--until", "1/2", "--show", error]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 5


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("evolve", *RIDGE, "--until", "3"), "--rate 1/10"),
        (("evolve", "wishart_resolvent", "alpha=2", "--until", "3"), "do not depend on time"),
        (("evolve", "gardner", "kappa=1", "--until", "3", "--rate", "1"), "The problem fixes"),
        (("evolve", "network.py", *VALUES, "--until", "3", "--rate", "1"), "no rate"),
        (("evolve", "network.py", *VALUES, "--until", "0"), "until"),
        (("evolve", "network.py", *VALUES, "--until", "1/2"), "whole number"),
        (("evolve", "network.py", *VALUES, "--until", "2", "--step", "1/2"), "step"),
        (("evolve", "network.py", "g=1", "--until", "3"), "missing: r"),
        (("evolve", "network.py", *VALUES, "--until", "3", "--show", "average(y[i])"), "cannot be read"),
        (("evolve", "network.py", *VALUES, "--until", "3", "--plot", "a.txt"), "no known format"),
        (("evolve", "network.py", *VALUES, "--until", "3", "--method", "naive"), "the naive analysis"),
    ],
)
def test_what_is_refused(words, said, network, capsys):
    assert network
    assert main(words) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err
