"""Formulas of displays as lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sympy import Add, Dummy, Expr, Function, Mul, S, Sum, Symbol, count_ops, expand_mul
from sympy.core.relational import Relational

from symcavity.algebra.factors import factor
from symcavity.model.averages import Average
from symcavity.model.equations import Equation
from symcavity.model.quantities import Global
from symcavity.record.order_parameters import OrderParameter
from symcavity.record.symbols import AtStep
from symcavity.writing.abbreviate import repeats
from symcavity.writing.arranging import gathered
from symcavity.writing.energies import numerator
from symcavity.writing.lines import lines, relation_at, width
from symcavity.writing.nodes import Atom, Row, joined, words
from symcavity.writing.ordering import is_given, is_negative, speaks_of_sites
from symcavity.writing.printing import tree

_LEFT = 0.25  # the share of a line beyond which a left side stands above what follows, where that has several lines
PAGE, LINES = 64.0, 7  # a formula that is wider, or longer, than this is given in parts that have names
_SOME, _OFTEN = 4, 5  # a formula of more lines than these, one part of which stands in it more often, is so too
GAP = 4.6  # between formulas in one line
_PLAIN = 60  # operations of what is factored where that is shorter
_ASIDE, _ABREAST = 31.0, 58.0  # widths of an equation that may share a line, and of those that do


@dataclass(frozen=True)
class Line:
    """One line of a display: what stands before the relation, and the rest."""

    left: Row
    right: Row
    continued: bool = False


def aligned_lines(rows: Iterable[Any], limit: float) -> list[Line]:
    """Break what shares one number into lines that are aligned at the relation."""
    out: list[Line] = []
    for place, obj in enumerate(rows):
        row = row_of(obj)
        aligned = isinstance(obj, Equation | Relational | Row)
        cut = relation_at(row) if aligned else None
        if place and cut is not None:
            row = Row(row.items[cut:], row.spaced[cut:])
            cut = 0
        found = lines(row, limit)
        if cut and len(found) > 1 and width(_cut(row, 0, cut)) > _LEFT * limit:
            found, cut = [*lines(_cut(row, 0, cut), limit), *lines(_cut(row, cut, None), limit)], None
        elif cut and len(found) > 1:  # the lines that follow begin at the relation
            head, *rest = lines(_cut(row, cut, None), limit - width(_cut(row, 0, cut)))
            out += [Line(_cut(row, 0, cut), head), *(Line(Row(()), line, continued=True) for line in rest)]
            continue
        for number, line in enumerate(found):
            if number == 0 and cut is not None and len(line.items) > cut:
                out.append(Line(_cut(line, 0, cut), _cut(line, cut, None)))
            else:
                out.append(Line(Row(()), line, continued=number > 0))
    return out


def _cut(row: Row, start: int, stop: int | None) -> Row:
    return Row(row.items[start:stop], row.spaced[start:stop])


def fits(row: Row) -> bool:
    """Whether a formula may stand as it is."""
    found = lines(row, PAGE)
    long = len(found) > LINES or (len(found) > _SOME and repeats(row) > _OFTEN)
    return not long and all(width(line) <= 1.06 * PAGE for line in found)


def row_of(obj: Any) -> Row:
    """The tree of what stands in a display."""
    if isinstance(obj, Row):
        return obj
    if not isinstance(obj, tuple):
        row = tree(obj)
        if not isinstance(obj, Equation) or S.Zero not in (obj.lhs, obj.rhs):
            return row
        if form := solved(obj.difference):
            return tree(form)
        if obj.rhs == 0 and (isinstance(obj.lhs, Add | Sum) or width(row) > PAGE / 3):
            return tree(Equation(obj.rhs, obj.lhs))  # what is long, or adds up, stands on the side where lines end
        return row
    return joined((words(part) if isinstance(part, str) else fragment_tree(part) for part in obj), " ")


@lru_cache(maxsize=1024)
def solved(total: Expr) -> Equation | None:
    """What says that a sum vanishes, by what is known of it: one name, what is given, or two terms; a law stays."""
    sums = total.atoms(Sum)
    total = total.xreplace({part: -part.func(-part.function, *part.limits) for part in sums if is_negative(part)})
    total = numerator(total).primitive()[1]
    terms = Add.make_args(total)
    if len(terms) < 2 or speaks_of_sites(total.xreplace({part: Dummy() for part in total.atoms(Sum)})):
        return None
    names = [(name, term) for term in terms if (name := _alone(term, total - term)) is not None]
    if len(names) == 1 and not total.has(Sum):
        name, term = names[0]
        number, rest = (term - total).primitive()
        rest = min(rest, factor(rest), key=lambda form: form.count_ops()) if rest.count_ops() < _PLAIN else rest
        sign = -1 if rest.could_extract_minus_sign() else 1
        return Equation(name, sign * number * name / term * (sign * rest))
    if (form := _by_itself(terms)) is not None:
        return form
    bare = [term for term in terms if isinstance(term.as_coeff_Mul()[1], _UNKNOWN)]
    if len(bare) == 1 and len(terms) == 2 and (total - bare[0]).has(Function, Average):  # q = <f(q)>
        number, name = bare[0].as_coeff_Mul()
        return Equation(name, (bare[0] - total) / number)
    given = Add(*filter(is_given, terms))
    if given == 0 and len(terms) == 2 and width(tree(total)) <= PAGE / 2:
        given = max(terms, key=count_ops)
    rest = total - given
    turn = -1 if is_negative(rest) or (rest.is_Add and rest.could_extract_minus_sign()) else 1
    return Equation(turn * rest, -turn * given) if given != 0 and width(tree(rest)) <= PAGE / 2 else None


def _by_itself(terms: Sequence[Expr]) -> Equation | None:
    """A sum that vanishes by its one term without functions: a shared variable, or a positive moment, divided out."""
    plain = [term for term in terms if not term.has(Function)]
    bare = [term for term in plain if isinstance(term.as_coeff_Mul()[1], Global)]
    if len(bare) == 1 and len(plain) < len(terms):
        number, name = bare[0].as_coeff_Mul()
        return Equation(name, gathered(Add(*(-term / number for term in terms if term != bare[0]))))
    moments = [term for term in plain if isinstance(term, OrderParameter) and term.is_positive]
    if len(plain) == len(moments) == 1 and len(terms) > 2:
        others = (expand_mul(-term / moments[0], deep=False) for term in terms if term != moments[0])
        return Equation(S.One, gathered(Add(*others)))
    return None


_UNKNOWN = (Global, OrderParameter)


def _alone(term: Expr, others: Expr) -> Expr | None:
    """The name of a variable that a term is, but for parameters, and that does not stand in the others."""
    found = [f for f in Mul.make_args(term) if isinstance(f.args[0] if isinstance(f, AtStep) else f, _UNKNOWN)]
    rest = Mul(*(f for f in Mul.make_args(term) if f not in found))
    known = others.is_number or all(type(s) is Symbol for s in rest.free_symbols)
    return found[0] if len(found) == 1 and known and not others.free_symbols & found[0].free_symbols else None


def abreast(rows: Iterable[Any]) -> Row:
    """What is said side by side in one line, as one formula."""
    items: list[Any] = []
    spaced: list[bool] = []
    for obj in rows:
        row = row_of(obj)
        between = [Atom("punct", ",", ","), Atom("space", "   ", "\\qquad")] if items else []
        items += [*between, *row.items]
        spaced += [*(False for _ in between), *(row.blank(place) for place in range(len(row.items)))]
    return Row(tuple(items), tuple(spaced))


def chains_of(rows: Sequence[Any], pairs: bool = False) -> list[tuple[Any, ...]]:
    """Rows of one left-hand side; what vanishes has one with the next where rows come in pairs."""
    out: list[list[Any]] = []
    for row in rows:
        last = out[-1][-1] if out else None
        if not isinstance(row, Equation) or not isinstance(last, Equation) or row.lhs != last.lhs:
            out.append([row])
        elif row.lhs != 0 or (pairs and len(out[-1]) == 1):
            out[-1] += [row] if row != last else []
        else:
            out.append([row])
    return [tuple(chain) for chain in out]


def in_lines(chains: Iterable[tuple[Any, ...]]) -> list[tuple[tuple[Any, ...], bool]]:
    """Chains, and what is short enough to share a line with its neighbors, with whether it does."""
    out: list[tuple[list[Any], float]] = []
    for chain in chains:
        size = width(row_of(chain[0])) if len(chain) == 1 and isinstance(chain[0], Equation) else PAGE
        room = out[-1][1] + size + GAP if out else PAGE
        if size < _ASIDE and room < _ABREAST:
            out[-1] = ([*out[-1][0], *chain], room)
        else:
            out.append(([*chain], size if size < _ASIDE else PAGE))
    return [(tuple(some), size < PAGE and len(some) > 1) for some, size in out]


def fragment_tree(fragment: Any, inline: bool = False) -> Row:
    """Return the tree of a fragment that is mathematics."""
    return fragment if isinstance(fragment, Row) else tree(fragment, inline)
