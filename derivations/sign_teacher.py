"""Generalization of the widest margin: a student of a perceptron with random inputs.

Values: ``alpha`` and the teacher's weights ``t``, of which only the direction matters. All loads can be
separated. The generalization error ``epsilon_g``, the share of fresh points that the student gets wrong, is the
angle to the teacher over ``pi``. It falls as ``0.50/alpha``; that of Bayes as ``0.44/alpha``.

M. Opper, W. Kinzel, J. Kleinz, R. Nehl, J. Phys. A 23, L581 (1990).
"""

from sympy import Sum, Symbol, sign

from symcavity import ConvexProblem, Coupling, Feature, N, Quenched, alpha, average, fresh, i, mu

x, w, t = Coupling("x"), Feature("w"), Quenched("t", i)
h, u = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(x[mu, i] * t[i], (i, 1, N))
epsilon_g = Symbol("epsilon_g")

problem = ConvexProblem(
    minimize=Sum(w[i] ** 2, (i, 1, N)) / 2,
    subject_to=[sign(u) * h >= 1],
    named={epsilon_g: average(fresh(sign(u) * h < 0))},
    name="The widest margin for the labels of a teacher",
    says=(
        "The labels of a teacher can be separated at any load. The widest margin errs on a fraction of fresh "
        "points that falls as 0.50/α, where the best student errs on 0.44/α."
    ),
    cite="M. Opper, W. Kinzel, J. Kleinz, R. Nehl, J. Phys. A 23, L581 (1990)",
)
values = {alpha: 2, t: {1: 1}}
shown = [average(w[i] * t[i]), average(w[i] ** 2)]
