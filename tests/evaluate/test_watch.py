"""A budget of time, and interruptions: whatever is stopped leaves nothing broken."""

import io
import sys
from importlib.util import find_spec
from runpy import run_path

import pytest
from sympy import Abs, Eq, Rational, Sum, Symbol, exp, log, tanh

from symcavity import ConvexProblem, Coupling, Feature, N, OutOfTime, P, System, ValuesError, alpha, average, i, mu
from symcavity.evaluate import watch
from symcavity.evaluate.averages.integrals import Pass

x, w = Coupling("x"), Feature("w")
gamma = Symbol("gamma", positive=True)
u = Sum(x[mu, i] * w[i], (i, 1, N))
values = {alpha: 2, gamma: Rational(1, 2)}


def logistic():
    return ConvexProblem(Sum(log(1 + exp(-u)), (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2).cavity()


def lasso():
    return ConvexProblem(Sum((1 - u) ** 2, (mu, 1, P)) / 2 + gamma * Sum(Abs(w[i]), (i, 1, N))).cavity()


def test_a_spent_budget_says_what_was_being_done(monkeypatch):
    """The clock stands still until digits are computed, and then goes on by a second with each look at it."""
    theory, clock, right = logistic(), [0.0], watch.Watch.tick

    def noted(self, stage):
        clock[0] += "digits of a root" in (stage or self.stage)
        right(self, stage)

    with monkeypatch.context() as patch:
        patch.setattr(watch.time, "monotonic", lambda: clock[0])
        patch.setattr(watch.Watch, "tick", noted)
        with pytest.raises(OutOfTime, match="digits of a root") as caught:
            theory.solve(values, dps=60, timeout=2)
    assert isinstance(caught.value, TimeoutError)
    assert theory.solve(values, dps=20, timeout=60)[average(w[i] ** 2)] > 0


def test_the_budget_is_looked_at_while_code_is_written(monkeypatch):
    """A softmax of three classes has sixty averages, each of which is compiled; no step of that is long.

    It is declared anew: a theory that was solved before, by whatever ran earlier, has its code.
    """
    declared = run_path(str(find_spec("symcavity.derivations.softmax").origin))
    theory, stages = declared["problem"].cavity(), []

    def note(_watch, stage):
        stages.append(stage)
        if stages.count("code for averages") == 3:
            raise OutOfTime("enough")

    monkeypatch.setattr(watch.Watch, "tick", note)
    with pytest.raises(OutOfTime, match="enough"):
        theory.solve(declared["values"])
    assert {"units", "state evolution", "code for the closed equations"} <= set(stages)


@pytest.mark.parametrize("wrong", [0, -1, "60"])
def test_a_timeout_is_a_number_of_seconds(wrong):
    with pytest.raises(ValuesError, match="timeout"):
        lasso().solve(values, timeout=wrong)


@pytest.mark.parametrize("make", [logistic, lasso])
@pytest.mark.parametrize("when", [1, 3, 8])
def test_an_interruption_leaves_the_theory_as_it_was(make, when, monkeypatch):
    wanted = make().solve(values, dps=25)
    theory, count = make(), 0

    def interrupt(_watch, _stage):
        nonlocal count
        count += 1
        if count == when:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(watch.Watch, "tick", interrupt)
        with pytest.raises(KeyboardInterrupt):
            theory.solve(values, dps=25)
    again = theory.solve(values, dps=25)
    assert again.values == wanted.values


def test_long_work_shows_on_a_terminal_only_how_far_it_is(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    shown = Terminal()
    monkeypatch.setattr(watch, "QUIET", 0.0)
    monkeypatch.setattr(watch, "OFTEN", 0.0)
    monkeypatch.setattr(sys, "stderr", shown)
    logistic().solve(values, dps=25)
    assert "digits of a root" in shown.getvalue()
    assert shown.getvalue().endswith(" \r")  # and takes it back
    quiet = io.StringIO()
    monkeypatch.setattr(sys, "stderr", quiet)
    logistic().solve(values, dps=25)
    assert not quiet.getvalue()


def test_nothing_is_averaged_once_the_budget_is_spent(monkeypatch):
    """A system with several roots to be looked for, and time that goes on by a second with each look at it."""
    spent, late = iter(range(10**6)), []
    monkeypatch.setattr(watch.time, "monotonic", lambda: next(spent))
    J, v = Coupling("J", between=(i, i)), Feature("v")
    j = Symbol("j", integer=True)
    theory = System([Eq(v[i], tanh(1 + gamma * Sum(J[i, j] * v[j], (j, 1, N))))]).cavity()
    run = Pass._finer_panels
    monkeypatch.setattr(Pass, "_finer_panels", lambda *args: late.append(next(spent)) or run(*args))
    for budget in (2, 10, 20):
        begin = next(spent)
        with pytest.raises(OutOfTime, match=f"budget of {budget} seconds"):
            theory.solve({gamma: Rational(1, 2)}, timeout=budget)
        assert max(late, default=begin) <= begin + budget + 4
