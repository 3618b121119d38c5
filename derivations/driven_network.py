"""Fixed points of a driven random network of saturating units, and how many directions they explore.

Values: the gain ``g``, the law of the drives ``b``. Over drives, at one matrix of connections, the activity explores
the share ``D = (1 - g**2 <f'>**2)**2`` of all directions: ``solution.dimension(tanh(x[i]), over=[b])``. The fixed point
is stable while ``g**2 <f'**2>`` is below one.

D. G. Clark, L. F. Abbott, A. Litwin-Kumar, Phys. Rev. Lett. 131, 118401 (2023), on dimensions by two sites at once.
"""

from sympy import Eq, Rational, Sum, Symbol, symbols, tanh
from sympy.stats import Normal

from symcavity import Coupling, N, Quenched, System, Variable, average, i

x, b, g, j = Variable("x", i), Quenched("b", i), Symbol("g", positive=True), symbols("j", integer=True)
J = Coupling("J", between=(i, i))

problem = System(
    equations=[Eq(x[i], g * Sum(J[i, j] * tanh(x[j]), (j, 1, N)) + b[i])],
    named={Symbol("D"): (1 - g**2 * average(1 - tanh(x[i]) ** 2) ** 2) ** 2},
    name="A driven network of saturating units",
    says=(
        "Over drives, at one matrix of connections, the activity explores the share D = (1 − g² <f'>²)² of all "
        "directions, with the mean slope <f'> of the units. The fixed point is stable while Λ = g² <f'²> is below "
        "one."
    ),
    cite="D. G. Clark, L. F. Abbott, A. Litwin-Kumar, Phys. Rev. Lett. 131, 118401 (2023)",
)
values = {g: Rational(7, 10), b: Normal("b", 0, 1)}
shown = [average(tanh(x[i]) ** 2), average(x[i] ** 2)]
