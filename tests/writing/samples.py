"""Hand-made derivations, so that the writers are tested without the engine."""

from sympy import Eq, Expr, Max, Rational, Sum, Symbol, exp, log, pi, sqrt, symbols

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.indexed import Unequal
from symcavity.algebra.phi import phi
from symcavity.algebra.texsymbol import TexSymbol
from symcavity.face import Derivation, Step
from symcavity.model.averages import average, response
from symcavity.model.complementary import Complementary
from symcavity.model.couplings import Coupling
from symcavity.model.equations import Equation
from symcavity.model.kinds import DATUM, FEATURE, N, P, alpha, i, mu
from symcavity.model.quantities import Datum, Feature, Field, Global, Quenched
from symcavity.record.order_parameters import OrderParameter
from symcavity.record.symbols import CavitySymbol, DisorderAverage, Perturbation, ResponseElement, Source

x, w, lam, h = Coupling("x"), Feature("w"), Datum("lam"), Field("h")
y = Quenched("y", mu, law={1: Rational(1, 2), -1: Rational(1, 2)})
a, rho = Quenched("a", i), Quenched("rho", i)
b = Global("b")
nu, j = Symbol("nu", integer=True), Symbol("j", integer=True)
kappa, gamma, z = Symbol("kappa", positive=True), Symbol("gamma", positive=True), Symbol("z", real=True)
source, source_w = Source(DATUM), Source(FEATURE)
eta, eta_w = CavitySymbol("eta", DATUM), CavitySymbol("eta", FEATURE)
F, F_w = CavitySymbol("F", DATUM), CavitySymbol("F", FEATURE)
S_w, S_lam, q_lam = OrderParameter("S_w"), OrderParameter("S_lambda"), OrderParameter("q_lambda")
L = Symbol("L")
LOW, HIGH, SWITCH = TexSymbol("h_low", "h_-"), TexSymbol("h_high", "h_+"), TexSymbol("eta_switch", r"\eta_\ast")


class Odd(Expr):
    """A node that only knows its own string."""

    def _sympystr(self, printer):
        return f"Odd_thing{{{printer.doprint(self.args[0])}}}"


def kronecker(*pair):
    from sympy import KroneckerDelta

    return KroneckerDelta(*pair)


def response_of(state, site):
    return ResponseElement(state, site)


field = Sum(x[mu, i] * w[i], (i, 1, N))
emission = Sum(x[mu, i] * lam[mu], (mu, 1, P))
shift = Sum(response_of(lam[mu], source[nu]) * x[nu, 0] * w[0], (nu, 1, P))
double = Sum(x[mu, 0] * x[nu, 0] * response_of(lam[mu], source[nu]), (mu, 1, P), (nu, 1, P))
IID = (("iid", {}), ("clt", {}))

zeta = Field("zeta")
others = Sum(x[mu, i] * x[nu, i] * lam[nu] * Unequal(nu, mu), (i, 1, N), (nu, 1, P))
NAIVE = {"kind": FEATURE, "hearers": [DATUM], "messages": [lam[mu]], "couplings": [x[mu, i]]}

STEPS = (
    Step(
        "declaration",
        "problem",
        section="The problem",
        data={
            "minimize": Sum(w[i] ** 2, (i, 1, N)) / 2,
            "subject_to": [y[mu] * (field + b) >= 1],
            "fixed": [Equation(average(w[i] ** 2), 1 / kappa**2)],
            "equations": [],
            "conditions": [],
            "states": {FEATURE: [w[i]], DATUM: []},
            "quenched": [y],
            "globals": [b],
        },
    ),
    Step(
        "disorder",
        "disorder",
        section="The problem",
        assumptions=IID,
        reference="11, 12",
        claims=(
            Equation(DisorderAverage(x[mu, i]), 0 * kappa),
            Equation(DisorderAverage(x[mu, i] * x[nu, j]), kronecker(mu, nu) * kronecker(i, j) / N),
        ),
        data={"couplings": [x]},
    ),
    Step(
        "lagrangian",
        "lagrangian",
        (Equation(L, Sum(w[i] ** 2, (i, 1, N)) / 2 - Sum(lam[mu] * h[mu], (mu, 1, P))),),
        "Conditions of optimality",
        {"multipliers": [(lam[mu], h[mu], False)], "auxiliary": [(h[mu], Max(0, w[i]))]},
        rests_on=("declaration",),
    ),
    Step(
        "stationarity.w",
        "stationarity",
        (Equation(w[i], emission),),
        "Conditions of optimality",
        {"state": w[i]},
        rests_on=("lagrangian",),
        reference="6",
    ),
    Step(
        "dual",
        "dual",
        (Equation(lam[mu], 1 / (1 + exp(h[mu]))),),
        "Conditions of optimality",
        {"dual": lam[mu]},
    ),
    Step(
        "slackness",
        "complementarity",
        (),
        "Conditions of optimality",
        {"pairs": [Complementary(lam[mu], h[mu])]},
        rests_on=("lagrangian",),
    ),
    Step(
        "sources",
        "sources",
        (Equation(h[mu], field - 1 + source[mu]), Equation(w[i], emission + source_w[i])),
        "Conditions of optimality",
        {"side_equations": []},
        rests_on=("stationarity.w",),
    ),
    Step(
        "feature.insert",
        "insert",
        (Equation(Perturbation(field), x[mu, 0] * w[0]),),
        "Feature cavity",
        {"kind": FEATURE, "hearers": [DATUM], "states": [w[0]], "couplings": [x[mu, 0]]},
        (("independence", {}),),
    ),
    Step(
        "feature.respond",
        "respond",
        (Equation(Perturbation(lam[mu]), shift),),
        "Feature cavity",
        {"kind": FEATURE, "hearers": [DATUM], "order": 1 / sqrt(N)},
        (("linear_response", {"order": 1 / sqrt(N)}),),
        ("feature.insert",),
        reference="28",
    ),
    Step(
        "feature.substitute",
        "substitute",
        (
            Equation(w[0], Sum(x[mu, 0] * (lam[mu] + Perturbation(lam[mu])), (mu, 1, P)) + source_w[0]),
            Equation(w[0], Sum(x[mu, 0] * lam[mu], (mu, 1, P)) + double * w[0] + source_w[0]),
        ),
        "Feature cavity",
        {"kind": FEATURE},
        (),
        ("sources", "feature.respond"),
    ),
    Step(
        "feature.field",
        "cavity_field",
        (Equation(eta_w, Sum(x[mu, 0] * lam[mu], (mu, 1, P))),),
        "Feature cavity",
    ),
    Step("feature.self", "self_coupling", (Equation(F_w, double),), "Feature cavity"),
    Step(
        "feature.equation",
        "cavity_equation",
        (Equation(w[0], eta_w + F_w * w[0] + source_w[0]),),
        "Feature cavity",
        {"kind": FEATURE},
        (),
        ("feature.substitute", "feature.field", "feature.self"),
    ),
    Step(
        "feature.statistics",
        "field_statistics",
        (
            Equation(DisorderAverage(eta_w), 0 * kappa),
            Equation(DisorderAverage(eta_w**2), alpha * average(lam[mu] ** 2)),
        ),
        "Feature cavity",
        {},
        (("independence", {}), ("clt", {})),
        ("disorder", "feature.field"),
    ),
    Step(
        "feature.mean",
        "self_coupling_mean",
        (Equation(DisorderAverage(F_w), alpha * S_lam),),
        "Feature cavity",
        {},
        (("self_averaging", {}),),
        ("disorder", "feature.self"),
    ),
    Step(
        "feature.law",
        "effective_law",
        (Equation(w[0], eta_w + alpha * S_lam * w[0] + source_w[0]),),
        "Feature cavity",
        {"kind": FEATURE, "pairs": []},
        (),
        ("feature.equation", "feature.mean"),
    ),
    Step(
        "feature.response",
        "response",
        (Equation(S_w, 1 / (1 - alpha * S_lam)),),
        "Feature cavity",
        {"kind": FEATURE},
        (),
        ("feature.law",),
        reference="38",
    ),
    Step(
        "naive.drop",
        "naive_drop",
        (Equation(w[0], eta_w + source_w[0]),),
        "Feature cavity",
        NAIVE,
        (("naive_independence", {}),),
    ),
    Step(
        "datum.law",
        "effective_law",
        (Equation(h[0], eta + S_w * lam[0] - 1 + source[0]),),
        "Datum cavity",
        {"kind": DATUM, "pairs": [Complementary(lam[0], h[0])]},
    ),
    Step(
        "datum.branches",
        "branches",
        (Equation(lam[0], Max(0, 1 - eta) / S_w),),
        "Datum cavity",
        {
            "branches": [
                ("lambda = 0", eta > 1, {lam[0]: 0, h[0]: eta - 1}),
                ("h = 0", eta <= 1, {lam[0]: (1 - eta) / S_w, h[0]: 0}),
            ],
            "field": eta,
            "sign_assumptions": [S_w > 0],
        },
        (("sign", {"relations": [S_w > 0]}),),
        ("datum.law", "slackness"),
        reference="49",
    ),
    Step(
        "datum.implicit", "implicit", (Equation(lam[0], 1 / (1 + exp(eta + S_w * lam[0]))),), "Datum cavity"
    ),
    Step(
        "datum.contact",
        "contact",
        (Equation(SWITCH, LOW + S_w * LOW**3), Equation(SWITCH * (HIGH - LOW), HIGH**2 - LOW**2)),
        "Datum cavity",
        {"kind": DATUM, "ends": (LOW, HIGH), "switch": SWITCH},
    ),
    Step(
        "datum.followed",
        "followed",
        (Equation(eta, LOW), Equation(SWITCH, LOW + S_w * LOW**3), Equation(SWITCH, HIGH + S_w * HIGH**3)),
        "Datum cavity",
        {"kind": DATUM, "ends": (LOW, HIGH), "switch": SWITCH, "start": LOW, "field_site": True},
    ),
    Step(
        "datum.response",
        "response",
        (Equation(response(lam), -phi(0, kappa) / S_w),),
        "Datum cavity",
        {"kind": DATUM},
        (),
        ("datum.branches",),
    ),
    Step(
        "close.q",
        "closure",
        (
            Equation(q_lam, average(lam[mu] ** 2)),
            Equation(q_lam, GaussianAverage(Max(0, 1 - z / kappa) ** 2, z) / S_w**2),
            Equation(q_lam, phi(2, kappa) / (kappa**2 * S_w**2)),
        ),
        "Closure",
        {"symbol": q_lam, "meaning": average(lam[mu] ** 2)},
        (),
        ("datum.branches",),
    ),
    Step("close.b", "global_condition", (Equation(average(lam[mu] * y[mu]), 0 * kappa),), "Closure"),
    Step("units", "units", (Equation(b, kappa * Symbol("b_hat")),), "Results"),
    Step("close.fixed", "fixed", (Equation(average(w[i] ** 2), 1 / kappa**2),), "Closure"),
    Step(
        "closed",
        "closed_system",
        (
            Equation(S_w, 1 / (1 - alpha * S_lam)),
            Equation(S_lam, -phi(0, kappa) / S_w),
            Equation(1 / kappa**2, alpha * S_w**2 * q_lam),
        ),
        "Closure",
        {"unknowns": [S_w, S_lam, q_lam], "parameters": [alpha, kappa]},
        (),
        ("close.q", "close.fixed"),
    ),
    Step(
        "eliminate.S",
        "elimination",
        (Equation(S_w, 1 - alpha * phi(0, kappa)),),
        "Results",
        {"solved": S_w},
        (),
        ("closed",),
        reference="57",
    ),
    Step("result", "result", (Equation(1 / alpha, phi(2, kappa)),), "Results", {}, (), ("closed",)),
    Step(
        "work",
        "work_identity",
        (
            Equation(Sum(w[i] ** 2, (i, 1, N)) / N, Sum((h[mu] + 1) * lam[mu], (mu, 1, P)) / N),
            Equation(average(w[i] ** 2), alpha * average(lam[mu])),
        ),
        "Checks",
        {},
        (),
        ("stationarity.w",),
    ),
    Step(
        "inconsistent",
        "inconsistency",
        (
            Equation(1 / alpha, kappa**2 * average(lam[mu] ** 2)),
            Equation(1 / alpha, kappa**2 * average(lam[mu])),
        ),
        "Checks",
    ),
    Step(
        "naive.put",
        "substitution",
        (Equation(h[mu], Sum(x[mu, i] * x[nu, i] * lam[nu], (i, 1, N), (nu, 1, P)) - 1),),
        "Substitution",
        NAIVE,
    ),
    Step(
        "naive.split",
        "substitution_split",
        (Equation(h[mu], lam[mu] * Sum(x[mu, i] ** 2, (i, 1, N)) + others - 1),),
        "Substitution",
        NAIVE,
        rests_on=("naive.put",),
    ),
    Step("naive.field", "substitution_field", (Equation(zeta[mu], others),), "Substitution", NAIVE),
    Step(
        "naive.statistics",
        "substitution_statistics",
        (Equation(DisorderAverage(zeta[mu] ** 2), alpha * q_lam),),
        "Substitution",
        {**NAIVE, "echoes": True},
        rests_on=("naive.field",),
    ),
    Step(
        "naive.law",
        "substitution_law",
        (Equation(h[mu], zeta[mu] + lam[mu] - 1),),
        "Substitution",
        {**NAIVE, "pairs": [Complementary(lam[mu], h[mu])]},
    ),
    Step("naive.agreement", "substitution_agreement", (Equation(S_w, S_w / S_w),), "Substitution", NAIVE),
    Step(
        "naive.none",
        "no_substitution",
        (),
        "Substitution",
        {"kind": FEATURE, "obstacle": ("own_kind", {"kind": FEATURE})},
    ),
    Step(
        "consistent",
        "consistency",
        (Equation(phi(2, kappa), phi(0, kappa) + kappa * phi(1, kappa)),),
        "Checks",
    ),
    Step(
        "symmetry",
        "symmetry",
        (Equation(lam[mu], lam[mu] / Symbol("A", positive=True)),),
        "Checks",
        {
            "found": True, "factor": Symbol("A", positive=True), "scaled": [lam[mu]],
        },
    ),
    Step(
        "asymmetry",
        "symmetry",
        (),
        "Checks",
        {"found": False, "obstacle": "factor", "values": {"parameter": a[i]}},
    ),
    Step(
        "meaning",
        "interpretation",
        (Equation(S_w, 1 - alpha * average(lam[mu] > 0)),),
        "Checks",
        {"symbol": S_w},
    ),
    Step("moments", "truncated_moments", (Equation(phi(2, kappa), kappa),), "Checks", {"variable": z}),
    Step("first", "proof", (Equation(phi(0, kappa), kappa),), "Checks", {"why": ("definition", {}), "first": True}),
    Step("odd", "some_new_rule", (Equation(Odd(kappa), Odd(kappa) ** 2 / 3),), "Checks"),
    Step("silent", "another_new_rule", (), "Checks"),
    Step("emissions", "emissions", (Equation(a[i], exp(w[i])),), "The problem", {"states": [a[i]]}),
    Step(
        "roots",
        "roots",
        (Equation(w[i] * (1 - w[i]) + kappa, -w[i] * (w[i] - 1 - kappa / w[i])),),
        "The problem",
        {"pairs": [Complementary(w[i], w[i] - 1 - kappa / w[i])]},
    ),
    Step(
        "centre",
        "centre",
        (Equation(x[mu, i], Coupling("z")[mu, i] + y[mu] * a[i] / N),),
        "The problem",
        {"couplings": [x], "centred": [Coupling("z")], "globals": [Global("M_a_w")]},
    ),
)

_c = symbols("c_1:9", positive=True)
LONG_SUM = sum(
    (c**2 * phi(n % 3, kappa - c) * average(lam[mu] ** 2) / (1 - alpha * S_w) for n, c in enumerate(_c)),
    alpha,
)
LONG = (
    Equation(S_w, LONG_SUM),
    Equation(S_lam, kappa * (LONG_SUM - alpha) / (1 - S_w)),
    Equation(q_lam, (LONG_SUM + 1) / (2 * kappa**2 * S_w)),
    Equation(average(LONG_SUM * lam[mu]), log(1 + exp(-LONG_SUM)) + exp(-(kappa**2) / 2) / sqrt(2 * pi)),
    Eq(sum(c**2 * average(lam[mu]) / (1 + c * S_w) for c in _c), 1 / alpha),
    Equation(average(w[i]), GaussianAverage(Max(0, sum(c * z**n / 3 for n, c in enumerate(_c)) - 1) ** 2, z)),
)

PARAMETERS = (
    (S_w, response(w)),
    (S_lam, response(lam)),
    (q_lam, average(lam[mu] ** 2)),
    (alpha, "load, data per feature"),
)


RESULTS = (Equation(1 / alpha, phi(2, kappa)), Equation(S_w, 1 - alpha))


def sample(method="cavity", steps=STEPS, results=RESULTS):
    return Derivation("A classification of points & 100% of its steps", method, steps, PARAMETERS, results)


def long_sample():
    chain = (Equation(S_w, LONG_SUM), Equation(S_w, LONG_SUM**2), Equation(S_w, 1 - alpha))
    steps = [Step(f"long.{n}", "result", (claim,), "Long", {}, (), ()) for n, claim in enumerate(LONG)]
    steps += [
        Step("all", "closed_system", LONG, "Long"),
        Step("chain", "closure", chain, "Long", {"symbol": S_w}),
    ]
    return Derivation("Long equations", "cavity", tuple(steps), PARAMETERS, LONG)
