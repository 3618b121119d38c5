"""Which members of complementary pairs may vanish together, against a linear program for each choice."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from sympy import Rational, Symbol, symbols

from symcavity.sites.choices import Choices

h = Symbol("h", real=True)


def hinges(thresholds):
    """The optimality conditions of ``Sum(Max(0, a - h))``: what a slack and a multiplier of each hinge obey."""
    equations, pairs, unknowns = [], [], [h]
    for k, threshold in enumerate(thresholds):
        t, force, rest = symbols(f"t_{k} lambda_{k} nu_{k}", real=True)
        equations.append(force + rest - 1)
        pairs += [(rest, t), (force, h + t - threshold)]
        unknowns += [t, force, rest]
    return equations, pairs, unknowns


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_hinges_in_one_field_have_twice_as_many_choices_as_hinges_and_one(count):
    equations, pairs, unknowns = hinges([Rational(k, 7) for k in range(count)])
    assert sum(1 for _ in Choices(equations, pairs, (), unknowns)) == 2 * count + 1


def test_hinges_at_one_place_meet_there():
    """Both are bent, or one of them is while the other is at either end of its force."""
    equations, pairs, unknowns = hinges([1, 1])
    assert sum(1 for _ in Choices(equations, pairs, (), unknowns)) == 9


@pytest.mark.parametrize("seed", range(12))
def test_no_choice_is_left_out_that_a_linear_program_meets(seed):
    rng = np.random.default_rng(seed)
    unknowns = symbols("x:3", real=True)
    rows = rng.integers(-2, 3, size=(8, 4))  # an equation, three pairs, a condition
    lines = [sum(int(a) * u for a, u in zip(row, unknowns, strict=False)) + int(row[3]) for row in rows]
    pairs = list(zip(lines[1:4], lines[4:7], strict=True))
    found = set(Choices([lines[0]], pairs, [lines[7]], unknowns))
    for picks in product((0, 1), repeat=3):
        zero = [0, *(1 + k + 3 * pick for k, pick in enumerate(picks))]
        rest = [*(1 + k + 3 * (1 - pick) for k, pick in enumerate(picks)), 7]
        answer = linprog(
            np.zeros(3), A_ub=-rows[rest, :3], b_ub=rows[rest, 3], A_eq=rows[zero, :3], b_eq=-rows[zero, 3],
            bounds=[(None, None)] * 3,
        )  # fmt: skip
        assert picks in found or answer.status == 2  # infeasible
    assert list(Choices([lines[0]], pairs, [lines[7]], unknowns)) == sorted(found)


def test_what_is_not_rational_is_not_compared():
    a = Symbol("a", positive=True)
    equations, pairs, unknowns = hinges([a, 2 * a])
    assert sum(1 for _ in Choices(equations, pairs, (), unknowns)) == 9
