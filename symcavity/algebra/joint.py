"""Gaussian averages of several quantities that a system of equations fixes together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any

from sympy import Abs, Basic, Derivative, Expr, Heaviside, Integer, Max, Min, Piecewise, S, Symbol, Tuple, sign
from sympy.core.relational import Relational

from symcavity.algebra.door import as_sympy
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.node import raised
from symcavity.algebra.texsymbol import TexSymbol

MOST_RULED, MOST_KINKED = 3, 2  # fields over which there are rules; above, averages are sampled
MOST_BESIDE = 1  # of the fields that the states do not hear, over which there is a rule besides
RULE, RAYS, SAMPLES = "rule", "rays", "samples"
KINKS = (Max, Min, Abs, sign, Heaviside, Piecewise, Relational)


class LawSymbol(TexSymbol):
    """A quantity that a law binds: an unknown, a field, a source, or a response of an unknown to a source."""

    __slots__ = ()

    def _latex(self, _printer: Any, exp: str | None = None) -> str:
        return f"\\left({self.tex}\\right)^{{{exp}}}" if exp else self.tex


SCRAMBLE = LawSymbol("scramble", "\\text{samples}")


def slope(x: LawSymbol, source: LawSymbol) -> LawSymbol:
    """The response of an unknown to a source."""
    return LawSymbol(f"d{x.name}/d{source.name}", f"\\frac{{\\partial {x.tex}}}{{\\partial {source.tex}}}")


class JointLaw(Basic):
    """Equations and complementary pairs that fix some unknowns for every value of some fields.

    Parameters
    ----------
    unknowns : sequence of LawSymbol
    fields : sequence of LawSymbol
    equations : sequence of Expr
        They vanish.
    pairs : sequence of (Expr, Expr)
        Neither member is negative, and one is zero.
    definitions : sequence of (LawSymbol, Expr)
        Further quantities, by the unknowns, the fields and those before them.
    sources : sequence of LawSymbol
        At zero; responses are to them.
    scramble : Expr
        Which of the independent sets of samples averages are taken over, where they are sampled; the symbol
        ``SCRAMBLE`` stands for all of them.
    """

    def __new__(
        cls,
        unknowns: Any,
        fields: Any,
        equations: Any,
        pairs: Any,
        definitions: Any,
        sources: Any,
        scramble: Any = None,
    ) -> JointLaw:
        """Return the law."""
        two = [Tuple(*(Tuple(*pair) for pair in rows)) for rows in (pairs, definitions)]
        one = [Tuple(*row) for row in (unknowns, fields, equations)]
        return Basic.__new__(cls, *one, *two, Tuple(*sources), SCRAMBLE if scramble is None else as_sympy(scramble))

    unknowns = property(lambda self: tuple(self.args[0]))
    fields = property(lambda self: tuple(self.args[1]))
    equations = property(lambda self: tuple(self.args[2]))
    pairs = property(lambda self: tuple(map(tuple, self.args[3])))
    definitions = property(lambda self: tuple(map(tuple, self.args[4])))
    sources = property(lambda self: tuple(self.args[5]))
    scramble = property(lambda self: self.args[6])

    @property
    def members(self) -> tuple[Expr, ...]:
        """What fixes the unknowns: equations, and both members of pairs."""
        return (*self.equations, *(m for pair in self.pairs for m in pair))

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """Everything that holds parameters."""
        return (*self.members, *(e for _, e in self.definitions))

    @property
    def unheard(self) -> tuple[LawSymbol, ...]:
        """The fields that the unknowns do not hear; none where all are so."""
        found = tuple(f for f in self.fields if not any(e.has(f) for e in self.members))
        return found if len(found) < len(self.fields) else ()

    @property
    def aside(self) -> set[LawSymbol]:
        """The fields that the unknowns do not hear, and what is defined by these alone."""
        found = set(self.unheard)
        for x, e in self.definitions if found else ():
            if e.atoms(LawSymbol) <= found | set(self.sources):
                found.add(x)
        return found

    @property
    def free_symbols(self) -> set[Any]:
        """The parameters."""
        return {s for s in super().free_symbols if not isinstance(s, LawSymbol)}


class NumberedAverage(GaussianAverage):
    """An average over several quantities, evaluated by code of its own; its first argument is what is averaged.

    Names are replaced in all of it: what it binds is of a type of its own.
    """

    is_commutative = True
    is_real = True
    func = property(type)
    body = property(lambda self: self.args[0])
    breaks = property(lambda _self: [])  # it is not an average over one variable
    title = "Averages over several quantities"

    # -- what each kind of average says of itself ------------------------------------------------------

    @property
    def parts(self) -> tuple[Any, ...]:
        """The expressions that the value depends on, with what is bound in them."""
        return self.args

    def binds(self, leaf: Any) -> bool:
        """Whether a symbol is bound here."""
        return leaf in self.bound_symbols

    @property
    def has_many_digits(self) -> bool:
        """Whether it can be evaluated beyond double precision."""
        return False

    @property
    def precision(self) -> tuple[str, str]:
        """Which averages are taken in double precision, and the digits of the others."""
        return f"{self.title[0].lower()}{self.title[1:]}", "dps <= 15"

    @property
    def is_sampled(self) -> bool:
        """Whether the value carries a statistical error."""
        return False

    def scramble(self, number: int) -> dict[Any, Any]:  # noqa: ARG002 - most averages are not sampled
        """What to replace for the average over one of the independent sets of samples only."""
        return {}

    def _xreplace(self, rule: Any) -> tuple[Any, bool]:
        return Basic._xreplace(self, rule)  # noqa: SLF001 - nothing is bound by a name

    def _eval_subs(self, old: Any, new: Any) -> Any:
        return self.xreplace({old: new})

    def doit(self, **_hints: Any) -> Expr:
        """No closed form is looked for."""
        return self

    def _eval_evalf(self, _prec: int) -> None:
        return None

    def _eval_derivative(self, s: Symbol) -> Expr:
        return S.Zero if s not in self.free_symbols else Derivative(self, s, evaluate=False)

    def _eval_is_extended_real(self) -> bool | None:
        return True

    def _eval_is_extended_nonnegative(self) -> bool | None:
        return self.body.is_nonnegative


def one_set(exprs: Iterable[Expr], number: int) -> dict[Any, Any]:
    """The replacements that average expressions over one of the independent sets of samples only."""
    sampled = {node for e in exprs for node in e.atoms(NumberedAverage) if node.is_sampled}
    return dict(pair for node in sampled for pair in node.scramble(number).items())


class JointAverage(NumberedAverage):
    """The average ``<body>`` over Gaussian fields of zero mean, of unknowns that a joint law fixes.

    Parameters
    ----------
    body : Expr
        In the symbols of the law, responses among them (:func:`slope`), and parameters.
    law : JointLaw
    covariance : sequence of Expr
        Of the fields: the lower triangle, row by row.
    """

    def __new__(cls, body: Any, law: JointLaw, covariance: Sequence[Any]) -> Expr:
        """Return the average; what holds no symbol of the law is its own average."""
        body = as_sympy(body)
        return Expr.__new__(cls, body, law, Tuple(*covariance)) if body.has(LawSymbol) else body

    law = property(lambda self: self.args[1])
    covariance = property(lambda self: tuple(self.args[2]))
    title = "Averages over several fields"
    parts = property(lambda self: (self.body, *self.law.expressions, *self.covariance))
    is_sampled = property(lambda self: self.way == SAMPLES)

    def binds(self, leaf: Any) -> bool:
        """Whether it is a symbol of a law."""
        return isinstance(leaf, LawSymbol)

    @property
    def precision(self) -> tuple[str, str]:
        """Which averages are taken in double precision, and the digits of the others."""
        return f"averages over a law of {len(self.law.unknowns)} states that are solved together", "dps <= 15"

    def scramble(self, number: int) -> dict[Any, Any]:
        """What to replace for the average over one of the independent sets of samples only."""
        return {SCRAMBLE: Integer(number)}

    @property
    def way(self) -> str:
        """How it is taken: on the nodes of a rule, along rays where there are kinks, or over samples, of rays too."""
        return _way(self.body, self.law)

    @property
    def free_symbols(self) -> set[Any]:
        """The symbols that the value depends on."""
        found = self.body.free_symbols.union(self.law.free_symbols, *(c.free_symbols for c in self.covariance))
        return {s for s in found if not isinstance(s, LawSymbol)}

    @property
    def bound_symbols(self) -> list[Symbol]:
        """The symbols of the law."""
        return sorted(self.body.atoms(LawSymbol) | self.law.atoms(LawSymbol), key=str)

    def _sympystr(self, printer: Any) -> str:
        return f"<{printer.doprint(self.body)}>({', '.join(f.name for f in self.law.fields)})"

    @property
    def letter(self) -> Symbol:
        """The letter of the fields, without the index of a site."""
        found = re.match(r"\\(eta|omega|chi|psi)(?![a-z])", self.law.fields[0].tex)
        return Symbol(found[1] if found else "eta")

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        tex = f"\\left\\langle {printer.doprint(self.body)} \\right\\rangle_{{{printer.doprint(self.letter)}}}"
        return raised(tex, exp)


@lru_cache(maxsize=4096)
def _way(body: Expr, law: JointLaw) -> str:
    aside = law.aside
    bent = law.pairs or _kinked(law) or _kinked(body, aside)
    if bent or (_kinked(body) and len(law.unheard) > MOST_BESIDE):
        return RAYS if len(law.fields) <= MOST_KINKED else SAMPLES
    beside = len(law.unheard) if len(law.unheard) <= MOST_BESIDE else 0
    return RULE if len(law.fields) - beside <= MOST_RULED else SAMPLES


def _kinked(expr: Basic, aside: AbstractSet[LawSymbol] = frozenset()) -> bool:
    """Whether an expression has kinks in the quantities of a law, other than those in what only is beside it."""
    return any(k.atoms(LawSymbol) - aside for k in expr.atoms(*KINKS))
