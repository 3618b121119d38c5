"""A network in time whose connections are a product of random modes, ``J = L D R^T``, that read what they write.

Values: ``K/N`` modes of strengths ``D``; ``rho``, the correlation of the reading with the writing direction
of each mode; the law of the initial states ``a``. The modes answer at once; with ``rho`` each unit hears an
echo of its own past.

D. G. Clark, O. Marschall, A. van Meegen, A. Litwin-Kumar, arXiv:2409.01969 (2024).
"""

from sympy import Eq, Rational, Sum, Symbol, tanh
from sympy.stats import Normal

from symcavity import Coupling, N, Quenched, Sites, System, Time, Variable, average, i

t, rho = Time("t"), Symbol("rho", real=True)
k, K = Sites("k", "K", "mode")
L = Coupling("L", between=(i, k))
R = Coupling("R", between=(i, k), correlation={L: rho})
x, z = Variable("x", i, over=t), Variable("z", k, over=t)
D, a = Quenched("D", k), Quenched("a", i)

problem = System(
    equations=[
        Eq(x[i, t + 1], Sum(L[i, k] * D[k] * z[k, t], (k, 1, K))),
        Eq(z[k, t], Sum(R[i, k] * tanh(x[i, t]), (i, 1, N))),
    ],
    initial=[Eq(x[i, 0], a[i])],
    name="A network of random modes in time",
    says=(
        "Modes that read along the directions in which they write return to each unit an echo of its own past; "
        "the first echo has the weight ρ <D> K/N. It keeps the activity alive: at ρ = 1/2 the variance is about "
        "ten times that of independent directions after eight steps."
    ),
    cite="D. G. Clark, O. Marschall, A. van Meegen, A. Litwin-Kumar, arXiv:2409.01969 (2024)",
)
half = Rational(1, 2)
values = {K / N: half, rho: half, D: {1: half, 3: half}, a: Normal("a", 0, 1)}
until = 8
shown = [average(x[i, t] ** 2), average(z[k, t] ** 2)]
