"""Every displayed equation of the paper, held against the engine's own objects; the table that comes of it."""

import json
from importlib import import_module
from pathlib import Path

import paper_appendix  # noqa: F401 - its rows
import paper_kernel  # noqa: F401
import paper_manifolds  # noqa: F401
import paper_points  # noqa: F401
import pytest
from paper_reading import falsified, steps
from paper_rows import CORRECTED, DECLARED, DERIVED, NUMBERS, ROWS, VERIFIED

TABLE = Path(__file__).parents[2] / "derivations" / "paper.json"
MISSING = ()  # what the engine does not reach
ALSO = {  # a second place where an equation stands
    "gardner": {"datum.response": "54", "eliminate.alpha": "21", "naive.eliminate.alpha": "21"},
    "manifold": {"eliminate.alpha": "84", "naive.eliminate.alpha": "84"},
    "kernel_ridge": {},
    "kernel_ridge:from_coefficients": {},
}


@pytest.mark.parametrize("number", ROWS)
def test_equation(number):
    ROWS[number].check()


@pytest.mark.parametrize("number", [n for n, row in ROWS.items() if row.is_claim])
def test_a_false_transcription_is_seen(number):
    with pytest.raises(AssertionError):
        ROWS[number].check(off=1)


READ = [n for n, row in ROWS.items() if not row.is_claim and "same" in row.check.__code__.co_names]


@pytest.mark.parametrize("number", READ)
def test_a_false_transcription_in_a_function_is_seen(number):
    with falsified(), pytest.raises(AssertionError):
        ROWS[number].check()


def in_order():
    return [ROWS[number].data() for number in NUMBERS if number in ROWS]


def test_every_equation_has_a_row():
    assert [number for number in NUMBERS if number not in ROWS] == list(MISSING)
    assert {row.verdict for row in ROWS.values()} == {DERIVED, DECLARED, VERIFIED, CORRECTED}


def test_the_table_that_is_shown_is_the_one_that_was_checked():
    """``python tests/paper/write.py`` writes it anew."""
    assert json.loads(TABLE.read_text(encoding="utf-8"))["rows"] == in_order()


def numbers(text):
    """The equation numbers of a source, ``'7-9, A.1; what is said of them'``."""
    out = []
    for part in text.partition(";")[0].split(", "):
        first, _, last = part.partition("-")
        out += NUMBERS[NUMBERS.index(first) : NUMBERS.index(last or first) + 1]
    return out


@pytest.mark.parametrize("name", ALSO)
def test_sources_have_the_numbers_of_the_equations(name):
    module, _, thing = name.partition(":")
    source = getattr(import_module(f"symcavity.derivations.{module}"), thing or "problem").source
    places = {}
    for number, row in ROWS.items():
        for where, key in row.steps:
            method = "naive" if key.startswith("naive.") else "cavity"
            if where == name and key.removeprefix("naive.") in steps(module, method, thing or "problem"):
                places.setdefault(key, set()).add(number)
    for key, text in ALSO[name].items():
        places.setdefault(key, set()).update(numbers(text))
    written = {key: set(numbers(text)) for key, text in source.items()}
    for key, found in places.items():
        missing = found - written.get(key, set())
        assert not missing, f"{key} of {name} is equation {', '.join(sorted(missing))}"
    for key, found in written.items():
        wrong = found - places.get(key, set()) - ({"1", "4", "113", "119"} if key == "problem" else set())
        assert not wrong, f"{key} of {name} is not equation {', '.join(sorted(wrong))}"


def test_shared_steps_have_shared_numbers():
    hard, soft = (import_module(f"symcavity.derivations.{n}").problem.source for n in ("manifold", "soft_manifold"))
    assert all(set(numbers(text)) <= set(numbers(hard[key])) for key, text in soft.items())
