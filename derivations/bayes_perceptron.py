"""Learning from the signs of a teacher with all students that make no error: the posterior of a perceptron.

Values: ``alpha``. Students and teacher have the same prior, so that a student drawn at random is to the teacher
what two students are to each other. The label of a fresh point by the majority of all students is the best
guess; it is wrong with the probability ``acos(sqrt(q))/pi``, which falls as ``0.44/alpha``.

G. Györgyi, N. Tishby, in Neural Networks and Spin Glasses (World Scientific, Singapore, 1990); M. Opper, D.
Haussler, Phys. Rev. Lett. 66, 2677 (1991).
"""

from sympy import Heaviside, Sum, Symbol, acos, pi, sqrt
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, Quenched, alpha, average, expect, i, mu

x, w, t = Coupling("x"), Feature("w"), Quenched("t", i, law=Normal("t", 0, 1))
h, u = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(x[mu, i] * t[i], (i, 1, N))
y = Quenched("y", mu, law={1: Heaviside(u), -1: Heaviside(-u)}, given=u)
epsilon = Symbol("epsilon")

problem = ConvexProblem(
    minimize=Sum(w[i] ** 2, (i, 1, N)) / 2,
    subject_to=[y[mu] * h >= 0],
    named={epsilon: acos(sqrt(average(expect(w[i]) ** 2))) / pi},
    name="All students of a perceptron without an error",
    says=(
        "Students that make no error and their teacher are drawn alike, so that a student is to the teacher what "
        "two students are to each other. The majority of all students, the best guess, is wrong on a fraction of "
        "fresh points that falls as 0.44/α."
    ),
    cite=(
        "G. Györgyi, N. Tishby, in Neural Networks and Spin Glasses (World Scientific, Singapore, 1990); M. Opper, "
        "D. Haussler, Phys. Rev. Lett. 66, 2677 (1991)"
    ),
).gibbs(1)
values = {alpha: 2}
shown = [average(expect(w[i]) * t[i]), average(w[i] ** 2)]
