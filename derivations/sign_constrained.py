"""Capacity of a perceptron whose weights cannot be negative, or whose signs are given.

The share of silent synapses, of weights that are zero, is ``n_0``.

Values: ``kappa`` or ``alpha``. At margin zero the capacity is one, half of Cover's; half of the weights are
then zero.

D. J. Amit, K. Y. M. Wong, C. Campbell, J. Phys. A 22, 2039 (1989); N. Brunel, V. Hakim, P. Isope, J.-P.
Nadal, B. Barbour, Neuron 43, 745 (2004), on the synapses that are silent.
"""

from sympy import Eq, Rational, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Feature, N, alpha, average, i, mu

x, w = Coupling("x"), Feature("w")
kappa = Symbol("kappa", positive=True)

problem = ConvexProblem(
    minimize=Sum(w[i] ** 2, (i, 1, N)) / 2,
    subject_to=[Sum(x[mu, i] * w[i], (i, 1, N)) >= 1, w[i] >= 0],
    fixed=[Eq(average(w[i] ** 2), 1 / kappa**2)],
    named={Symbol("n_0"): 1 - average(w[i] > 0)},
    name="Capacity with weights of given signs",
    says=(
        "Weights of given signs separate half as many points as free ones, one per weight without a margin. Half "
        "of them are then zero: silent synapses."
    ),
    cite=(
        "D. J. Amit, K. Y. M. Wong, C. Campbell, J. Phys. A 22, 2039 (1989); N. Brunel, V. Hakim, P. "
        "Isope, J.-P. Nadal, B. Barbour, Neuron 43, 745 (2004)"
    ),
)
values = {alpha: Rational(1, 2)}
shown = [average(w[i] ** 2), average(w[i] > 0)]
