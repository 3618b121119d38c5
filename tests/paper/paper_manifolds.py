"""Section 3: the capacity of manifolds, equations 65 to 110."""

from functools import cache

import numpy as np
from paper_reading import *
from paper_rows import DECLARED, DERIVED, SIMULATED, VERIFIED, claim, equation
from sympy import Sum

import symcavity as sc
from symcavity.derivations import manifold

T0, F = IndexedBase("T^0"), IndexedBase("F^00")
zeta = IndexedBase("zeta")  # the paper's T^mu of the naive analysis
vector = Sum(w[i] * u[mu, i, a], (i, 1, N))
components, datum = (a, 1, D + 1), (mu, 1, P)
S_Lam = mean(Sum(resp(Lam[mu, a]), components))
q_Lam = mean(Sum(Lam[mu, a] ** 2, components))  # of |lambda s|^2
S_w = mean(resp(w[i]))

claim("73", "manifold: disorder", avg(u[mu, i, a]), 0, verdict=DECLARED)
deltas = KroneckerDelta(mu, nu) * KroneckerDelta(i, j) * KroneckerDelta(a, b)
claim("74", "manifold: disorder", avg(u[mu, i, a] * u[nu, j, b]), deltas / N, 1, verdict=DECLARED)
g_S, grad = Function("g_S"), Function("grad_g_S")
whole = (V[mu, 1], V[mu, 2])
field = tuple(Sum(w[i] * u[mu, i, k], (i, 1, N)) for k in (1, 2))
claim("69", "manifold: complementarity", h[mu], g_S(*field) - 1)
claim("70", "manifold: dual.Lambda", Lam[mu, a], lam[mu] * grad(a, *whole), remark="Lambda = lambda s")
claim("72", "manifold: stationarity.w", w[i], Sum(Lam[mu, a] * u[mu, i, a], datum, components))
claim("78", "manifold, naive: substitution.put", V[mu, a],
      Sum(u[mu, i, a] * u[nu, i, b] * Lam[nu, b], (i, 1, N), (nu, 1, P), (b, 1, D + 1)))  # fmt: skip
own = Sum(u[mu, i, a] * u[mu, i, b] * Lam[mu, b], (i, 1, N), (b, 1, D + 1))
different = (1 - KroneckerDelta(mu, nu)) * u[mu, i, a] * u[nu, i, b] * Lam[nu, b]
others = Sum(different, (i, 1, N), (nu, 1, P), (b, 1, D + 1))
claim("79", "manifold, naive: substitution.split", V[mu, a], own + others)
claim("80", "manifold, naive: substitution.statistics", avg(zeta[mu, a]), 0)
claim("82", "manifold, naive: substitution.statistics", avg(zeta[mu, a] * zeta[mu, b]),
      alpha * q_Lam * KroneckerDelta(a, b), 2)  # fmt: skip
claim("83", "manifold, naive: substitution.law", V[mu, a], zeta[mu, a] + Lam[mu, a])
claim("86", "manifold: sources", V[mu, a], vector + up[mu, a])
claim("87", "manifold: sources", w[i], Sum(u[mu, i, a] * Lam[mu, a], datum, components) + down[i], 1)
answer = d(Lam[mu, a], up[nu, b])
others = ((nu, 1, P), (b, 1, D + 1))
claim("88", "manifold: feature.respond", delta(Lam[mu, a]), Sum(answer * w[0] * u[nu, 0, b], *others))
claim("89", "manifold: feature.substitute", w[0],
      Sum(u[mu, 0, a] * (Lam[mu, a] + delta(Lam[mu, a])), datum, components) + down[0])  # fmt: skip
heard = Sum(u[mu, 0, a] * Lam[mu, a], datum, components)
back = Sum(u[mu, 0, a] * answer * u[nu, 0, b], datum, components, *others)
claim("90", "manifold: feature.substitute", w[0], heard + back * w[0] + down[0], 1)
claim("91", "manifold: feature.cavity_equation", w[0], eta_0 + F_00 * w[0] + down[0])
claim("92", "manifold: feature.cavity_field", eta_0, heard)
claim("93", "manifold: feature.self_coupling", F_00, back)
claim("94", "manifold: feature.field_statistics", avg(eta_0), 0)
claim("95", "manifold: feature.field_statistics", avg(eta_0**2), alpha * q_Lam, 1)
claim("96", "manifold: feature.self_coupling_mean", avg(F_00), alpha * S_Lam)
dw = d(w[i], down[j])
claim("99", "manifold: datum.respond", delta(w[i]),
      Sum(dw * u[0, j, b] * Lam[0, b], (j, 1, N), (b, 1, D + 1)))  # fmt: skip
claim("100", "manifold: datum.substitute", V[0, a], Sum((w[i] + delta(w[i])) * u[0, i, a], (i, 1, N)) + up[0, a])
echo = Sum(dw * u[0, i, a] * u[0, j, b] * Lam[0, b], (i, 1, N), (j, 1, N), (b, 1, D + 1))
claim("101", "manifold: datum.substitute", V[0, a], Sum(w[i] * u[0, i, a], (i, 1, N)) + echo + up[0, a], 1)
claim("102", "manifold: datum.cavity_equation", V[0, a], T0[a] + Sum(F[a, b] * Lam[0, b], (b, 1, D + 1)) + up[0, a])
claim("103", "manifold: datum.cavity_field", T0[a], Sum(w[i] * u[0, i, a], (i, 1, N)))
claim("104", "manifold: datum.self_coupling", F[a, b], Sum(dw * u[0, i, a] * u[0, j, b], (i, 1, N), (j, 1, N)))
claim("105", "manifold: datum.field_statistics", avg(T0[a]), 0)
claim("107", "manifold: datum.self_coupling_mean", avg(F[a, b]), S_w * KroneckerDelta(a, b))
claim("108", "manifold: datum.effective_law", V[0, a], T0[a] + S_w * Lam[0, a] + up[0, a], 2)

# -- sets, their support functions and anchor points --------------------------------------------------

s = IndexedBase("s")
least = Function("least")
Explicit.read_Extremum = lambda self, e, env: least(*(self(arg, env) for arg in (e.body, *e.args[2:])))
product = Sum(V[mu, a] * s[a], components)
claim("68", "manifold: support.g_S", g_S(*whole), least(product, Symbol("S")), verdict=DECLARED)
claim("71", "manifold: support.g_S", grad(a, *whole), least(product, Symbol("S"), a), 1,
      remark="argmin, by components", verdict=DECLARED)  # fmt: skip


@cache
def instances():
    """Solved instances of a triangle, with the rows u of each embedding."""
    triangle = np.array([[1, 0, 1], [-0.5, 0.8, 1.2], [-0.4, -0.9, 0.9]])
    drawn = []

    def draw(rng, shape):
        drawn.append(rng.standard_normal(shape))
        return drawn[-1]

    values = {sc.alpha: "1/4", manifold.g: sc.PointCloud(triangle)}
    found = manifold.problem.simulate(values, N=60, seeds=4, couplings=draw)
    parts = [some.reshape(found.P, found.N) for some in drawn if some.size == found.P * found.N]
    embedded = [np.stack(parts[k_ : k_ + 3], axis=-1) / np.sqrt(found.N) for k_ in range(0, len(parts), 3)]
    return triangle, list(zip(found.samples, embedded, strict=True))


@equation("65", VERIFIED, "manifold: problem.simulate", SIMULATED, "embeddings as they are drawn keep lengths")
def _65():
    triangle, found = instances()
    ratios = [np.square(embedded @ point).sum(axis=1) / (point @ point) for _, embedded in found for point in triangle]
    lengths = np.concatenate(ratios)
    assert abs(lengths.mean() - 1) < 4 * lengths.std() / np.sqrt(len(lengths) / len(triangle))
    _66()


@equation("66", VERIFIED, "manifold: problem.simulate", SIMULATED, "the least over the points of a set is g_S(V)")
def _66():
    triangle, found = instances()
    for sample, embedded in found:
        fields = np.einsum("i,mia,sa->ms", sample["w"], embedded, triangle)
        assert (fields > 1 - 1e-7).all()
        assert np.abs(fields.min(axis=1) - (sample["h"] + 1)).max() < 1e-7
        assert np.abs(fields.min(axis=1)[sample["lambda"] > 1e-7] - 1).max() < 1e-7


@equation("67", DERIVED, "manifold: sources", remark="at zero source")
def _67():
    found = claims("manifold: sources")[0]
    for env in points(found.lhs):
        gap = Explicit()(found.difference, env) + Explicit()(up[mu, a], env)
        assert (gap - Explicit()(V[mu, a] - vector, env)).expand() == 0


# -- the two analyses -----------------------------------------------------------------------------------


@equation("75", DERIVED, "manifold, naive: feature.field_statistics")
def _75():
    where = "manifold, naive: "
    (_, second) = claims("manifold: disorder")
    assert same(second, (avg(u[mu, i, a] * u[nu, j, b]), deltas / N))
    summed = Explicit()(Sum(KroneckerDelta(mu, nu) * KroneckerDelta(a, b) / N * Lam[mu, a] * Lam[nu, b],
                            datum, (nu, 1, P), components, (b, 1, D + 1)), {})  # fmt: skip
    one = Explicit()(Sum(Lam[mu, a] ** 2, components), {"mu": "site"})
    each = [Explicit()(Sum(Lam[mu, a] ** 2, components), {"mu": k_}) for k_ in range(1, SIZES["P"] + 1)]
    assert (summed - sum(each) / SIZES["N"]).expand() == 0
    found = claims(where + "feature.field_statistics")[1]
    value = Explicit(meanings(where))(found.rhs, {}).xreplace({alpha: sympify(SIZES["P"]) / SIZES["N"]})
    assert (value - sum(mean(one) for _ in each) / SIZES["N"]).expand() == 0
    assert same(claims(where + "feature.effective_law")[0], (w[0], eta_0 + down[0]))


claim("76", "manifold, naive: closure.q_w", mean(w[i] ** 2), alpha * q_Lam)
claim("77", "manifold, naive: load.1", 1 / alpha, kappa**2 * q_Lam)
nu2, d_ = Symbol("nu2", integer=True), Symbol("d_", integer=True)
four = KroneckerDelta(nu, nu2) * KroneckerDelta(i, j) * KroneckerDelta(a, b) * KroneckerDelta(c, d_) / N**2
apart = (1 - KroneckerDelta(nu, mu)) * (1 - KroneckerDelta(nu2, mu)) * four * Lam[nu, c] * Lam[nu2, d_]
claim("81", "manifold, naive: substitution.statistics", avg(zeta[mu, a] * zeta[mu, b]),
      Sum(apart, (nu, 1, P), (nu2, 1, P), (i, 1, N), (j, 1, N), (c, 1, D + 1), (d_, 1, D + 1)), 1,
      sizes={"P": 3})  # fmt: skip
displacement = Sum((V[0, a] - T0[a]) ** 2, components)
claim("84", "manifold, naive: load.1", 1 / alpha, kappa**2 * avg(displacement), 1)
constraint = g_S(V[0, 1], V[0, 2]) >= 1
claim("85", "manifold, naive: datum.minimum", V[0, a], least(displacement / 2, constraint, a), remark="argmin")
claim("109", "manifold: datum.minimum", V[0, a], least(displacement / 2, constraint, a), remark="argmin")


@equation("97", DERIVED, "manifold: order_parameters[S_Lambda]")
def _97():
    (meaning,) = (m for symbol, m in meanings("manifold: ").items() if symbol.name == "S_Lambda")
    assert (Explicit()(meaning, {}) - Explicit()(S_Lam, {})).expand() == 0


claim("98", "manifold: load.1", 1 / alpha, kappa**2 * S_w**2 * q_Lam)


@equation("106", DERIVED, "manifold: datum.field_statistics", remark="and fixed.1")
def _106():
    second = claims("manifold: datum.field_statistics")[1]
    assert same(second, (avg(T0[a] * T0[b]), mean(w[i] ** 2) * KroneckerDelta(a, b)), meanings("manifold: "))
    assert same(claims("manifold: fixed.1")[0], (mean(w[i] ** 2), 1 / kappa**2), meanings("manifold: "))


scaled = Sum((V[0, a] - T0[a]) ** 2 / S_w**2, components)
claim("110", "manifold: load.1", 1 / alpha, kappa**2 * S_w**2 * avg(scaled), 1)
