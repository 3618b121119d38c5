"""Random declarations: an error is one of ours, or the result is finite, and solves the equations."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from fuzz_grammar import generate
from fuzz_judge import FALSE, Checks, judge
from fuzz_shrink import shrink

SEED, COUNT, BLOCKS = 20, 200, 8
ROOT = Path(__file__).parents[2]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # an alarm inside of a finaliser
@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_random_declaration_violates_an_invariant(block):
    """A case that takes longer than its limit is left alone here: a long run finds it."""
    ends, false = Counter(), []
    for number in range(block, COUNT, BLOCKS):
        case = generate(SEED, number)
        outcome = judge(case, Checks(digits=number % 20 == 0, verify=number % 40 == 3, limit=1.0))
        ends[bool(case.spoiled), outcome.end] += 1
        false += [f"{number}: {f}\n{f.detail}\n{case.source()}" for f in outcome.findings if f.kind in FALSE]
    assert not false, "\n".join(false)
    assert ends[False, "solved"] > ends.total() / 3, ends


def test_a_case_is_a_function_of_its_seed():
    code = "from fuzz_grammar import generate; print([generate(3, n).source() for n in range(40)])"
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}

    def printed(seed):
        command = [sys.executable, "-c", code]
        ran = {**env, "PYTHONHASHSEED": seed}
        return subprocess.run(command, env=ran, capture_output=True, check=True, text=True).stdout  # noqa: S603

    first, second = printed("1"), printed("2")
    assert first == second
    assert first.count("problem = ") == 40


def test_what_is_found_is_made_small(monkeypatch):
    """A defect that stands in one word is shown by a program of that word."""
    import fuzz_judge

    def broken(_problem, *_):
        raise ZeroDivisionError

    checks = Checks(limit=20)
    cases = (generate(1, n) for n in range(99))
    case = next(c for c in cases if not (c.spoiled or c.system) and "Max" in c.source())
    monkeypatch.setattr("symcavity.face.ConvexProblem.cavity", broken)
    monkeypatch.setattr(fuzz_judge, "_place", lambda _: "here")
    (finding,) = judge(case, checks).findings
    assert finding.kind == "raw error"
    small = shrink(case, finding, checks, 20)
    assert len(small.parts["minimize"]) == 1
    assert len(small.source()) < len(case.source())
