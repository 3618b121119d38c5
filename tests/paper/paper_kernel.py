"""Sections 4 and 5: kernel ridge regression, and the Conclusion, equations 111 to 160."""

from paper_reading import *
from paper_rows import claim
from sympy import Sum

S_eps = mean(resp(eps[mu]))
data, modes = (mu, 1, P), (i, 1, N)

claim("126", "kernel_ridge: disorder", avg(phi_[mu, i]), 0)
claim("127", "kernel_ridge: disorder", avg(phi_[mu, i] * phi_[nu, j]), KroneckerDelta(mu, nu) * KroneckerDelta(i, j), 1)
claim("128", "kernel_ridge: sources", eps[mu], Sum(phi_[mu, i] * Delta[i], modes) + up[mu])
claim("129", "kernel_ridge: sources", Delta[i],
      target[i] - rho[i] / gamma * Sum(phi_[mu, i] * eps[mu], data) + down[i], 1)  # fmt: skip
dD = d(Delta[i], down[j])
claim("130", "kernel_ridge: datum.respond", delta(Delta[i]),
      Sum(dD * (-rho[j] / gamma * phi_[0, j] * eps[0]), (j, 1, N)))  # fmt: skip
claim("131", "kernel_ridge: datum.substitute", eps[0], Sum(phi_[0, i] * (Delta[i] + delta(Delta[i])), modes) + up[0])
echo = Sum(dD * rho[j] / gamma * phi_[0, i] * phi_[0, j], modes, (j, 1, N))
claim("132", "kernel_ridge: datum.substitute", eps[0],
      Sum(phi_[0, i] * Delta[i], modes) - echo * eps[0] + up[0], 1)  # fmt: skip
claim("133", "kernel_ridge: datum.cavity_equation", eps[0], eta0 + F00 * eps[0] + up[0])
claim("134", "kernel_ridge: datum.cavity_field", eta0, Sum(phi_[0, i] * Delta[i], modes))
claim("135", "kernel_ridge: datum.self_coupling", F00, -echo)
claim("136", "kernel_ridge: datum.field_statistics", avg(eta0), 0)
S_Delta = Sum(rho[i] * mean(resp(Delta[i])), modes)
claim("141", "kernel_ridge: feature.respond", delta(eps[mu]),
      Sum(d(eps[mu], up[nu]) * phi_[nu, 0] * Delta[0], (nu, 1, P)))  # fmt: skip
claim("142", "kernel_ridge: feature.substitute", Delta[0],
      target[0] - rho[0] / gamma * Sum(phi_[mu, 0] * (eps[mu] + delta(eps[mu])), data) + down[0])  # fmt: skip
back = Sum(phi_[mu, 0] * d(eps[mu], up[nu]) * phi_[nu, 0], data, (nu, 1, P))
heard = Sum(phi_[mu, 0] * eps[mu], data)
claim("143", "kernel_ridge: feature.substitute", Delta[0],
      target[0] - rho[0] / gamma * heard - rho[0] / gamma * back * Delta[0] + down[0], 1)  # fmt: skip
claim("145", "kernel_ridge: feature.cavity_field", eta_0, heard)
claim("147", "kernel_ridge: feature.field_statistics", avg(eta_0), 0)
of_one = Symbol("rho[0]") / gamma  # the paper's self-coupling has the factor rho/gamma in it
F_paper = {F_00: F_00 / of_one, avg(F_00): avg(F_00) / of_one}
claim("144", "kernel_ridge: feature.cavity_equation", Delta[0],
      target[0] - rho[0] / gamma * eta_0 - F_00 * Delta[0] + down[0], rule=F_paper)  # fmt: skip
claim("146", "kernel_ridge: feature.self_coupling", F_00, rho[0] / gamma * back, rule=F_paper, factor=of_one)
E_train, E_test = mean(eps[mu] ** 2), Sum(mean(Delta[i] ** 2), modes)
claim("148", "kernel_ridge: feature.field_statistics", avg(eta_0**2), P * E_train, 1)
claim("149", "kernel_ridge: feature.self_coupling_mean", avg(F_00), rho[0] * P / gamma * S_eps,
      rule=F_paper, factor=of_one)  # fmt: skip
claim("150", "kernel_ridge: feature.response", avg(resp(Delta[0])), gamma / (gamma + P * rho[0] * S_eps))
claim("137", "kernel_ridge: datum.field_statistics", avg(eta0**2), E_test, 1)
claim("139", "kernel_ridge: datum.response", avg(resp(eps[0])), gamma / (gamma + S_Delta))
