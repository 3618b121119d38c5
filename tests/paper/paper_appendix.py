"""The appendix: the responses of manifolds, and the two capacity formulas, equations A.1 to A.19."""

import numpy as np
from paper_manifolds import T0, S_w
from paper_reading import *
from paper_rows import CORRECTED, DERIVED, SIMULATED, claim, equation
from sympy import Matrix, Max, Rational, Symbol, exp, eye, ones, pi

import symcavity as sc
from symcavity.algebra.matrices import Form
from symcavity.derivations import manifold
from symcavity.sites.sets.averages import GAP2, LAM, PSI, TD, ProjectionAverage


def matrices(seed=1, rows=3):
    """Exact matrices: an anchor point, a Hessian, numbers; and the responses of the law by one linear system."""
    rng = np.random.default_rng(seed)
    s = Matrix(rng.integers(1, 9, rows))
    half = Matrix(rng.integers(-3, 4, (rows, rows)))
    H, F, ell = -half * half.T, Rational(2, 3), Rational(5, 4)
    system = (eye(rows) - F * ell * H).row_join(-F * s).col_join(s.T.row_join(Matrix([[0]])))
    found = system.LUsolve(eye(rows).col_join(Matrix([[0] * rows])))
    J, l = found[:rows, :], found[rows, :].T
    return {"s": s, "H": H, "F": F, "lam": ell, "J": J, "l": l, "P": (eye(rows) - F * ell * H).inv(), "rows": rows}


def open_matrices(seed):
    """Exact matrices that solve nothing: the letters of the record are independent of each other."""
    rng = np.random.default_rng(seed)
    at = matrices(seed)
    rows = at["rows"]
    drawn = {name: Matrix(rng.integers(-5, 9, (rows, rows))) for name in ("J", "P", "H")}
    return at | drawn | {"l": Matrix(rng.integers(1, 9, (rows, 1)))}


def read(expr, at):
    """A matrix expression of the record as an exact matrix."""
    expr = sympify(expr)
    record = steps("manifold")
    response = record["datum.touching"].evidence["response"]
    known = {response.J: at["J"], response.l: at["l"], response.s: at["s"], response.H: at["H"], response.P: at["P"],
             response.message.lhs: at["s"] * at["l"].T + at["lam"] * at["H"] * at["J"]}  # fmt: skip
    if expr in known:
        return known[expr]
    name = type(expr).__name__
    if name == "Identity":
        return eye(at["rows"])
    if name == "ZeroMatrix":
        return Matrix.zeros(1 if expr.shape[0] == 1 else at["rows"], at["rows"])
    if name == "Form":
        left, middle, right = (read(arg, at) for arg in expr.args)
        return (left.T * middle * right)[0, 0]
    if name in ("NamedTrace", "Trace"):
        return read(expr.args[0], at).trace()
    if name == "Transpose":
        return read(expr.args[0], at).T
    if name == "Inverse":
        return read(expr.args[0], at).inv()
    if name in ("MatMul", "Mul", "MatAdd", "Add"):
        parts = [read(arg, at) for arg in expr.args]
        out = parts[0]
        for part in parts[1:]:
            out = out * part if name.endswith("Mul") else out + part
        return out
    if name in ("MatPow", "Pow"):
        return read(expr.args[0], at) ** read(expr.args[1], at)
    lam0 = claims("manifold: datum.solution")[0].rhs
    rule = {q: at["lam"] for q in lam0.args if str(q) == "lambda[0]"} | {manifold.D: sympify(at["rows"] - 1)}
    return expr.xreplace(rule).xreplace({s: at["F"] for s in expr.free_symbols if s.name == "S_w"})


def matrix_claim(number, key, at, left, right):
    """Register that a matrix equation of the record is the one that a function of exact matrices gives."""

    def check(off=0):
        found = claims(f"manifold: {key}")[at]
        for point in (open_matrices(1), open_matrices(2)):  # each side is the transcribed expression, true or not
            first, second = read(found.lhs, point), read(found.rhs, point)
            assert first == left(**point), f"{found}: left"
            wanted = right(**point)
            assert second == wanted + off * ones(*wanted.shape), f"{found}: right"

    equation(number, DERIVED, f"manifold: {key}", remark="exact matrices", is_claim=True)(check)


@equation("A.1", DERIVED, "manifold: datum.effective_law", remark="solved for lambda s")
def _A1():
    V0, S = IndexedBase("V"), Explicit(meanings("manifold: "))(S_w, {})
    found = claims("manifold: datum.effective_law")[2]
    for env in points(found.lhs):
        left, right = (Explicit(meanings("manifold: "))(side, env) for side in (found.lhs, found.rhs))
        site = {
            name: Explicit()(e, env) for name, e in (("V", V0[0, a]), ("T", T0[a]), ("I", up[0, a]), ("L", Lam[0, a]))
        }
        assert (left - right - S * ((site["V"] - site["T"] - site["I"]) / S - site["L"])).expand() == 0


message = lambda s, l, lam, H, J, **_: s * l.T + lam * H * J  # noqa: E731 - d(lambda s)/dI by the product rule
matrix_claim("A.3", "datum.differentiate", 0, lambda J, **_: J,
             lambda F, s, l, lam, H, J, rows, **_: eye(rows) + F * s * l.T + F * lam * H * J)  # fmt: skip
matrix_claim("A.4", "datum.differentiate", 1, lambda J, s, **_: (J.T * s).T, lambda rows, **_: Matrix.zeros(1, rows))
matrix_claim("A.5", "datum.touching", 0, lambda P, **_: P, lambda F, lam, H, rows, **_: (eye(rows) - F * lam * H).inv())
matrix_claim("A.6", "datum.touching", 1, lambda J, **_: J, lambda F, P, s, l, rows, **_: P * (eye(rows) + F * s * l.T))
matrix_claim("A.7", "datum.touching", 2, lambda l, **_: l, lambda F, P, s, **_: -P * s / (F * (s.T * P * s)[0, 0]))
matrix_claim("A.8", "datum.touching", 3, lambda J, **_: J,
             lambda P, s, **_: P - P * s * s.T * P / (s.T * P * s)[0, 0])  # fmt: skip


def trace_of(F, P, s, rows):
    return ((P - eye(rows)).trace() - (s.T * P * P * s)[0, 0] / (s.T * P * s)[0, 0]) / F


@equation("A.2", DERIVED, "manifold: datum.touching_trace", remark="dV/dI of A.8 put in")
def _A2():
    found = claims("manifold: datum.touching_trace")[0]
    for seed in (1, 2):
        at = matrices(seed)
        assert read(found.lhs, at) == message(**at) == (at["J"] - eye(at["rows"])) / at["F"] == read(found.rhs, at)


@equation("A.9", DERIVED, "manifold: datum.touching_trace", remark="exact matrices")
def _A9():
    found = claims("manifold: datum.touching_trace")[1]
    for seed in (1, 2):
        at = matrices(seed)
        wanted = trace_of(at["F"], at["P"], at["s"], at["rows"])
        assert read(found.rhs, at) == wanted == read(found.lhs, at)


@equation("A.10", CORRECTED, "manifold: datum.regimes", SIMULATED,
          remark="a third regime, where the whole set is on the margin: psi = -(D + 1)")  # fmt: skip
def _A10():
    (found,) = claims("manifold: datum.regimes")
    cases = [value for value, _ in found.rhs.args]
    at = matrices(1)
    assert len(cases) == 3
    assert cases[0] == 0
    assert cases[2] == -(manifold.D + 1)
    assert read(cases[1], at) == at["F"] * trace_of(at["F"], at["P"], at["s"], at["rows"])
    disc = sc.manifold_capacity(sc.Ball(2, 1), kappa=1)
    assert disc.fully_supporting > 0.01
    # the two formulas of the capacity agree with three regimes, and only with three
    printed = disc.mean_psi + 3 * disc.fully_supporting
    assert abs(1 + disc.alpha * disc.mean_psi - disc.S_w) < 1e-9 < 1e-2 < abs(1 + disc.alpha * printed - disc.S_w)
    simulation = manifold.problem.simulate({sc.alpha: float(disc.alpha), manifold.g: sc.Ball(2, 1)}, N=60, seeds=12)
    measured = simulation[sc.average(sc.response(manifold.w))]
    assert abs(measured.z(float(disc.S_w))) < 4 < abs(measured.z(float(1 + disc.alpha * printed)))


psi = mean(Symbol("psi"))
Explicit.read_ProjectionAverage = lambda self, e, env: mean(self(e.body, env))
claim("A.11", "manifold: eliminate.S_w", S_w, 1 + alpha * psi)

# in units v = kappa V, t = kappa T the multiplier is kappa S lambda; |s|^2 and T.s have letters of their own
s2, Ts, lam0, S = (Symbol(name) for name in ("s2", "Ts", "lambda[0]", "S_w"))


def in_letters(expr):
    """The scalar products of the record by letters."""
    return expr.xreplace({f: s2 if f.args[0] == f.args[2] else Ts for f in expr.atoms(Form)})


@equation("A.12", DERIVED, "manifold: datum.multiplier")
def _A12():
    first, second = claims("manifold: datum.multiplier")
    law = claims("manifold: datum.effective_law")[0]  # h = g(V) - 1
    level = {law.rhs + 1: law.lhs + 1}
    found = Explicit()(in_letters(first.rhs).xreplace(level), {})
    assert (found - (Symbol("h[0]") + 1 - Ts) / (S * s2)).expand() == 0
    assert Explicit()(in_letters(second.rhs), {}) == Max(0, 1 - Ts) / (S * s2)
    assert str(first.lhs) == str(second.lhs) == "lambda[0]"


def hinge():
    """[1 - T.s]_+ / |s|^2, which A.12 says is S lambda."""
    return Explicit()(in_letters(claims("manifold: datum.multiplier")[1].rhs), {}) * S


@equation("A.13", DERIVED, "manifold: load.identity", remark="with datum.multiplier and eliminate.S_w")
def _A13():
    load = claims("manifold: load.identity")[0]
    site = Symbol("lambda[site]")
    assert same(load, (1 / alpha, kappa**2 * mean(site)))
    response = Explicit()(claims("manifold: eliminate.S_w")[0].rhs, {})  # 1 + alpha <psi>
    inverse = Symbol("r")  # 1/alpha = kappa^2 <X> / S, with S = 1 + <psi>/(1/alpha)
    gap = (inverse - kappa**2 * mean(hinge()) / S).xreplace({S: response.xreplace({alpha: 1 / inverse})})
    solved = kappa**2 * mean(Max(0, 1 - Ts) / s2) - psi
    assert gap.xreplace({inverse: solved}).together().simplify() == 0


def standard(expr):
    """An identity in standard units by the letters of the paper, with A.12 put in."""
    rule = {LAM: kappa * hinge(), GAP2: kappa**2 * hinge() ** 2 * s2, TD: kappa**2 * hinge() * Ts}
    return Explicit()(expr.xreplace(rule), {})


@equation("A.14", DERIVED, "manifold: consistency", remark="units and A.12 put in")
def _A14():
    (found,) = claims("manifold: consistency")
    assert found.difference.xreplace({n: 0 for n, _ in averages(found.difference)}) == 0  # averages, and nothing else
    X = Max(0, 1 - Ts)
    left = kappa**2 * mean(X**2 / s2)
    right = -psi + kappa**2 * mean(X / s2)
    read_ = sum((c * mean(standard(n.body)) if n.body != PSI else c * psi for n, c in averages(found.difference)), 0)
    assert linear(read_ - (left - right)) == 0


def averages(expr):
    """The averages of a sum, with their factors."""
    return [(n, Explicit()(expr.coeff(n), {})) for n in sorted(expr.atoms(ProjectionAverage), key=str)]


def linear(expr):
    """A sum of averages with the factor kappa in front."""
    out = 0
    for term in expr.expand().as_ordered_terms():
        nodes = term.atoms(mean)
        for node in nodes:
            factor, body = node.args[0].as_independent(Max, s2, Ts, Symbol("psi"), as_Add=False)
            term = term.xreplace({node: factor * mean(body)})
        out += term
    return out.expand()


@equation("A.15", DERIVED, "manifold: euler", remark="at every field, which the integral adds up")
def _A15():
    first, second = claims("manifold: euler")
    positive = Max(0, 1 - Ts)
    pointwise = standard(first.rhs.xreplace({second.lhs: second.rhs})), standard(first.lhs)
    # kappa^2 (1 - T.s) S lambda = kappa^2 S lambda - kappa^2 S T.(lambda s), where S lambda = [1 - T.s]_+ / |s|^2
    assert (pointwise[0] - (kappa**2 * hinge() - kappa**2 * hinge() * Ts)).expand() == 0
    assert (pointwise[1] - kappa**2 * positive * hinge()).expand() == 0


f, slope, div, t2, td = (Symbol(name) for name in ("f", "slope", "div", "t2", "td"))
space = Function("space")
Explicit.read_SpaceIntegral = lambda self, e, env: space(self(e.args[0], env))
claim("A.16", "manifold: stein.parts", f, (2 * pi) ** (-(D + 1) / 2) * exp(-t2 / 2),
      sizes={"D": 2}, remark="of t = kappa T: its density has the factor kappa^(D + 1)")  # fmt: skip


@equation("A.17", DERIVED, "manifold: stein.parts", remark="slope is grad f.(v - t), td is t.(v - t)")
def _A17():
    _, gradient, integral, *_ = claims("manifold: stein.parts")
    assert same(gradient, (slope, -f * td))
    assert same(integral, (-mean(td), space(slope)))


claim("A.18", "manifold: stein.parts", space(slope), -space(f * div), 3)
claim("A.19", "manifold: stein.parts", div, Symbol("psi"), 4, remark="psi is S_w times the trace of d(lambda s)/dI")
