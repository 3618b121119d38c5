"""What people do with a theory next, for every system of the gallery: messages, derivatives, records for machines."""

import json
import sys
from contextlib import suppress
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from gallery_shared import NAMES, module, solution, theory
from sympy import Rational
from typed_out import LEAST, Typed

from symcavity import Derivation, N, alpha
from symcavity.errors import NotConverged, UnsupportedLaw
from symcavity.loading import system_of
from symcavity.model.quantities import Quenched
from symcavity.study.sensitivity import slope
from symcavity.witness.judge import judge
from symcavity.writing.exchange import schema

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))
from gallery_of_derivations import DAMPED, MARGINAL

VALIDATOR = jsonschema.validators.validator_for(schema())(schema())
QUICK = ("stationarity", "insert", "self_coupling", "messages", "state_evolution")  # others take seconds


def run_of(name):
    values = {key: value for key, value in module(name).values.items() if key != N}
    sizes = [len(v) for k, v in values.items() if isinstance(k, Quenched) and isinstance(v, list | tuple)]
    size = module(name).values.get(N, sizes[0] if sizes else 60)
    damping = 0.5 if name in DAMPED else 0.0
    return module(name).problem.message_passing(values, N=size, seeds=2, steps=400, damping=damping)


WEIGHED = [name for name in NAMES if system_of(module(name).problem).weights]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WEIGHED])
def test_what_is_at_rest_is_a_minimum_of_what_was_typed(name):
    """Constraints and equations as they were typed hold, and no variable can be moved to a lower value of the declared
    Lagrangian. Where the stability is one nothing comes to rest, and the pages of the gallery say so."""
    if name in MARGINAL:
        assert float(solution(name).stability) == pytest.approx(1, abs=1e-7)
        with suppress(NotConverged):
            assert not run_of(name).converged
        return
    run = run_of(name)
    number = next(k for k, sample in enumerate(run.simulation.samples) if sample.feasible)
    typed = Typed(module(name).problem, run, number)
    assert typed.worst() < 1e-8
    assert typed.record is None or typed.lowered() < LEAST
    for state in typed.primal:  # and it would be seen: every state matters
        kept = typed.states[state].copy()
        typed.states[state] = np.array(kept + 1e-5 * np.cos(np.arange(kept.size).reshape(kept.shape)) * (1 + abs(kept)))
        assert typed.worst() > 1e-8 or typed.lowered() > LEAST, state
        typed.states[state] = kept


JUMPING = (  # the lower of two minima
    *("associative_memory", "best_subset", "bidirectional_memory", "binary_margin", "fewest_errors"),
    "projection_memory",
)


@pytest.mark.parametrize("name", WEIGHED)
def test_messages_of_a_measure_rest_at_the_averages_of_the_theory(name):
    """Within four standard errors, or the refusal gives the reason."""
    values = {key: value for key, value in module(name).values.items() if key != N}
    if name in JUMPING:
        with pytest.raises(UnsupportedLaw, match="its message jumps"):
            module(name).problem.message_passing(values, N=60)
        return
    run = module(name).problem.message_passing(values, N=500, seeds=12, steps=400)
    assert run.converged
    for observable in module(name).shown:
        last = run[observable][-1]
        assert last.mean == pytest.approx(float(solution(name)[observable]), rel=1e-6, abs=4 * last.stderr)


@pytest.mark.filterwarnings("ignore::symcavity.UnstableSolution", "ignore::symcavity.NegativeEntropy")
@pytest.mark.parametrize("name", NAMES)
def test_derivatives_are_limits_of_differences(name):
    """In the load where it is given, else in the first parameter: two solutions nearby."""
    values, observable = module(name).values, module(name).shown[0]
    numbers = (k for k, v in values.items() if isinstance(v, int | str | Rational) and not k.is_integer)
    parameter = alpha if alpha in values else next(numbers)
    near = {s: float(v) for s, v in solution(name).values.items()}
    ends = [float(values[parameter]) * (1 + way * 1e-4) for way in (1, -1)]
    up, down = (float(theory(name).solve({**values, parameter: e}, guess=near)[observable]) for e in ends)
    found = float(slope(solution(name), observable, parameter))
    size = 1 + abs(float(solution(name)[observable]))
    assert found == pytest.approx((up - down) / (ends[0] - ends[1]), rel=1e-5, abs=1e-6 * size)


@pytest.mark.parametrize("name", NAMES)
def test_records(name):
    """JSON and back: the same record, which witnesses confirm. Messages are in every record but of states that jump."""
    derivation = theory(name).derivation
    text = derivation.to_json(verify=False)
    VALIDATOR.validate(json.loads(text))
    back = Derivation.from_json(text)
    assert back.to_json(verify=False) == text
    passed = set() if name in JUMPING else {"messages", "state_evolution"}
    assert {s.rule for s in back if s.section == "Message passing"} == passed
    for step in back:
        if step.rule in QUICK:
            assert all(v.ok for v in judge(step, 15)), step.key
