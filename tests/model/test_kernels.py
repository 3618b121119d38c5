"""Problems in the coefficients of a kernel, against linear algebra without eigenfunctions; names for observables."""

import numpy as np
import pytest
from sympy import Eq, Max, Rational, Sum, Symbol, symbols

from symcavity import (
    BipartiteSystem,
    ConvexProblem,
    Coupling,
    Datum,
    DeclarationError,
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
from symcavity.derivations import kernel_ridge as ridge

nu = Symbol("nu", integer=True)
gamma = Symbol("gamma", positive=True)
phi, rho, a, lam = Coupling("phi", variance=1), Quenched("rho", i), Quenched("a", i), Datum("lambda")
K = Kernel("K", phi, rho)
f = Sum(K[mu, nu] * lam[nu], (nu, 1, P))
norm = Sum(K[mu, nu] * lam[mu] * lam[nu], (mu, 1, P), (nu, 1, P))
y = Sum(phi[mu, i] * a[i], (i, 1, N))


def test_instances_are_those_of_the_coefficients():
    """The weights by (K + gamma)^-1 y: the kernel is a matrix of numbers here."""
    drawn = []

    def draw(rng, shape):
        drawn.append(rng.standard_normal(shape))
        return drawn[-1]

    n, p = 12, 18
    spectrum, aims = [Rational(1, k + 3) for k in range(n)], [Rational(k - 4, 9) for k in range(n)]
    values = {P: p, gamma: "1/3", rho: spectrum, a: aims}
    problem = ConvexProblem(Sum((f - y) ** 2, (mu, 1, P)) / 2 + gamma * norm / 2)
    simulation = problem.simulate(values, N=n, seeds=3, couplings=draw)
    examples = [some.reshape(p, n) for some in drawn if some.size == n * p]
    assert len(examples) == 3
    for sample, at in zip(simulation.samples, examples, strict=True):
        eigenvalues, target = np.array(spectrum, float), at @ np.array(aims, float)
        kernel = (at * eigenvalues) @ at.T
        coefficients = np.linalg.solve(kernel + np.eye(p) / 3, target)
        assert np.abs(sample["w"] - eigenvalues * (at.T @ coefficients)).max() < 1e-8


def test_the_theory_is_that_of_the_errors():
    values = {P: 30, gamma: "1/4", rho: ["1/20"] * 40, a: [f"{k}/200" for k in range(1, 41)]}
    weights = ridge.from_coefficients.cavity().solve(values, dps=25)
    errors = ridge.problem.cavity().solve(values, dps=25)
    w, aim = Feature("w"), ridge.a
    assert abs(weights[Sum((aim[i] - w[i]) ** 2, (i, 1, N))] - errors[ridge.E_test]) < 1e-22


def test_any_convex_loss():
    """A hinge loss of the function: the support vector machine with a kernel."""
    hinge = ConvexProblem(Sum(Max(0, 1 - f), (mu, 1, P)) + gamma * norm / 2)
    weights = hinge.kkt().feature.unknowns[0]
    assert weights.family.name == "w"
    assert not [row for row in (hinge.cavity().derivation["kernel"].verdicts(20)) if not row.ok]


@pytest.mark.parametrize(
    "minimize",
    [
        Sum((f - y) ** 2, (mu, 1, P)) + Sum(lam[mu] ** 2, (mu, 1, P)),  # a penalty of the coefficients themselves
        Sum(Sum(K[mu, nu] * lam[nu] ** 2, (nu, 1, P)), (mu, 1, P)),
        Sum(Sum(K[mu, mu] * lam[nu], (nu, 1, P)), (mu, 1, P)),
        Sum(K[mu, mu] * lam[mu], (mu, 1, P)),
    ],
)
def test_coefficients_elsewhere_are_refused(minimize):
    with pytest.raises(DeclarationError, match="kernel"):
        ConvexProblem(minimize)


def test_what_is_no_kernel_is_refused():
    for functions, values in ((rho, rho), (phi, a[i]), (Coupling("J", between=(i, i)), rho), (phi, Quenched("s", mu))):
        with pytest.raises(DeclarationError, match="eigenfunctions"):
            Kernel("K", functions, values)


class TestNames:
    Delta, eps = Feature("Delta"), Datum("eps")
    equations = (
        Eq(eps[mu], Sum(phi[mu, i] * Delta[i], (i, 1, N))),
        Eq(Delta[i], a[i] - rho[i] / gamma * Sum(phi[mu, i] * eps[mu], (mu, 1, P))),
    )

    def test_names_are_observables(self):
        kappa, error = symbols("kappa error")
        named = {kappa: gamma + Sum(rho[i] * response(self.Delta[i]), (i, 1, N)), error: average(self.eps[mu] ** 2)}
        theory = BipartiteSystem(self.equations, named=named).cavity()
        solution = theory.solve({P: 40, gamma: "1/4", rho: ["1/40"] * 40, a: ["1/9"] * 40}, dps=30)
        # flat eigenvalues: kappa = gamma + kappa/(kappa + 1), a quadratic equation
        root = (Rational(1, 4) + (Rational(1, 16) + 1) ** Rational(1, 2)) / 2
        assert abs(solution[kappa] - root.evalf(40)) < 1e-28
        assert abs(solution[error] - solution[average(self.eps[mu] ** 2)]) < 1e-28
        lines = {claim.lhs: claim.rhs for claim in theory.derivation["named.result"].claims}
        assert {error, kappa} <= set(lines)

    @pytest.mark.parametrize(
        ("named", "word"),
        [
            ({gamma: average(eps[mu] ** 2)}, "parameter"),
            ({N: average(eps[mu] ** 2)}, "taken"),
            ({"E": average(eps[mu] ** 2)}, "taken"),
            ([Symbol("E")], "dictionary"),
            ({Symbol("E"): 0.5 * average(eps[mu] ** 2)}, "float"),
            ({Symbol("E"): Symbol("E") + 1}, "contains it"),
        ],
    )
    def test_bad_names_are_refused(self, named, word):
        with pytest.raises(DeclarationError, match=word):
            BipartiteSystem(self.equations, named=named)
