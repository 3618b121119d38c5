"""Section 3: the capacity of manifolds, equations 65 to 110."""

from paper_reading import *  # noqa: F403 - the letters of the paper
from paper_rows import claim
from sympy import Sum

T0, F = IndexedBase("T^0"), IndexedBase("F^00")
zeta = IndexedBase("zeta")  # the paper's T^mu of the naive analysis
vector = Sum(w[i] * u[mu, i, a], (i, 1, N))
components, datum = (a, 1, D + 1), (mu, 1, P)
S_Lam = mean(Sum(resp(Lam[mu, a]), components))
q_Lam = mean(Sum(Lam[mu, a] ** 2, components))  # of |lambda s|^2
S_w = mean(resp(w[i]))

claim("73", "manifold: disorder", avg(u[mu, i, a]), 0)
deltas = KroneckerDelta(mu, nu) * KroneckerDelta(i, j) * KroneckerDelta(a, b)
claim("74", "manifold: disorder", avg(u[mu, i, a] * u[nu, j, b]), deltas / N, 1)
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
