"""Section 2: the perceptron capacity of random points, equations 1 to 64."""

from paper_reading import *  # noqa: F403 - the letters of the paper
from paper_rows import DECLARED, DERIVED, DIGITS, SIMULATED, VERIFIED, claim, equation
from sympy import Max, Sum

h_mu = Sum(w[i] * x[mu, i], (i, 1, N))
S_lam = mean(resp(lam[mu]))
S_w = mean(resp(w[i]))

claim("11", "gardner: disorder", avg(x[mu, i]), 0)
claim("12", "gardner: disorder", avg(x[mu, i] * x[nu, j]), KroneckerDelta(mu, nu) * KroneckerDelta(i, j) / N, 1)
claim("5", "gardner: lagrangian", Symbol("L"),
      Sum(w[i] ** 2, (i, 1, N)) / 2 - Sum(lam[mu] * (h_mu - 1), (mu, 1, P)))  # fmt: skip
claim("15", "gardner, naive: substitution.put", h[mu],
      Sum(x[mu, i] * x[nu, i] * lam[nu], (nu, 1, P), (i, 1, N)) - 1)  # fmt: skip
others = Sum((1 - KroneckerDelta(nu, mu)) * x[mu, i] * x[nu, i] * lam[nu], (nu, 1, P), (i, 1, N))
claim("16", "gardner, naive: substitution.split", h[mu], Sum(x[mu, i] ** 2, (i, 1, N)) * lam[mu] + others - 1)
zeta = IndexedBase("zeta")  # the paper's eta^mu: the engine keeps eta for cavity fields
claim("17", "gardner, naive: substitution.statistics", avg(zeta[mu]), 0)
claim("18", "gardner, naive: substitution.statistics", avg(zeta[mu] ** 2), alpha * mean(lam[mu] ** 2), 2)
claim("19", "gardner, naive: substitution.law", h[mu], lam[mu] + zeta[mu] - 1)

claim("26", "gardner: sources", h[mu], h_mu - 1 + up[mu])
claim("27", "gardner: sources", w[i], Sum(x[mu, i] * lam[mu], (mu, 1, P)) + down[i], 1)
claim("28", "gardner: feature.respond", delta(lam[mu]), Sum(d(lam[mu], up[nu]) * x[nu, 0] * w[0], (nu, 1, P)))
claim("29", "gardner: feature.substitute", w[0], Sum(x[mu, 0] * (lam[mu] + delta(lam[mu])), (mu, 1, P)) + down[0])
back = Sum(x[mu, 0] * x[nu, 0] * d(lam[mu], up[nu]), (mu, 1, P), (nu, 1, P))
claim("30", "gardner: feature.substitute", w[0], Sum(x[mu, 0] * lam[mu], (mu, 1, P)) + back * w[0] + down[0], 1)
claim("31", "gardner: feature.cavity_equation", w[0], eta_0 + F_00 * w[0] + down[0])
claim("32", "gardner: feature.cavity_field", eta_0, Sum(x[mu, 0] * lam[mu], (mu, 1, P)))
claim("33", "gardner: feature.self_coupling", F_00, back)
claim("34", "gardner: feature.field_statistics", avg(eta_0), 0)
claim("35", "gardner: feature.field_statistics", avg(eta_0**2), alpha * mean(lam[mu] ** 2), 1)
claim("36", "gardner: feature.self_coupling_mean", avg(F_00), alpha * S_lam)
claim("37", "gardner: feature.effective_law", w[0], eta_0 + alpha * S_lam * w[0] + down[0])
claim("38", "gardner: feature.response", avg(resp(w[0])), 1 / (1 - alpha * S_lam))
claim("41", "gardner: datum.respond", delta(w[i]), Sum(d(w[i], down[j]) * x[0, j] * lam[0], (j, 1, N)))
claim("42", "gardner: datum.substitute", h[0], Sum(x[0, i] * (w[i] + delta(w[i])), (i, 1, N)) - 1 + up[0])
echo = Sum(x[0, i] * x[0, j] * d(w[i], down[j]), (i, 1, N), (j, 1, N))
claim("43", "gardner: datum.substitute", h[0], Sum(x[0, i] * w[i], (i, 1, N)) + echo * lam[0] - 1 + up[0], 1)
claim("44", "gardner: datum.cavity_equation", h[0], eta0 + F00 * lam[0] - 1 + up[0])
claim("45", "gardner: datum.cavity_field", eta0, Sum(x[0, i] * w[i], (i, 1, N)))
claim("46", "gardner: datum.self_coupling", F00, echo)
claim("47", "gardner: datum.field_statistics", avg(eta0), 0)
claim("49", "gardner: datum.self_coupling_mean", avg(F00), S_w)
claim("50", "gardner: datum.effective_law", h[0], eta0 + S_w * lam[0] - 1 + up[0])
claim("51", "gardner: datum.solution", lam[0], Max(0, 1 - eta0 - up[0]) / S_w, 1)
