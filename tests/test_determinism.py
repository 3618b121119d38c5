"""The same declaration gives the same words, whatever the order in which Python hashes sets."""

import os
import subprocess
import sys

CODE = """
from sympy import Abs, Eq, Max, Sum, Symbol
from symcavity import *

x, u = Coupling("x"), Coupling("u", variance=Quenched("l", i)[i] / N)
w, v, xi, b = Feature("w"), Feature("v"), Datum("xi"), Global("b")
y, C, kappa = Quenched("y", mu), Symbol("C", positive=True), Symbol("kappa", positive=True)
h = Sum(x[mu, i] * w[i], (i, 1, N))
g = Sum(u[mu, i] * v[i], (i, 1, N))
q = Sum(w[i] ** 2 + v[i] ** 2 + (w[i] - v[i]) ** 2, (i, 1, N)) / 2
bad = [lambda: ConvexProblem(q + 0.5 * C * q + 0.25 * q, [h >= 1]), lambda: ConvexProblem(C * q, [h >= Symbol("C")])]
for problem in (
    ConvexProblem(q, [y[mu] * (h + b) >= 1], [Eq(average(w[i] ** 2), 1 / kappa**2)]),
    ConvexProblem(q + C * Sum(xi[mu] + xi[mu] ** 2, (mu, 1, P)), [g >= 1 - xi[mu], xi[mu] >= 0]),
    ConvexProblem(Sum(w[i]**2, (i, 1, N)) + C * Sum(Max(0, Abs(h - y[mu]) - kappa), (mu, 1, P))),
):
    system = problem.kkt()
    print(system, system.parameters, system.quenched, list(system.variables))
    theory = system.cavity()
    print(theory)
    print(theory.feature, theory.datum, sep="\\n")
print(ConvexProblem(q, [h + g >= 1]).kkt())
for wrong in bad:
    try:
        wrong()
    except SymcavityError as error:
        print(error)
"""


def run(seed):
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_hash_seed_does_not_show():
    first = run(0)
    assert "S_w" in first
    assert "Rational" in first
    for seed in (1, 12345):
        assert run(seed) == first
