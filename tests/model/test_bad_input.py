"""Wrong declarations: each is refused before any work, in words that name what was found."""

import pytest
import sympy as sp
from sympy import (
    Abs,
    Derivative,
    Eq,
    Function,
    I,
    IndexedBase,
    Integral,
    Matrix,
    Max,
    Min,
    Ne,
    Product,
    Rational,
    S,
    Sum,
    Symbol,
    cos,
    exp,
    nan,
    oo,
    sqrt,
    zoo,
)
from sympy.stats import Normal

from symcavity import (
    BipartiteSystem,
    Complementary,
    ConvexProblem,
    Coupling,
    Datum,
    DeclarationError,
    Feature,
    Field,
    Global,
    N,
    NotConvex,
    P,
    Quenched,
    SupportFunction,
    SymcavityError,
    UnsupportedLaw,
    ValuesError,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity.model.exact import exact, finite_law
from symcavity.model.kinds import DATUM

x, u, w, v = Coupling("x"), Coupling("u"), Feature("w"), Feature("v")
xi, lam, eps, Delta = Datum("xi"), Datum("lam"), Datum("eps"), Feature("Delta")
y, l, b = Quenched("y", mu), Quenched("l", i), Global("b")
kappa, C, D = Symbol("kappa", positive=True), Symbol("C", positive=True), Symbol("D")
a, j, nu, t = sp.symbols("a j nu t")
h = Sum(x[mu, i] * w[i], (i, 1, N))
q = Sum(w[i] ** 2, (i, 1, N)) / 2
norm = average(w[i] ** 2)
to_datum, to_feature = Sum(x[mu, i] * Delta[i], (i, 1, N)), Sum(x[mu, i] * eps[mu], (mu, 1, P))


def problem(minimize=q, subject_to=(h >= 1,), fixed=()):
    return ConvexProblem(minimize=minimize, subject_to=list(subject_to), fixed=list(fixed))


def system(*equations, conditions=()):
    return BipartiteSystem(list(equations), list(conditions))


linear = (Eq(eps[mu], to_datum), Eq(Delta[i], to_feature))

REFUSED = {
    # couplings and indices
    "a loss of one datum that is not summed": (
        lambda: problem(q + C * Max(0, 1 - h)),
        "not summed over the sites",
        "Sum(C*Max(0, 1 - Sum(w[i]*x[mu, i], (i, 1, N))), (mu, 1, P))",
    ),
    "data counted from zero": (
        lambda: problem(q + Sum((1 - h) ** 2, (mu, 0, P - 1))),
        "(mu, 0, P - 1)",
        "(mu, 1, P): sites are counted from 1",
    ),
    "features coupled in a coupling sum": (
        lambda: problem(subject_to=[Sum(x[mu, i] * w[i] * w[j], (i, 1, N)) >= 1]),
        "index j of w[j]",
        "write w[i]",
    ),
    "features coupled directly": (
        lambda: problem(q + Sum(Sum(w[i] * w[j], (i, 1, N)), (j, 1, N))),
        "runs over (i, 1, N) and (j, 1, N)",
        "one kind of site",
    ),
    "data coupled directly": (
        lambda: problem(subject_to=[Sum(lam[nu] * lam[mu], (nu, 1, P)) >= 1]),
        "index mu",
        "one index of each kind",
    ),
    "data coupled in a sum of their own": (
        lambda: system(Eq(eps[mu], Sum(eps[nu], (nu, 1, P)) + to_datum), linear[1]),
        "without a coupling",
        'Coupling("J", between=',
    ),
    "no coupling in a sum": (
        lambda: problem(subject_to=[xi[mu] * Sum(w[i], (i, 1, N)) >= 1]),
        "grows with N",
        "Sum(w[i], (i, 1, N))/N",
    ),
    "mean of order one": (lambda: Coupling("x", mean=y[mu]), "order 1/N nor", "m[i]/N"),
    "mean of the states": (lambda: Coupling("x", mean=w[i] / N), "mean of x", "quenched parameters"),
    "correlation with nothing": (lambda: Coupling("z", correlation=C), "correlation of z", "correlation={x: rho}"),
    "correlation beyond one": (lambda: Coupling("z", correlation={x: 2}), "is 2", "between -1 and 1"),
    "correlation of other sites": (
        lambda: Coupling("z", between=(i, i), correlation={x: Rational(1, 2)}),
        "correlated with x",
        "same two sites",
    ),
    "reciprocity of two kinds": (lambda: Coupling("J", reciprocity=C), "couples two kinds", "between=(i, i)"),
    "reciprocity of unlike sites": (
        lambda: Coupling("J", between=(i, i), variance=l[i] / N, reciprocity=C),
        "differs from site to site",
        "alike",
    ),
    "a label's law without its field": (
        lambda: Quenched("s", mu, law={1: (1 + sp.sign(h)) / 2, -1: (1 - sp.sign(h)) / 2}),
        "stands in the law of s",
        "given=u",
    ),
    "a label on a number": (lambda: Quenched("s", mu, law={1: 1}, given=C), "s is given C", "given=u"),
    "a label on the student": (
        lambda: problem(
            q + Sum((h - Quenched("s", mu, law={1: (1 + sp.sign(h)) / 2, -1: (1 - sp.sign(h)) / 2}, given=h)[mu]) ** 2,
                    (mu, 1, P)), []
        ).kkt(),
        "not a field of quenched parameters",
        "Eq(u[mu]",
    ),
    "a label with other weights": (
        lambda: Quenched("s", mu, law={1: sp.exp(-h), -1: 1}, given=h), "sum to", "sum to one"
    ),
    "mean of components": (lambda: Coupling("x", (a, 1, 2), mean=C / N), "components and the mean", "name of its own"),
    "two couplings in a product": (
        lambda: problem(subject_to=[Sum(x[mu, i] * u[mu, i] * w[i], (i, 1, N)) >= 1]),
        "u[mu, i], x[mu, i]",
        "one coupling",
    ),
    "a squared coupling": (
        lambda: problem(subject_to=[Sum(x[mu, i] ** 2 * w[i], (i, 1, N)) >= 1]),
        "x[mu, i], x[mu, i]",
        "first power",
    ),
    "a coupling outside its sum": (
        lambda: problem(subject_to=[x[mu, i] * w[i] >= 1]),
        "free feature index",
        "one site",
    ),
    "state squared in a coupling sum": (
        lambda: problem(subject_to=[Sum(x[mu, i] * w[i] ** 2, (i, 1, N)) >= 1]),
        "not linear",
        "linear in the states",
    ),
    "product of states in a coupling sum": (
        lambda: problem(q + Sum(v[i] ** 2, (i, 1, N)), [Sum(x[mu, i] * w[i] * v[i], (i, 1, N)) >= 1]),
        "not linear",
        "linear",
    ),
    "function of a state in a coupling sum": (
        lambda: problem(subject_to=[Sum(x[mu, i] * exp(w[i]), (i, 1, N)) >= 1]),
        "not linear",
        "a System",
    ),
    "a sum in a coupling sum": (
        lambda: problem(subject_to=[Sum(x[mu, i] * Sum(w[j], (j, 1, N)), (i, 1, N)) >= 1]),
        "sum inside",
        "one sum",
    ),
    "dangling feature index": (
        lambda: problem(subject_to=[Sum(x[mu, j] * w[i], (i, 1, N)) >= 1]),
        "index j",
        "x[mu, i]",
    ),
    "dangling datum index": (
        lambda: problem(subject_to=[Sum(x[nu, i] * w[i], (i, 1, N)) >= 1]),
        "index nu",
        "x[mu, i]",
    ),
    "doubled index": (lambda: problem(subject_to=[h >= w[i]]), "free feature index", "one site"),
    "index plus one": (
        lambda: problem(subject_to=[Sum(x[mu, i] * w[i + 1], (i, 1, N)) >= 1]),
        "no order",
        "enclosing Sum",
    ),
    "pairs of sites": (
        lambda: problem(Sum(Max(0, 1 - h + h.xreplace({mu: j})), (mu, 1, P), (j, 1, P))), "(j, 1, P)", 'Global("b")'
    ),
    "a number as an index": (
        lambda: problem(subject_to=[Sum(x[mu, i] * w[3], (i, 1, N)) >= 1]),
        "index 3",
        "w[i]",
    ),
    "zero as an index": (
        lambda: problem(subject_to=[Sum(x[mu, i] * w[0], (i, 1, N)) >= 1]),
        "index 0",
        "w[i]",
    ),
    "an index as a number": (
        lambda: problem(Sum(i * w[i] ** 2, (i, 1, N))),
        "i stands as a number",
        "Quenched",
    ),
    "a summed index as a number": (
        lambda: problem(Sum(j * w[j] ** 2, (j, 1, N))),
        "j stands as a number",
        "Quenched",
    ),
    "coupling with swapped indices": (lambda: x[i, mu], "x[i, mu]", "x[mu, i]"),
    "datum with a feature index": (lambda: xi[i], "xi[i]", "xi[mu]"),
    "feature with a datum index": (lambda: w[mu], "w[mu]", "w[i]"),
    "label with a feature index": (lambda: y[i], "y[i]", "y[mu]"),
    "coupling with one index": (lambda: x[mu], "x[mu]", "x[mu, i]"),
    "too many indices": (lambda: w[i, a], "2 indices", "w[i]"),
    "float index": (lambda: w[0.5], "0.5", "w[i]"),
    "string index": (lambda: w["i"], "'i'", "w[i]"),
    "state as an index": (lambda: w[w[i]], "w[i]", "index symbols"),
    "slice": (lambda: w[:], "slice", "w[i]"),
    "own symbol named mu": (
        lambda: problem(subject_to=[Sum(x[Symbol("mu"), i] * w[i], (i, 1, N)) >= 1]),
        "of your own",
        "import mu",
    ),
    "own symbol named N": (lambda: problem(Symbol("N") * q), "symbol of your own named N", "import N"),
    "sum to an own N": (
        lambda: problem(Sum(w[i] ** 2, (i, 1, Symbol("N")))),
        "symbol of your own",
        "import N",
    ),
    "features summed to P": (
        lambda: problem(subject_to=[Sum(x[mu, i] * w[i], (i, 1, P)) >= 1]),
        "(i, 1, P)",
        "(i, 1, N)",
    ),
    "data summed to N": (
        lambda: problem(q + Sum(xi[mu], (mu, 1, N)), [h >= 1 - xi[mu]]),
        "(mu, 1, N)",
        "(mu, 1, P)",
    ),
    "features under a dummy summed to P": (
        lambda: problem(Sum(w[j] ** 2, (j, 1, P))),
        "place of a feature in w[j]",
        "(j, 1, N)",
    ),
    "sum from zero": (lambda: problem(Sum(w[i] ** 2, (i, 0, N - 1))), "(i, 0, N - 1)", "(i, 1, N)"),
    "sum from two": (lambda: problem(Sum(w[i] ** 2, (i, 2, N))), "(i, 2, N)", "(i, 1, N)"),
    "sum to M": (lambda: problem(Sum(w[i] ** 2, (i, 1, Symbol("M")))), "M", "(i, 1, N)"),
    # undeclared words
    "IndexedBase": (
        lambda: problem(subject_to=[Sum(IndexedBase("z")[mu, i] * w[i], (i, 1, N)) >= 1]),
        "z[mu, i]",
        "Coupling",
    ),
    "undefined function": (
        lambda: problem(q + Sum(Function("f")(h), (mu, 1, P))),
        "is not declared",
        "f = Feature",
    ),
    "integral": (
        lambda: problem(q + Sum(Integral(exp(-(t**2)), (t, 0, h)), (mu, 1, P)), []),
        "integral",
        "write the function",
    ),
    "derivative": (lambda: problem(q + Sum(Derivative(w[i] ** 2, w[i]), (i, 1, N))), "derivative", "doit"),
    "product": (lambda: problem(q + Product(w[i], (i, 1, N))), "product", "logarithms"),
    "random variable": (
        lambda: problem(subject_to=[h >= Normal("g", 0, 1)]),
        "random variable g",
        "Quenched",
    ),
    "average in a constraint": (lambda: problem(subject_to=[h >= 1, Eq(norm, 1)]), "average", "fixed="),
    "response in the objective": (
        lambda: problem(q + Sum(response(w[i]), (i, 1, N))),
        "response",
        "observable",
    ),
    "family in a function": (lambda: problem(q + Sum(exp(w), (i, 1, N))), "w stands in", "w[i]"),
    # numbers
    "float": (lambda: problem(q / 2 + 0.5 * Sum(v[i], (i, 1, N))), "The float 0.5 stands", "Rational(1, 2)"),
    "float in a constraint": (
        lambda: problem(subject_to=[h >= 0.25]),
        "The float 0.25 stands",
        "Rational(1, 4)",
    ),
    "float third": (lambda: problem(q / 3.0), "0.16666666666666666", "Rational(1, 6)"),
    "tiny float": (lambda: problem(1e-20 * q), "5e-21", "Rational('5e-21')"),
    "float in a law": (lambda: Quenched("z", mu, {0.5: 1}), "0.5 stands in the law of z", "Rational(1, 2)"),
    "float in a variance": (
        lambda: Coupling("z", variance=0.5 / N),
        "0.5 stands in the variance",
        "Rational(1, 2)",
    ),
    "float in a fixed average": (
        lambda: problem(fixed=[Eq(average(0.5 * w[i] ** 2), 1)]),
        "0.5",
        "Rational(1, 2)",
    ),
    "float in a condition": (lambda: Complementary(0.5, eps[mu]), "0.5", "Rational(1, 2)"),
    "nan": (lambda: problem(nan * q), "nan", "finite"),
    "infinite factor": (lambda: problem(Sum(oo * w[i] ** 2, (i, 1, N))), "oo", "finite"),
    "complex infinity": (lambda: problem(Sum(w[i] ** 2 + zoo, (i, 1, N))), "zoo", "finite"),
    "infinite bound": (lambda: problem(subject_to=[h >= oo]), "constant False", "infinite bound"),
    "imaginary unit": (lambda: problem(q + I * q), "I stands", "finite real"),
    "complex parameter": (lambda: problem(Symbol("z", complex=True) * q), "declared complex", "real=True"),
    "imaginary parameter": (
        lambda: problem(Symbol("z", imaginary=True) * q),
        "declared complex",
        "real=True",
    ),
    "non-commutative parameter": (
        lambda: problem(Symbol("z", commutative=False) * q),
        "non-commutative",
        "real=True",
    ),
    "matrix": (lambda: problem(Matrix([[1, 2], [3, 4]])), "Matrix", "one real value"),
    "trace of a matrix": (
        lambda: problem(q + sp.Trace(sp.MatrixSymbol("M", 2, 2)) * q),
        "Trace",
        "elementary functions",
    ),
    "list as objective": (lambda: problem([q]), "a list", "SymPy expressions"),
    "None as objective": (lambda: problem(None), "NoneType", "SymPy expressions"),
    "string as objective": (lambda: problem("w**2"), "string", "without quotes"),
    "relation as objective": (
        lambda: problem(h >= 1),
        "Sum(w[i]*x[mu, i], (i, 1, N)) >= 1",
        "one real value",
    ),
    # convexity
    "concave objective": (lambda: problem(-q), "not convex", "check the sign"),
    "oscillating loss": (lambda: problem(q + Sum(cos(10 * h), (mu, 1, P)), []), "not convex", "sign"),
    "concave penalty": (
        lambda: problem(q + Sum(sqrt(xi[mu]), (mu, 1, P)), [h >= 1 - xi[mu], xi[mu] >= 0]),
        "not convex",
        "sign",
    ),
    "jump": (lambda: problem(q + Sum(sp.sign(h), (mu, 1, P)), []), "not convex", "sign"),
    "unknown sign": (lambda: problem(D * q), "only if D is positive", 'Symbol("D", positive=True)'),
    "unknown sign of a kink": (
        lambda: problem(q + D * Sum(Abs(h), (mu, 1, P)), []),
        "only if D is positive",
        "positive=True",
    ),
    "constraint with a square": (lambda: problem(subject_to=[h**2 >= 1]), "not convex", "concave g"),
    "constraint with a modulus": (lambda: problem(subject_to=[Abs(h) >= 1]), "not convex", "concave g"),
    "product across the sides": (
        lambda: problem(subject_to=[Sum(x[mu, i] * w[i] * xi[mu], (i, 1, N)) >= 1]),
        "not convex",
        "sign",
    ),
    "equality of a square": (lambda: problem(subject_to=[Eq(h**2, 1)]), "not linear", "linear equalities"),
    "equality of a modulus": (lambda: problem(subject_to=[Eq(Abs(h), 1)]), "not linear", "linear equalities"),
    "concave penalty on a global": (lambda: problem(q - N * b**2 / 2, [h + b >= 1]), "not convex", "sign"),
    # constraints
    "equality of norms over all sites": (
        lambda: problem(subject_to=[h >= 1, Eq(Sum(w[i] ** 2, (i, 1, N)), N)]),
        "not linear",
        "fixed=",
    ),
    "bound on all sites of order one": (
        lambda: problem(subject_to=[h >= 1, Sum(w[i], (i, 1, N)) <= 1]),
        "of order one",
        "N*(1)",
    ),
    "average as a constraint": (
        lambda: problem(subject_to=[h >= 1, Eq(average(w[i] ** 2), 1)]),
        "average",
        "Sum(",
    ),
    "strict inequality": (lambda: problem(subject_to=[h > 1]), "> 1", ">= 1"),
    "strict inequality below": (lambda: problem(subject_to=[h < 1]), "< 1", "<= 1"),
    "unequal": (lambda: problem(subject_to=[Ne(h, 1)]), "Ne(", ">=, <= and Eq"),
    "expression as a constraint": (lambda: problem(subject_to=[h - 1]), "not supported", ">= 0"),
    "string as a constraint": (lambda: problem(subject_to=["h >= 1"]), "'h >= 1'", "without quotes"),
    "set of constraints": (lambda: ConvexProblem(q, {h >= 1}), "subject_to", "definite order"),
    "constant true": (lambda: problem(subject_to=[S(2) >= 1]), "constant True", "SymPy decides"),
    "constant false": (lambda: problem(subject_to=[S(0) >= 1]), "constant False", "SymPy decides"),
    "constraint on a parameter": (
        lambda: problem(subject_to=[h >= 1, sp.Eq(C, 1)]),
        "no quantity of a site",
        "positive=True",
    ),
    "constraint on a label": (lambda: problem(subject_to=[h >= 1, y[mu] >= 1]), "no variable", "states"),
    "bound that never holds": (lambda: problem(subject_to=[Max(h, 2) <= 1]).kkt(), "never holds", "states"),
    "label on a feature": (
        lambda: problem(Sum(y[mu] * w[i] ** 2, (i, 1, N))),
        "free datum index",
        "one site",
    ),
    "label in a bound on a feature": (
        lambda: problem(subject_to=[h >= 1, w[i] >= y[mu]]),
        "free datum index",
        "one site",
    ),
    # the objective
    "term outside a sum": (
        lambda: problem(q + w[i] ** 2),
        "w[i]**2 of the objective is not summed",
        "Sum(w[i]**2",
    ),
    "datum term outside a sum": (
        lambda: problem(q + xi[mu], [h >= 1 - xi[mu]]),
        "xi[mu]",
        "Sum(xi[mu], (mu, 1, P))",
    ),
    "field outside a sum": (lambda: problem(q + h**2, []), "not summed", "Sum("),
    "function of a sum": (lambda: problem(q**2 + q), "not in proportion", "/(4*N)"),
    "constant": (lambda: problem(3 * N), "depends on no variable", "states or globals"),
    "constant in a sum": (
        lambda: problem(Sum(C, (i, 1, N))),
        "depends on no variable",
        "states or globals",
    ),
    "zero": (lambda: problem(0), "zero", "sums"),
    "global of order one": (lambda: problem(q + b**2 / 2, [h + b >= 1]), "order one", "N*(b**2/2)"),
    "global of order N squared": (
        lambda: problem(q + N**2 * b**2 / 2, [h + b >= 1]),
        "in proportion",
        "N*(b**2/2)",
    ),
    "global times a sum": (lambda: problem(b * q), "not convex", "check the sign"),
    "global without constraint": (
        lambda: problem(q + N * b**2 / 2),
        "b interacts with no random field",
        "tie it in",
    ),
    "datum without constraint": (
        lambda: problem(q + Sum(xi[mu] ** 2, (mu, 1, P))),
        "xi[mu] interacts",
        "tie it in",
    ),
    "feature without coupling": (
        lambda: problem(q + Sum(v[i] ** 2, (i, 1, N))),
        "v[i] interacts",
        "tie it in",
    ),
    "no coupling at all": (
        lambda: problem(subject_to=[w[i] >= 1]).kkt(),
        "random couplings to other sites",
        "Sum(x[mu, i]",
    ),
    "field in a problem": (lambda: problem(subject_to=[Field("h")[mu] >= 1]), "h[mu]", "BipartiteSystem"),
    # fixed conditions
    "two values of one average": (
        lambda: problem(fixed=[Eq(norm, 2), Eq(norm, 1)]),
        "contradict",
        "one value",
    ),
    "two values up to a factor": (
        lambda: problem(fixed=[Eq(norm, 2), Eq(2 * norm, 1)]),
        "contradict",
        "one value",
    ),
    "one condition twice": (lambda: problem(fixed=[Eq(norm, 2), Eq(norm, 2)]), "twice", "one value"),
    "negative second moment": (lambda: problem(fixed=[Eq(norm, -1)]), "False", "negative number"),
    "negative second moment by a symbol": (
        lambda: problem(fixed=[Eq(norm, -kappa)]),
        "False",
        "negative number",
    ),
    "vanishing second moment": (lambda: problem(fixed=[Eq(norm, 0)]), "vanish", "positive"),
    "probability of two": (lambda: problem(fixed=[Eq(average(w[i] > 0), 2)]), "between 0 and 1", ""),
    "constants": (lambda: problem(fixed=[Eq(average(2), 3)]), "False", "contradicts itself"),
    "inequality of an average": (lambda: problem(fixed=[norm >= 1]), "average(w[i]**2) >= 1", "Eq("),
    "no average": (
        lambda: problem(fixed=[Eq(w[i] ** 2, 1)]),
        "not a condition on one average",
        "average(w[i]**2)",
    ),
    "sum for an average": (
        lambda: problem(fixed=[Eq(Sum(w[i] ** 2, (i, 1, N)), N)]),
        "not a condition",
        "average(w[i]**2)",
    ),
    "average across the sides": (
        lambda: problem(fixed=[Eq(average(w[i] * xi[mu]), 1)]),
        "free feature index",
        "one site",
    ),
    "average of an unknown variable": (
        lambda: problem(fixed=[Eq(average(v[i] ** 2), 1)]).kkt(),
        "v[i]",
        "w[i]",
    ),
    "more conditions than freedom": (
        lambda: problem(fixed=[Eq(norm, 1), Eq(average(w[i]), 0)]).kkt(),
        "2 fixed conditions",
        "alpha",
    ),
    "dictionary": (lambda: ConvexProblem(q, [h >= 1], {norm: 1}), "fixed is", "fixed=[...]"),
    # quenched laws, couplings, names
    "weights that do not sum to one": (
        lambda: Quenched("z", mu, {1: Rational(1, 2), -1: Rational(1, 3)}),
        "5/6",
        "sum to one",
    ),
    "negative weight": (
        lambda: Quenched("z", mu, {1: Rational(3, 2), -1: -Rational(1, 2)}),
        "-1/2",
        "non-negative",
    ),
    "empty law": (lambda: Quenched("z", mu, {}), "empty", "sum to one"),
    "array as a law": (lambda: Quenched("z", mu, [1, 2]), "[1, 2]", "at evaluation"),
    "complex value in a law": (lambda: Quenched("z", mu, {I: 1}), "I stands", "real"),
    "infinite value in a law": (lambda: Quenched("z", mu, {oo: 1}), "oo stands", "finite"),
    "code in a law": (lambda: Quenched("z", mu, {"exit()": 1}), "string", "decimals"),
    "quenched without index": (lambda: Quenched("z"), "no site index", 'Quenched("z", mu)'),
    "a joint law without index": (lambda: Quenched(("z", "y")), "no site index", "Quenched(('z', 'y'), mu)"),
    "quenched over N": (lambda: Quenched("z", N), "declared over N", 'Quenched("z", mu)'),
    "field over N": (lambda: Field("z", index=N), "declared over N", "i (features) and mu (data)"),
    "negative variance": (lambda: Coupling("z", variance=-1 / N), "-1/N", "positive variance"),
    "zero variance": (lambda: Coupling("z", variance=0), "0", "positive variance"),
    "nan variance": (lambda: Coupling("z", variance=nan), "nan", "finite"),
    "imaginary variance": (lambda: Coupling("z", variance=I / N), "I", "finite"),
    "state in a variance": (lambda: Coupling("z", variance=w[i] ** 2 / N), "w[i]", "quenched"),
    "foreign index in a variance": (lambda: Coupling("z", variance=l[j] / N), "l[j]", "l[i]"),
    "variance in the place of components": (lambda: Coupling("z", 2 / N), "2/N", "variance="),
    "components as a number": (lambda: Feature("W", components=3), "3", "(a, first, last)"),
    "components without a symbol": (lambda: Feature("W", components=(1, 2, 3)), "(1, 2, 3)", "index symbol"),
    "components reversed": (
        lambda: Feature("W", components=(a, 3, 1)),
        "from 3 down to 1",
        "(a, first, last)",
    ),
    "component beyond the range": (
        lambda: problem(Sum(Feature("W", components=(a, 1, 2))[i, 3] ** 2, (i, 1, N))),
        "component 3",
        "1 to 2",
    ),
    "missing component": (lambda: Feature("W", components=(a, 1, 2))[i], "1 indices", "W[i, a]"),
    "open component range": (
        lambda: problem(Sum(Sum(Feature("W", (a, 1, D))[i, a] ** 2, (a, 1, D)), (i, 1, N))),
        "1..D",
        "explicit",
    ),
    "name that is not a name": (lambda: Feature("2w"), "2w", "identifier"),
    "name that is a number": (lambda: Feature(3), "3", "identifier"),
    "name of a size": (lambda: Feature("N"), "taken", "other name"),
    "name of the load": (lambda: Datum("alpha"), "taken", "other name"),
    "bounded global": (lambda: Global("c", integer=True), "integer", "positive=True"),
    "feature and datum of one name": (
        lambda: problem(q + Sum(Datum("w")[mu], (mu, 1, P)), [h >= 1 - Datum("w")[mu]]),
        "name w",
        "another name",
    ),
    "feature and label of one name": (
        lambda: problem(subject_to=[h * Quenched("w", mu)[mu] >= 1]),
        "name w",
        "another name",
    ),
    "feature and parameter of one name": (
        lambda: problem(q + Symbol("w", positive=True) * Sum(xi[mu] ** 2, (mu, 1, P)), [h >= 1 - xi[mu]]),
        "name w",
        "another",
    ),
    "feature and global of one name": (
        lambda: problem(subject_to=[h + Global("w") >= 1]),
        "name w",
        "another name",
    ),
    "two parameters of one name": (
        lambda: problem(q + C * Sum(xi[mu] ** 2, (mu, 1, P)), [h >= Symbol("C") - xi[mu]]),
        "name C",
        "declare it once",
    ),
    "two variances of one coupling": (
        lambda: problem(subject_to=[h + Sum(Coupling("x", variance=2 / N)[mu, i] * w[i], (i, 1, N)) >= 1]),
        "variance 2/N",
        "declare it once",
    ),
    "two laws of one label": (
        lambda: problem(subject_to=[y[mu] * h >= Quenched("y", mu, {1: 1})[mu]]),
        "name y",
        "declare it once",
    ),
    # systems
    "expression for an equation": (
        lambda: system(eps[mu] - to_datum, linear[1]),
        "entry of equations",
        "Eq(",
    ),
    "collapsed equation": (lambda: system(Eq(S(1), 1), *linear), "True", "SymPy decides"),
    "one side only": (lambda: system(linear[0]), "feature sites", "Sum(x[mu, i]"),
    "nothing": (system, "random couplings", "Sum("),
    "too few equations": (
        lambda: system(linear[0], Eq(Delta[i] + w[i], to_feature)),
        "2 variables",
        "as many",
    ),
    "too many equations": (lambda: system(*linear, Eq(Delta[i], 1)), "2 equations", "as many"),
    "global without a condition": (
        lambda: system(Eq(eps[mu], to_datum + b), linear[1]),
        "1 global variables",
        "one global",
    ),
    "relation as a condition": (
        lambda: system(*linear, conditions=[eps[mu] >= 0]),
        "varepsilon[mu] >= 0",
        "Complementary",
    ),
    "condition without a site": (
        lambda: system(*linear, conditions=[Complementary(C, 2)]),
        "no site index",
        "one site",
    ),
    "condition across the sides": (
        lambda: system(*linear, conditions=[Complementary(eps[mu], Delta[i])]),
        "several kinds of site",
        "one site",
    ),
    "string in a condition": (lambda: Complementary("p", eps[mu]), "string", "quotes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_declaration_says_what_was_found_and_what_to_try(name):
    wrong, found, advice = REFUSED[name]
    with pytest.raises(DeclarationError) as caught:
        wrong()
    error = caught.value
    assert found in error.found
    assert advice in f"{error.supported}\n{error.hint}"
    assert "_" not in error.found.replace("subject_to", "") or "[" in error.found  # no inner names


@pytest.mark.parametrize("sign", [lambda s: s, lambda s: -s])
def test_the_same_problem_with_the_right_sign_passes(sign):
    if sign(1) > 0:
        assert problem(sign(q)).kkt()
    else:
        with pytest.raises(NotConvex):
            problem(sign(q))


@pytest.mark.parametrize(
    "use",
    [
        lambda f: f**2,
        lambda f: 2 * f,
        lambda f: f / 2,
        lambda f: 1 / f,
        lambda f: -f,
        lambda f: f - 1,
        lambda f: N * f,
        lambda f: x * f,
        lambda f: f >= 0,
        lambda f: problem(subject_to=[Eq(f, 0)]),
        abs,
        float,
        lambda f: C + f,
    ],
)
def test_a_family_without_an_index_is_refused_in_every_operation(use):
    with pytest.raises(DeclarationError) as caught:
        use(w)
    assert "without an index" in caught.value.found


def test_a_family_does_not_iterate():
    with pytest.raises(TypeError, match=r"w\[\.\.\.\]"):
        list(w)


@pytest.mark.parametrize(
    ("declared", "free"),
    [
        (lambda: problem(q, [h >= 1 - xi[mu], xi[mu] >= 0]), "xi[mu]"),
        (lambda: problem(q, [h >= 1 - xi[mu]]), "xi[mu]"),
    ],
)
def test_a_state_that_nothing_penalises_is_named(declared, free):
    with pytest.raises(UnsupportedLaw) as caught:
        declared().cavity()
    assert "undetermined" in caught.value.found
    assert free in caught.value.found


@pytest.mark.parametrize(
    "loss",
    [lambda z: -sp.log(z), lambda z: -sp.sqrt(z), lambda z: z * sp.log(z)],
    ids=["log", "sqrt", "entropy"],
)
def test_a_loss_that_is_defined_on_half_the_line_bounds_its_field(loss):
    assert problem(q + Sum(loss(h), (mu, 1, P)), []).subject_to == (h >= 0,)


def test_an_unknown_sign_in_a_linear_penalty_is_asked_for():
    with pytest.raises(NotConvex, match="its sign is not declared"):
        problem(q + D * Sum(xi[mu], (mu, 1, P)), [h >= 1 - xi[mu], xi[mu] >= 0]).cavity()


def test_a_min_that_is_not_concave_enough_is_refused():
    with pytest.raises(NotConvex):
        problem(q + Sum(Min(h, 0), (mu, 1, P)), []).kkt()


@pytest.mark.parametrize("power", [1, 2, 5])
def test_a_loss_that_bends_down_slightly_where_few_data_are_is_refused(power):
    """The focal loss: its second derivative is least, -0.017 to -0.12, near a margin of -4."""
    share = 1 / (1 + exp(-h))
    with pytest.raises(NotConvex, match="bends downwards near"):
        problem(q - Sum((1 - share) ** power * sp.log(share), (mu, 1, P)), []).kkt()
    bent = h**2 / 2 - sp.cos(5 * h) / 26  # by little not convex where h is a multiple of pi/5
    with pytest.raises(NotConvex):
        problem(q + Sum(h**2 / 2 - sp.cos(5 * h) / 20, (mu, 1, P)), []).kkt()
    assert problem(q + Sum(bent, (mu, 1, P)), []).kkt()


def test_a_condition_may_carry_a_factor_and_stand_on_either_side():
    first = problem(fixed=[Eq(norm, 1 / kappa**2)]).fixed
    assert problem(fixed=[Eq(1 / kappa**2, norm)]).fixed == first
    assert problem(fixed=[Eq(2 * norm, 2 / kappa**2)]).fixed == first


def test_a_part_of_a_bound_that_always_holds_leaves_no_multiplier():
    system_ = problem(subject_to=[Max(h, 0) <= 1]).kkt()
    assert len(system_.datum.pairs) == 1


def test_the_shared_part_of_a_global_condition_does_not_depend_on_the_order_of_its_terms():
    data = Sum(lam[mu], (mu, 1, P))
    for condition in (Eq(N * b, data), Eq(data, N * b), Eq(data - N * b, 0)):
        found = system(Eq(lam[mu], to_datum + b), Eq(Delta[i], Sum(x[mu, i] * lam[mu], (mu, 1, P))), condition)
        (((side, body),),) = (parts.items() for parts in found.global_conditions)
        assert side == DATUM
        assert sp.expand(body - (lam[mu] - b / alpha)) * sp.expand(body + lam[mu] - b / alpha) == 0


def test_names_that_the_engine_adds_avoid_those_of_the_declaration():
    taken = Symbol("lambda", positive=True)
    found = problem(q, [h >= taken]).kkt()
    assert "lambda" not in found.variables
    real_u = Symbol("u", real=True)
    (equation,) = [e for e in problem(q, [h >= real_u]).kkt().datum.equations if e.difference.has(real_u)]
    assert equation.rhs.has(real_u)
    assert len(equation.rhs.atoms(Symbol)) == 2  # the parameter and the placeholder of the field


def test_decimals_in_strings_are_exact_in_laws_and_refused_elsewhere():
    assert finite_law({1: "0.25", -1: "3/4"}, "y", exact_values=True)[0][1] == Rational(1, 4)
    with pytest.raises(DeclarationError, match="Rational"):
        exact("0.5", "the objective")


k, last = Symbol("k", integer=True, positive=True), Symbol("D_1", integer=True, positive=True)
g, g_2 = SupportFunction("g"), SupportFunction("g_2")


def vector(name="u", components=(k, 1, last)):
    return Sum(Coupling(name, components=components)[mu, i, k] * w[i], (i, 1, N))


V, slack = vector(), Sum(xi[mu], (mu, 1, P))
label = Quenched("y", mu, law={1: Rational(1, 2), -1: Rational(1, 2)})
to_set = Sum(Coupling("u", components=(k, 1, last))[mu, i, k] * lam[mu], (mu, 1, P))

REFUSED_SETS = {
    "two sets of one vector": (
        lambda: problem(subject_to=[g(V) >= 1, g_2(V) >= 1]),
        UnsupportedLaw,
        "one set: the hull",
    ),
    "the sum of two sets": (
        lambda: problem(subject_to=[g(V) + g_2(V) >= 1]),
        UnsupportedLaw,
        "g(V[mu, k]), g_2(V[mu, k])",
    ),
    "two vectors": (
        lambda: problem(subject_to=[g(V) >= 1, g_2(vector("t")) >= 1]),
        UnsupportedLaw,
        "a vector together with other fields",
    ),
    "a vector and a point": (
        lambda: problem(subject_to=[g(V) >= 1, h >= 1]),
        UnsupportedLaw,
        "a vector together with other fields",
    ),
    "a set of the features": (
        lambda: problem(Sum(lam[mu] ** 2, (mu, 1, P)), [g(to_set) >= 1]),
        UnsupportedLaw,
        "exchanged",
    ),
    "an equality": (lambda: problem(subject_to=[Eq(g(V), 1)]), NotConvex, "not linear in the states"),
    "a bound from above": (
        lambda: problem(subject_to=[g(V) <= 1]),
        NotConvex,
        "a minimum of linear functions, is concave",
    ),
    "a negative factor": (lambda: problem(subject_to=[-g(V) >= -1]), NotConvex, "positive factors"),
    "a reward for violations": (lambda: problem(q + Sum(g(V), (mu, 1, P)), []), NotConvex, "Max(0, 1 - g(V))"),
    "a smooth loss": (
        lambda: problem(q + Sum(exp(-g(V)), (mu, 1, P)), []),
        UnsupportedLaw,
        "C*Sum(xi[mu], (mu, 1, P))",
    ),
    "no loss at all": (lambda: problem(q - Sum(g(V), (mu, 1, P)), []), UnsupportedLaw, "only its gradient"),
    "a label in front of the vector": (
        lambda: problem(subject_to=[g(label[mu] * V) >= 1]),
        UnsupportedLaw,
        "leave it out",
    ),
    "a shifted vector": (lambda: problem(subject_to=[g(V + b) >= 1]), UnsupportedLaw, "other side of the constraint"),
    "a scalar in place of the vector": (lambda: g(h), DeclarationError, "no free component index"),
    "a number in place of the vector": (lambda: g(3), DeclarationError, "no free component index"),
    "a list in place of the vector": (lambda: g([V, V]), DeclarationError, "written by its component"),
    "a vector without a set": (
        lambda: problem(subject_to=[V >= 1]),
        DeclarationError,
        "explicit components such as u[mu, i, 1]",
    ),
    "components that are no integers": (
        lambda: vector(components=(k, 1, Rational(5, 2))),
        DeclarationError,
        "integers (a, first, last)",
    ),
    "as many components as data": (lambda: vector(components=(k, 1, P)), DeclarationError, "stays fixed"),
    "components over a site index": (lambda: vector(components=(i, 1, 3)), DeclarationError, "other than i and mu"),
}


@pytest.mark.parametrize("name", REFUSED_SETS)
def test_a_wrong_declaration_of_a_set_says_what_to_try(name):
    wrong, family, said = REFUSED_SETS[name]
    with pytest.raises(family) as caught:
        wrong().cavity()
    assert said in str(caught.value)


def test_factors_of_support_functions_scale_the_bound():
    """Homogeneity of degree one: ``2*g(V) >= 1``, ``g(2*V) >= 1`` and ``g(V) >= 1/2`` are one constraint."""
    declared = [problem(subject_to=[c]) for c in (2 * g(V) >= 1, g(2 * V) >= 1, g(V) >= Rational(1, 2))]
    first, *others = [[str(e) for e in p.cavity().equations] for p in declared]
    assert all(other == first for other in others)
    scale = Quenched("s", mu, positive=True)
    assert g(scale[mu] * V) == scale[mu] * g(V)
    assert g(label[mu] * V) != label[mu] * g(V)


def test_every_error_is_of_the_family():
    for name, (wrong, _, _) in REFUSED.items():
        with pytest.raises(SymcavityError) as caught:
            wrong()
        assert str(caught.value), name


def test_an_objective_that_is_one_sum_keeps_its_summand():
    """A square is not expanded, so that its constant is no term of its own."""
    margins = [Sum(x[mu, i] * w[i], (i, 1, N)) >= 1]
    problem = ConvexProblem(minimize=Sum((w[i] - 1) ** 2, (i, 1, N)) / 2, subject_to=margins)
    assert float(problem.cavity().solve({alpha: "1/2"})[average(w[i])]) > 0.5
    parts = 2 * (Sum(w[i] ** 2, (i, 1, N)) + Sum(Abs(w[i] - 1), (i, 1, N)))
    assert ConvexProblem(minimize=parts, subject_to=margins).cavity().equations


def test_a_kind_that_only_sends_quenched_parameters_is_refused_with_what_its_sums_are():
    drive, c = Sum(x[mu, i] * Quenched("c", mu)[mu], (mu, 1, P)), Sum(w[i] ** 2, (i, 1, N)) / 2
    with pytest.raises(DeclarationError, match=r"contains no variable: they") as caught:
        ConvexProblem(c + Sum(Abs(w[i]) - drive * w[i], (i, 1, N))).kkt()
    assert 'Quenched("g", i, law=Normal("g", 0, 1))' in str(caught.value)


def test_values_out_of_the_range_of_their_parameters_are_refused_before_any_work():
    """Stated beside the constraints, or implied: by a correlation, and by the weights of labels."""
    tau, rho, p = sp.Symbol("tau", positive=True), sp.Symbol("rho", real=True), sp.Symbol("p", positive=True)
    squares = Sum(w[i] ** 2, (i, 1, N)) / 2
    r = 1 - Sum(x[mu, i] * w[i], (i, 1, N))
    quantile = ConvexProblem(squares + Sum(sp.Max(tau * r, (tau - 1) * r), (mu, 1, P)), subject_to=[tau < 1])
    other, t = Coupling("z", correlation={x: rho}), Quenched("t", i)
    u = Sum(x[mu, i] * t[i], (i, 1, N))
    noisy = ConvexProblem(squares + Sum((u - Sum(other[mu, i] * w[i], (i, 1, N))) ** 2, (mu, 1, P)))
    up = (1 + (1 - 2 * p) * sp.sign(u)) / 2
    y = Quenched("y", mu, law={1: up, -1: 1 - up}, given=u)
    flipped = ConvexProblem(squares + Sum(Max(0, y[mu] * r), (mu, 1, P)))
    assert "where       tau < 1" in str(quantile)
    for problem, values, said in (
        (quantile, {tau: 2}, "tau < 1"),
        (noisy, {rho: -2, t: {1: 1}}, r"Abs\(rho\) <= 1"),
        (flipped, {p: 2, t: {1: 1}}, "1 - p >= 0"),
    ):
        for act in (problem.kkt().cavity().solve, lambda v, one=problem: one.simulate(v, N=10, seeds=1)):
            with pytest.raises(ValuesError, match=f"out of range.\n.*{said}"):
                act({alpha: 2, **values})


@pytest.mark.parametrize("power", [1002, 100000, -100000, Rational(200001, 2)])
def test_powers_that_run_for_minutes_are_refused(power):
    """They were taken apart into as many terms: in declarations, in observables of theories and of instances."""
    h = Sum(x[mu, i] * w[i], (i, 1, N))
    problem = ConvexProblem(Sum((h - 1) ** 2, (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)))
    key = average(Abs(w[i]) ** power)
    for act in (problem.cavity().observable, problem.simulate({alpha: 2}, N=10, seeds=1).__getitem__):
        with pytest.raises(DeclarationError, match="exponents up to 1000"):
            act(key)
    with pytest.raises(DeclarationError, match="exponents up to 1000"):
        ConvexProblem(Sum((h - 1) ** 20000, (mu, 1, P)))


def test_a_power_that_is_a_parameter_is_refused_at_once():
    """Convexity is looked at in numbers of fifty digits: a rational power of a rational number was factorised."""
    p, h = Symbol("p", positive=True), Sum(x[mu, i] * w[i], (i, 1, N))
    with pytest.raises(UnsupportedLaw, match="powers that are numbers of at least one"):
        ConvexProblem(Sum(Abs(h - 1) ** p, (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N))).cavity()
