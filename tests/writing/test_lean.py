"""Lean statements. No Lean is at hand here: the expressions are read back by a reader of this file, and held
against the claims in numbers; names, brackets and the shape of a theorem are checked. That Lean accepts the file is
not tested."""

import math
import random
import re

import pytest
from sympy import Sum, Symbol

from symcavity import phi
from symcavity.derivations import gardner, kernel_ridge, output_bias, soft_margin
from symcavity.model.kinds import SiteCount
from symcavity.model.quantities import SiteQuantity
from symcavity.writing.lean import lean

TOKEN = re.compile(r"∑|Real\.\w+|[\w']+|[()^*/+\-:,]|≠|=|→|ℝ|ℕ|<|≤")


class Reader:
    """A recursive-descent reader of real arithmetic as Lean writes it; it evaluates with given values."""

    def __init__(self, text, values):
        self.tokens, self.place, self.values = TOKEN.findall(text), 0, dict(values)
        assert "".join(self.tokens) == re.sub(r"\s", "", text)

    def peek(self):
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self, wanted=None):
        token = self.peek()
        assert wanted is None or token == wanted, (token, wanted)
        self.place += 1
        return token

    def total(self):
        value = self.product()
        while self.peek() == "+":
            self.take()
            value += self.product()
        return value

    def product(self):
        value = self.power()
        while self.peek() in ("*", "/"):
            value = value * self.power() if self.take() == "*" else value / self.power()
        return value

    def power(self):
        value = self.application()
        if self.peek() == "^":
            self.take()
            value **= self.application()
        return value

    def application(self):
        head = self.peek()
        if head == "∑":
            self.take()
            index = self.take()
            for token in (":", "Fin", "N", ","):
                self.take(token)
            start, out = self.place, 0
            for k in range(int(self.values["N"])):
                self.place, self.values[index] = start, k
                out += self.total()
            return out
        if head in ("Real.sqrt", "Real.exp", "Real.log", "abs", "max", "min", "phi") or callable(self.values.get(head)):
            self.take()
            count = {"phi": 2, "max": 2, "min": 2}.get(head, 1)
            args = [self.atom() for _ in range(count)]
            call = {"Real.sqrt": math.sqrt, "Real.exp": math.exp, "Real.log": math.log, "abs": abs}
            call |= {"max": max, "min": min, "phi": lambda n, k: float(phi(int(n), k))}
            return call.get(head, self.values.get(head))(*args)
        return self.atom()

    def atom(self):
        word = self.take()
        if word == "(":
            if self.peek() == "-":
                self.take()
                value = -self.total()
            else:
                value = self.total()
            if self.peek() == ":":
                self.take()
                self.take("ℝ")
            self.take(")")
            return value
        return float(word) if word.isdigit() else self.values[word]


@pytest.mark.parametrize("problem", [gardner.problem, soft_margin.problem, kernel_ridge.problem], ids=lambda p: p.name)
def test_statements_mean_what_the_claims_say(problem):
    derivation = problem.cavity().derivation
    rng = random.Random(1)  # noqa: S311
    claims = [c for s in derivation if s.rule in ("elimination", "result", "closed_system") for c in s.claims]
    assert claims
    for claim in claims:
        for side in (claim.lhs, claim.rhs):
            leaves = side.atoms(Symbol) - side.atoms(SiteCount)
            numbers = {s: rng.uniform(0.3, 1.5) * (-1 if s.is_negative else 1) for s in leaves}
            arrays = {q.family: [rng.uniform(0.3, 1.5) for _ in range(3)] for q in side.atoms(SiteQuantity)}
            values = {s.name: v for s, v in numbers.items()} | {"N": 3, "P": 5}
            values |= {q.name: (lambda k, row=row: row[int(k)]) for q, row in arrays.items()}
            reader = Reader(lean(side), values)
            found = reader.total()
            assert reader.place == len(reader.tokens)
            direct = side
            for total in sorted(side.atoms(Sum), key=str):
                own = total.atoms(SiteQuantity)
                terms = [total.function.xreplace({q: arrays[q.family][k] for q in own}) for k in range(3)]
                direct = direct.xreplace({total: sum(terms)})
            direct = direct.xreplace(numbers | {s: {"N": 3, "P": 5}[s.name] for s in direct.atoms(SiteCount)})
            assert found == pytest.approx(float(direct), rel=1e-9)


def test_a_theorem_has_its_hypotheses_and_no_unknown_names():
    source = gardner.problem.cavity().derivation.to_lean()
    assert source.count("(") == source.count(")")
    theorems = re.findall(r"^theorem (\w+)\n((?:    .*\n)+)  sorry$", source, flags=re.MULTILINE)
    assert len({key for key, _ in theorems}) == len(theorems) >= 8
    for _, body in theorems:
        declared = set(re.search(r"\(([\w' ]+) : ℝ\)", body).group(1).split())
        used = set(re.findall(r"[A-Za-z_][\w']*", re.sub(r"\((h\w*) :", "(", body)))
        assert used - declared <= {"Real", "sqrt", "phi", "by"}
        assert "(h_q_w : 0 < q_w)" in body
    alpha = dict(theorems)["eliminate_alpha"]
    assert ": alpha = (1 / (phi 2 kappa)) := by" in alpha
    assert "(hn_2 : (phi 2 kappa) ≠ 0)" in alpha
    assert "phi (n + 2) κ = κ * phi (n + 1) κ + (n + 1) * phi n κ" in source


def test_the_recurrence_that_is_stated_holds():
    for n in range(4):
        left, right = phi(n + 2, Symbol("k")), Symbol("k") * phi(n + 1, Symbol("k")) + (n + 1) * phi(n, Symbol("k"))
        assert float((left - right).subs("k", 0.7)) == pytest.approx(0, abs=1e-12)


def test_what_is_no_algebra_is_named():
    source = output_bias.problem.cavity().derivation.to_lean()
    assert "-- not stated: eliminate.S_w: Average is no plain algebra" in source
    assert "theorem eliminate_S_w" not in source
    assert "theorem eliminate_q_w" in source  # the averages of the closed equations are numbers
