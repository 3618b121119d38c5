"""One system of each family, for the tests of message passing."""

from sympy import Abs, Eq, Max, Rational, Sum, Symbol, exp, log, sqrt, symbols, tanh
from sympy.stats import Normal

from symcavity import (
    Ball,
    Complementary,
    ConvexProblem,
    Coupling,
    Datum,
    Feature,
    Global,
    N,
    P,
    Quenched,
    Segment,
    Sites,
    SupportFunction,
    System,
    Variable,
    alpha,
    average,
    i,
    mu,
    response,
)

half, third = Rational(1, 2), Rational(1, 3)
x, w, xi, b, n = Coupling("x"), Feature("w"), Datum("xi"), Global("b"), Feature("n")
y, t, noise, l = Quenched("y", mu), Quenched("t", i), Quenched("noise", mu), Quenched("l", i)
gamma, C, kappa, sigma = symbols("gamma C kappa sigma", positive=True)
g, A = symbols("g A", real=True)
j, k = symbols("j k", integer=True, positive=True)
a, K = Sites("a", "K", "hidden unit")
h, u = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(x[mu, i] * t[i], (i, 1, N))
z = Coupling("x", variance=l[i] / N)
norm = Sum(w[i] ** 2, (i, 1, N)) / 2
SIGNS, UNIT = {1: half, -1: half}, Normal("v", 0, 1)


def data(loss):
    return Sum(loss, (mu, 1, P))


def huber(r):
    return r**2 / 2 - Max(0, Abs(r) - 1) ** 2 / 2


inner = Coupling("F", between=(a, i))
v, s = Variable("v", a), Variable("s", i)
J = Coupling("J", between=(i, i), mean=A / N, variance=sigma**2 / N, reciprocity=g)
V = Coupling("V", components=(k, 1, Symbol("D", integer=True, positive=True)))
S = SupportFunction("S")
touching = S(Sum(V[mu, i, k] * w[i], (i, 1, N)))
budget = Eq(Sum(w[i], (i, 1, N)), N)

drawn, emitted = Sum(x[mu, i] * (1 - s[i]), (i, 1, N)), Eq(s[i], Sum(inner[a, i] * v[a], (a, 1, K)))
told = Quenched("y", mu, law={1: 1 / (1 + exp(-u)), -1: 1 / (1 + exp(u))}, given=u)

told_apart = Sum(Coupling("x", mean=y[mu] * t[i] / N)[mu, i] * w[i], (i, 1, N))
shifted = Sum(Coupling("x", mean=C / sqrt(N))[mu, i] * w[i], (i, 1, N))

#: By name: the system, its values, and an observable of the sites that settle.
FAMILIES = {
    "ridge": (ConvexProblem(data((h - u - noise[mu]) ** 2) / 2 + gamma * norm),
              {alpha: 2, gamma: half, t: SIGNS, noise: UNIT}, average(w[i] * t[i])),
    "lasso": (ConvexProblem(data((h - u - noise[mu]) ** 2) / 2 + C * Sum(Abs(w[i]), (i, 1, N))),
              {alpha: 1, C: half, t: {0: Rational(4, 5), 2: Rational(1, 5)}, noise: {half: half, -half: half}},
              average(w[i] * t[i])),
    "hinge": (ConvexProblem(norm + C * data(Max(0, 1 - h))), {alpha: 2, C: Rational(3, 4)}, average(w[i] ** 2)),
    "squared hinge": (ConvexProblem(norm + C * data(xi[mu] ** 2) / 2, [h >= 1 - xi[mu]]),
                      {alpha: 2, C: Rational(3, 2)}, average(w[i] ** 2)),
    "logistic": (ConvexProblem(norm + data(log(1 + exp(-y[mu] * h)))), {alpha: 2, y: SIGNS}, average(w[i] ** 2)),
    "gardner": (ConvexProblem(norm, [h >= 1], [Eq(average(w[i] ** 2), 1 / kappa**2)]), {alpha: half},
                average(w[i] ** 2)),
    "soft margin": (ConvexProblem(norm + C * data(xi[mu]), [h >= 1 - xi[mu], xi[mu] >= 0]),
                    {alpha: 2, C: Rational(3, 4)}, average(xi[mu])),
    "bias": (ConvexProblem(norm, [y[mu] * (h + b) >= 1]), {alpha: half, y: {1: Rational(4, 5), -1: Rational(1, 5)}}, b),
    "absolute deviations": (ConvexProblem(data(Abs(h - u - noise[mu])) + 4 * norm),
                            {alpha: 3, noise: UNIT, t: SIGNS}, average(w[i] * t[i])),
    "huber": (ConvexProblem(data(huber(h - noise[mu]))), {alpha: 4, noise: UNIT}, average(w[i] ** 2)),
    "variances": (ConvexProblem(norm, [Sum(z[mu, i] * w[i], (i, 1, N)) >= 1]),
                  {alpha: third, l: {Rational(1, 5): half, Rational(9, 5): half}}, average(l[i] * w[i] ** 2)),
    "portfolio": (ConvexProblem(data(h**2) / 2, [budget, w[i] >= 0]), {alpha: 2}, average(w[i] > 0)),
    "a box": (ConvexProblem(data((h - u - noise[mu]) ** 2) / 2 + gamma * Sum(w[i], (i, 1, N)), [w[i] >= 0, w[i] <= C]),
              {alpha: 2, gamma: half, C: 2, t: {0: half, 1: half}, noise: SIGNS}, average(w[i])),
    "entropies": (ConvexProblem(data(h**2) / 2 + gamma * Sum(w[i] * log(w[i]), (i, 1, N)), [budget]),
                  {alpha: 2, gamma: 1}, average(w[i] ** 2)),
    "clusters": (ConvexProblem(data((told_apart - y[mu]) ** 2) / 2 + gamma * norm),
                 {alpha: 2, gamma: 1, t: SIGNS, y: SIGNS}, average(w[i] * t[i])),
    "patterns with a mean": (ConvexProblem(data((shifted - y[mu]) ** 2) / 2 + gamma * norm),
                             {alpha: 2, gamma: 1, C: 1, y: {1: 3 * half / 2, -1: half / 2}}, average(w[i] ** 2)),
    "a norm": (ConvexProblem(data((h - y[mu]) ** 2) / 2, [Sum(w[i] ** 2, (i, 1, N)) <= N * C]),
               {alpha: 2, C: Rational(1, 10), y: SIGNS}, response(w)),
    "ecology": (System([], [Complementary(n[i], n[i] - 1 + Sum(J[i, j] * n[j], (j, 1, N)))]),
                {A: 2, sigma: half, g: third}, average(n[i])),
    "network": (System([Eq(s[i], tanh(sigma * Sum(Coupling("J", between=(i, i))[i, j] * s[j], (j, 1, N)) + t[i]))]),
                {sigma: half, t: UNIT}, average(s[i] ** 2)),
    "three kinds": (ConvexProblem(data(drawn**2) / 2 + gamma * Sum(v[a] ** 2, (a, 1, K)) / 2, [emitted]),
                    {alpha: half, K / N: half, gamma: 2}, average(v[a] ** 2)),
    "labels of a teacher": (ConvexProblem(data(log(1 + exp(-told[mu] * h))) + 2 * gamma * norm),
                            {alpha: 2, gamma: 1, t: SIGNS}, average(w[i] * t[i])),
    "segments": (ConvexProblem(norm, [touching >= 1]), {alpha: third, S: Segment(1)}, average(w[i] ** 2)),
    "balls": (ConvexProblem(norm, [touching >= 1]), {alpha: Rational(1, 4), S: Ball(2, half)}, average(w[i] ** 2)),
}
