"""A restricted Boltzmann machine with random weights: two layers of signs that meet in pairs, at a temperature.

The units ``s`` and the hidden units ``v`` are each independent given the other layer. Each layer is a magnet whose
fields come from the other one; ``H`` acts on the units alone. It is the bipartite spin glass: at small ``beta`` and
without a field both overlaps vanish.

I. Ya. Korenblit, E. F. Shender, Sov. Phys. JETP 62, 1030 (1985); A. Barra, G. Genovese, F. Guerra, J. Phys. A 44,
245002 (2011).
"""

from sympy import Rational, Sum, Symbol

from symcavity import Coupling, Feature, N, Problem, Sites, Variable, average, expect, i

a, K = Sites("a", "K", "hidden unit")
W, s, v = Coupling("W", between=(a, i)), Feature("s", values=(-1, 1)), Variable("v", a, values=(-1, 1))
beta, H = Symbol("beta", positive=True), Symbol("H", real=True)

problem = Problem(
    minimize=-Sum(s[i] * Sum(W[a, i] * v[a], (a, 1, K)), (i, 1, N)) - H * Sum(s[i], (i, 1, N)),
    name="A restricted Boltzmann machine with random weights",
    says=(
        "Without a field the overlaps of both layers vanish while β² < √(N/K); at the end of this range the "
        "stability Λ is one, and beyond it the layers freeze together."
    ),
    named={Symbol("q_s"): average(expect(s[i]) ** 2), Symbol("q_v"): average(expect(v[a]) ** 2)},
    cite="A. Barra, G. Genovese, F. Guerra, J. Phys. A 44, 245002 (2011)",
).gibbs(beta)
values = {beta: Rational(4, 5), H: Rational(1, 2), K / N: 2}
shown = [average(expect(s[i]) ** 2), average(expect(v[a]) ** 2)]
instances = False  # samples of two layers take a minute
