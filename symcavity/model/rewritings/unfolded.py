"""Sums of functions by cases, which SymPy writes as one function of all their cases, taken apart again.

``Sum(f(h) + f(g), (mu, 1, P))`` with a function f by cases has, within the sum, one case for each pair of cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from sympy import Add, Expr, Piecewise, S, expand_mul
from sympy.core.relational import Relational
from sympy.logic.boolalg import Boolean

MOST_TESTS = 8  # of which each choice is looked at

Choice = dict[Boolean, Boolean]


def unfolded(body: Expr, moving: Sequence[Expr]) -> Expr:
    """Return a body with one function by cases for each group of variables that are tested together.

    Parameters
    ----------
    body : Expr
        What is summed over sites.
    moving : sequence of Expr
        All that varies in it.
    """
    nodes = sorted(body.atoms(Piecewise), key=str)
    apart = {node: _apart(node, moving) for node in nodes}
    if all(a == b for a, b in apart.items()):
        return body
    return Add(*(expand_mul(term, deep=False) for term in Add.make_args(body.xreplace(apart))))


def _apart(node: Piecewise, moving: Sequence[Expr]) -> Expr:
    tests = sorted({r for _, test in node.args for r in test.atoms(Relational)}, key=str)
    groups = _groups(tests, moving)
    if len(groups) < 2 or len(tests) > MOST_TESTS or any(not t.has(*moving) for t in tests):
        return node
    kept = [{t: S.false for other in groups if other is not group for t in other[1]} for group in groups]
    alone = [node.xreplace(rule) for rule in kept]
    if not all(isinstance(one, Piecewise) for one in alone):
        return node
    parts = [_own(one, felt) for one, (felt, _) in zip(alone, groups, strict=True)]
    nowhere = dict.fromkeys(tests, S.false)
    found = Add(*parts, (node.xreplace(nowhere) - Add(*(p.xreplace(nowhere) for p in parts))).expand())
    choices = (_choice(tests, row) for row in product((S.true, S.false), repeat=len(tests)))
    return found if all(_alike(node, found, choice) for choice in choices) else node


def _groups(tests: Sequence[Relational], moving: Sequence[Expr]) -> list[tuple[set[Expr], list[Relational]]]:
    """Tests that hold the same variables, or are connected by others, with these variables."""
    groups: list[tuple[set[Expr], list[Relational]]] = []
    for test in tests:
        felt, own = {m for m in moving if test.has(m)}, [test]
        for group in [g for g in groups if g[0] & felt]:
            groups.remove(group)
            felt, own = felt | group[0], [*group[1], *own]
        groups.append((felt, own))
    return groups


def _own(alone: Piecewise, felt: set[Expr]) -> Expr:
    """The terms of each case that hold variables of a group, and what else changes from case to case.

    That is zero in a case without such terms, or in the first one: cases of one function come out as they were written.
    """
    inner = [Add(*(t for t in Add.make_args(value) if t.has(*felt))) for value, _ in alone.args]
    beside = [value - own for (value, _), own in zip(alone.args, inner, strict=True)]
    base = beside[inner.index(0) if 0 in inner else 0]
    return Piecewise(*((a + (b - base), test) for a, b, (_, test) in zip(inner, beside, alone.args, strict=True)))


def _choice(tests: Sequence[Relational], row: Sequence[Boolean]) -> Choice:
    return dict(zip(tests, row, strict=True))


def _alike(node: Expr, found: Expr, choice: Choice) -> bool:
    """Whether two expressions are one where tests are answered; a choice that neither knows does not count."""
    first, other = node.xreplace(choice), found.xreplace(choice)
    if first.has(S.NaN) or other.has(S.NaN):
        return first.has(S.NaN) and other.has(S.NaN)
    return bool((first - other).expand() == 0)


def one_by_one(body: Expr) -> list[Expr]:
    """The terms of a body, to be summed each for itself where several have cases."""
    cased = [t for t in Add.make_args(body) if t.has(Piecewise)]
    plain = Add(*(t for t in Add.make_args(body) if t not in cased))
    return [body] if len(cased) < 2 else [*cased, *([plain] if plain != 0 else [])]
