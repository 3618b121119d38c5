"""A magnet of random pairs at a temperature: the model of Sherrington and Kirkpatrick in a field.

The magnetization is ``m``, the overlap of two states of the same magnet ``q``.

Values: the inverse temperature ``beta`` and the field ``H``. At low temperature and weak field the states do
not settle in one valley: ``problem.cavity().boundary("stability", across={beta: (1, 3)}, values={H: Rational(1,
2)})`` ends at the line of de Almeida and Thouless, ``beta = 1.8687923``.

D. Sherrington, S. Kirkpatrick, Phys. Rev. Lett. 35, 1792 (1975); J. R. L. de Almeida, D. J. Thouless, J. Phys.
A 11, 983 (1978).
"""

from sympy import Rational, Sum, Symbol

from symcavity import Coupling, Feature, N, Problem, average, expect, i

J, s = Coupling("J", between=(i, i), reciprocity=1), Feature("s", values=(-1, 1))
j = Symbol("j", integer=True)
beta, H = Symbol("beta", positive=True), Symbol("H", real=True)

problem = Problem(
    minimize=-Sum(s[i] * Sum(J[i, j] * s[j], (j, 1, N)), (i, 1, N)) / 2 - H * Sum(s[i], (i, 1, N)),
    named={Symbol("m"): average(s[i]), Symbol("q"): average(expect(s[i]) ** 2)},
    name="A magnet of random pairs",
    says=(
        "In a field the magnet has one valley at high temperature. It breaks up at the line of de Almeida and "
        "Thouless, where Λ = 1: at β = 1.869 in the field H = 1/2."
    ),
    cite=(
        "D. Sherrington, S. Kirkpatrick, Phys. Rev. Lett. 35, 1792 (1975); J. R. L. de Almeida, D. J. Thouless, "
        "J. Phys. A 11, 983 (1978)"
    ),
).gibbs(beta)
values = {beta: Rational(4, 5), H: Rational(1, 2)}
shown = [average(s[i]), average(expect(s[i]) ** 2)]
