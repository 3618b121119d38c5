"""Kernel ridge regression in the eigenbasis of its kernel.

Clark & Sompolinsky, section 4.  The features are the errors ``Delta = a - w`` of the eigenmodes, the data
the errors ``eps`` of the predictions.  Values: arrays ``rho`` and ``a`` over the modes, ``gamma``, and ``P``.
The same theory follows from the loss (``from_loss``), whose weights are ``w = a - Delta``, and from the loss in the
coefficients of the kernel (``from_coefficients``).

The mean of the self-coupling of a datum (paper, equation 138) is printed there without the minus sign of
its definition (135); the derivation has it.
"""

from sympy import Eq, Rational, Sum, Symbol

from symcavity import (
    BipartiteSystem,
    ConvexProblem,
    Coupling,
    Datum,
    Feature,
    Kernel,
    N,
    P,
    Quenched,
    average,
    i,
    mu,
    response,
)

phi = Coupling("phi", variance=1)
Delta, eps, w = Feature("Delta"), Datum("eps"), Feature("w")
rho, a = Quenched("rho", i), Quenched("a", i)
gamma, kappa = Symbol("gamma", positive=True), Symbol("kappa", positive=True)
E_train, E_test, A = Symbol("E_train"), Symbol("E_test"), Symbol("A")  # errors of training and test

PAPER = (
    "D. G. Clark and H. Sompolinsky, Simplified derivations for high-dimensional convex learning "
    "problems, SciPost Phys. Lect. Notes, arXiv:2412.01110 (2024)"
)
problem = BipartiteSystem(
    equations=[
        Eq(eps[mu], Sum(phi[mu, i] * Delta[i], (i, 1, N))),
        Eq(Delta[i], a[i] - rho[i] / gamma * Sum(phi[mu, i] * eps[mu], (mu, 1, P))),
    ],
    named={
        kappa: gamma + Sum(rho[i] * response(Delta[i]), (i, 1, N)),
        E_train: average(eps[mu] ** 2),
        E_test: Sum(Delta[i] ** 2, (i, 1, N)),
        A: Sum(P * rho[i] ** 2 / (kappa + P * rho[i]) ** 2, (i, 1, N)),
    },
    name="Kernel ridge regression",
    says=(
        "The error on fresh data is that on the data of training times (κ/γ)², where κ > γ is the penalty that "
        "the modes feel. Modes with P ρ well above κ are learned, and the others are not."
    ),
    cite=PAPER,
    source={
        "disorder": "126, 127",
        "sources": "128, 129",
        "datum.respond": "130",
        "datum.substitute": "131, 132",
        "datum.cavity_field": "134",
        "datum.self_coupling": "135",
        "datum.cavity_equation": "133",
        "datum.field_statistics": "136, 137",
        "datum.self_coupling_mean": "138; where the minus sign is missing",
        "datum.solution": "140",
        "datum.response": "139",
        "feature.respond": "141",
        "feature.substitute": "142, 143",
        "feature.cavity_field": "145",
        "feature.self_coupling": "146",
        "feature.cavity_equation": "144",
        "feature.field_statistics": "147, 148",
        "feature.self_coupling_mean": "149",
        "feature.solution": "151",
        "feature.response": "150",
        "site.q_Delta": "155",
        "named": "124, 125, 158",
        "named.result": "152-154, 156, 157",
    },
)

nu = Symbol("nu", integer=True)
K, lam = Kernel("K", phi, rho), Datum("lambda")  # the same in the coefficients of the representer theorem
f, y = Sum(K[mu, nu] * lam[nu], (nu, 1, P)), Sum(phi[mu, i] * a[i], (i, 1, N))
norm = Sum(K[mu, nu] * lam[mu] * lam[nu], (mu, 1, P), (nu, 1, P))

from_coefficients = ConvexProblem(
    minimize=Sum((f - y) ** 2, (mu, 1, P)) / 2 + gamma * norm / 2,
    name="Kernel ridge regression, from the coefficients of its kernel",
    cite=PAPER,
    source={
        "problem": "113, 119",
        "kernel": "112, 115-117, 120",
        "sources": "118",
        "lagrangian": "111",
        "dual.g": "121",
        "stationarity.w": "122",
        "kernel.coefficients": "114, 123",
    },
)

from_loss = ConvexProblem(
    minimize=Sum(Sum(phi[mu, i] * (a[i] - w[i]), (i, 1, N)) ** 2, (mu, 1, P)) / 2
    + gamma * Sum(w[i] ** 2 / rho[i], (i, 1, N)) / 2,
    name="Kernel ridge regression, from its loss",
)
modes = range(1, 61)
values = {P: 30, gamma: Rational(1, 10), rho: [Rational(1, k**2) for k in modes], a: [Rational(1, k) for k in modes]}
shown = [Sum(Delta[i] ** 2, (i, 1, N)), average(eps[mu] ** 2)]
