"""Read what the engine claims, and what we transcribe, into plain polynomials at explicit small sizes.

A transcription is written in bare SymPy: ``IndexedBase``, ``Sum`` and the functions below, with no word of the engine.
Both are written out at N = 3, P = 2 and two components, for every value of the free indices, with one symbol for every
quantity of every site.  Two formulas are the same where every difference expands to zero.
"""

from contextlib import contextmanager
from functools import cache
from importlib import import_module
from itertools import product

from sympy import Expr, Function, IndexedBase, KroneckerDelta, S, Sum, Symbol, sqrt, sympify
from sympy.tensor.indexed import Indexed

from symcavity.algebra.indexed import Unequal
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.quantities import SiteQuantity
from symcavity.model.support import Anchor, Support
from symcavity.record.order_parameters import OrderParameter
from symcavity.record.symbols import (
    CavitySymbol,
    ComponentSymbol,
    DisorderAverage,
    Emission,
    Perturbation,
    ResponseElement,
    Source,
)

SIZES = {"N": 3, "P": 2, "D": 1}
RANGES = {"i": 3, "j": 3, "k": 3, "mu": 2, "nu": 2, "a": 2, "b": 2, "c": 2}

OFF = {"by": 0}  # what is added to the right sides of transcriptions, by tests that see them fail


@contextmanager
def enlarged(**sizes):
    """Write out at other sizes for a while."""
    before = {name: SIZES[name] for name in sizes}
    SIZES.update(sizes)
    try:
        yield
    finally:
        SIZES.update(before)


@contextmanager
def falsified():
    """Add one to the right side of every transcription for a while."""
    OFF["by"] = 1
    try:
        yield
    finally:
        OFF["by"] = 0


i, j, k, mu, nu, a, b, c = (Symbol(name, integer=True) for name in ["i", "j", "k", "mu", "nu", "a", "b", "c"])
N, P, D, alpha, kappa, gamma = (Symbol(name) for name in ["N", "P", "D", "alpha", "kappa", "gamma"])
x, w, lam, h, u, V, Lam, phi_, Delta, eps, rho, target = (
    IndexedBase(name)
    for name in ["x", "w", "lambda", "h", "u", "V", "Lambda", "phi", "Delta", "varepsilon", "rho", "a"]
)
up, down = IndexedBase("I^"), IndexedBase("I_")  # sources of data and of features
delta, d, avg, mean, resp = (Function(name) for name in ["delta", "d", "avg", "mean", "resp"])  # mean: over sites too
eta_0, F_00, eta0, F00 = (Symbol(name) for name in ("eta_0", "F_00", "eta^0", "F^00"))


@cache
def theory(name, method="cavity", thing="problem"):
    """A derived theory, once for all tests."""
    return getattr(getattr(import_module(f"symcavity.derivations.{name}"), thing), method)()


@cache
def steps(name, method="cavity", thing="problem"):
    """The record of a theory, by the keys of its steps."""
    return {step.key: step for step in theory(name, method, thing).derivation.steps}


def claims(where):
    """The claims of a step, ``'gardner: feature.respond'`` or ``'gardner, naive: closure.q_w'``."""
    origin, _, key = where.partition(": ")
    return steps(*origin.split(", "))[key].claims


def meanings(where):
    """What the order parameters of a theory stand for."""
    return theory(*where.partition(": ")[0].split(", ")).order_parameters


class Explicit:
    """Write an expression out at explicit sizes."""

    def __init__(self, meaning=()):
        self.meaning = dict(meaning)

    def __call__(self, expr, env):
        expr = sympify(expr)
        name = type(expr).__name__
        method = getattr(self, f"read_{name}", None)
        if method is not None:
            return method(expr, env)
        for cls, how in self.KINDS:
            if isinstance(expr, cls):
                return how(self, expr, env)
        if isinstance(expr, Symbol):
            return self.symbol(expr, env)
        if not expr.args:
            return expr
        return expr.func(*(self(arg, env) for arg in expr.args))

    def symbol(self, expr, env):
        if expr.name in env:
            return sympify(env[expr.name])
        return sympify(SIZES[expr.name]) if expr.name in SIZES else Symbol(expr.name)

    def total(self, expr, env):
        body, (index, low, high), *rest = expr.args
        rest = Sum(body, *rest) if rest else body
        bound = {*env.get("bound", ()), index.name}
        return sum(
            (
                self(rest, {**env, index.name: value, "bound": bound})
                for value in range(int(self(low, env)), int(self(high, env)) + 1)
            ),
            S.Zero,
        )

    def order(self, expr, env):
        if expr not in self.meaning:
            return Symbol(expr.name)
        return self.averaged(self.meaning[expr], env)

    def averaged(self, meaning, env):
        """What an order parameter stands for, with its average inside of sums over sites."""
        if isinstance(meaning, Sum):
            return self(Sum(Mean(meaning.function), *meaning.limits), env)
        return self(meaning, env)

    def quantity(self, expr, env):
        family = expr.family
        name = f"I{'^' if family.slots[0].upper else '_'}" if isinstance(family, Source) else family.name
        return self.site(name, expr.indices, env)

    def site(self, name, indices, env):
        read = [str(self(index, env)) for index in indices]
        return Symbol(f"{name}[{', '.join(sorted(read) if name == 'K' else read)}]")  # a kernel is symmetric

    def over_sites(self, expr, env):
        """An average over sites: one site stands for all, and components are written out."""
        free = ({s.name for s in expr.args[0].free_symbols} & {"i", "mu"}) - set(env.get("bound", ()))
        return average_of(self(expr.args[0], {**env, **dict.fromkeys(free, Symbol("site"))}))

    def binder(self, expr, env):
        index, low, high = expr.components.range
        vector = [self(expr.body, {**env, index.name: v}) for v in range(int(low), int(self(high, env)) + 1)]
        if isinstance(expr, Anchor):
            return Function(f"grad_{expr.g.name}")(self(expr.at, env), *vector)
        return Function(expr.g.name)(*vector)

    KINDS = (
        (SiteQuantity, quantity),
        (ComponentSymbol, lambda self, e, env: self.site(e.name.partition("_")[0], e.indices, env)),
        (CavitySymbol, lambda self, e, _: Symbol(e.name)),
        (OrderParameter, order),
        (Indexed, lambda self, e, env: self.site(e.base.name, e.indices, env)),
        (Sum, total),
        (Emission, lambda self, e, env: self(e.body, env)),
        (Perturbation, lambda self, e, env: delta(self(e.args[0], env))),
        (DisorderAverage, lambda self, e, env: avg(self(e.args[0], env))),
        (ResponseElement, lambda self, e, env: d(*(self(arg, env) for arg in e.args))),
        (Average, over_sites),
        (SiteResponse, lambda self, e, env: resp(self(e.args[0], env))),
        ((Support, Anchor), binder),
        (Unequal, lambda self, e, env: S(int(self(e.args[0], env) != self(e.args[1], env)))),
        (KroneckerDelta, lambda self, e, env: S(int(self(e.args[0], env) == self(e.args[1], env)))),
    )


def average_of(expr):
    """An average; parameters that are given for each site are no random numbers."""
    given = [s for s in expr.free_symbols if s.name.startswith(("rho[", "a["))]
    outside, inside = expr.as_independent(*(expr.free_symbols - set(given)), Function, as_Add=False)
    return outside * mean(inside)


class Mean(Expr):
    """The average of the quantity of one site, where the sum over sites stands outside."""


Explicit.read_Mean = lambda self, expr, env: average_of(self(expr.args[0], env))
Explicit.read_mean = lambda self, expr, env: Explicit.over_sites(self, expr, env)


def sides(equation):
    return equation if isinstance(equation, tuple) else (equation.lhs, equation.rhs)


def points(*expressions):
    """All values of the free indices."""
    free = {s.name for e in expressions for s in sympify(e).free_symbols} & set(RANGES)
    names = sorted(free)
    return [dict(zip(names, values, strict=True)) for values in product(*(range(1, RANGES[n] + 1) for n in names))]


def vanishes(expr):
    """Whether a difference expands to zero; averages over couplings are linear."""
    return expr.expand() == 0 or expr.together().as_numer_denom()[0].expand() == 0


def same(claim, transcription, meaning=(), rule=(), factor=1):
    """Whether a claim of the engine is what the transcription says, side by side, at all sites.

    ``rule`` says what the engine's letters are in the paper's, ``factor`` what both sides are multiplied by.
    """
    read = Explicit(meaning)
    (left, right), (first, second) = sides(claim), sides(transcription)
    second = second + OFF["by"]
    for env in points(left, right, first, second):
        for one, other in ((left, first), (right, second)):
            found = (sympify(factor) * read(one, env)).xreplace(dict(rule))
            if not vanishes(found - read(other, env)):
                return False
    return True


__all__ = [name for name in dir() if not name.startswith("_")] + ["sqrt"]
