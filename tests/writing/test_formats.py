"""What holds of every format in the table, so that a new one is tested by its entry."""

from importlib import import_module

import pytest

from symcavity.cli import main
from symcavity.derivations import gardner
from symcavity.errors import ValuesError
from symcavity.writing.formats import FORMATS


@pytest.fixture(scope="module")
def derivation():
    return gardner.problem.cavity().derivation


def check_format(one, derivation, folder):
    """A format writes text, the same each time, by its method and by its option, and shows no object by its address."""
    options = {"checked": None} if one.verified else {}
    text = one.write(derivation, **options)
    assert text == derivation.to(one.name, **options)
    assert text.strip()
    assert " object at 0x" not in text
    assert hasattr(derivation, f"to_{one.name}")
    file = folder / f"derivation.{one.name}"
    assert main(["derive", "gardner", f"--{one.name}", str(file), "--quiet"]) == 0
    written = file.read_text(encoding="utf-8")
    assert written == (text if not one.verified else derivation.to(one.name))


@pytest.mark.parametrize("name", FORMATS)
def test_every_format(name, derivation, tmp_path):
    check_format(FORMATS[name], derivation, tmp_path)


def test_an_unknown_format_is_refused(derivation):
    with pytest.raises(ValuesError, match="latex"):
        derivation.to("docx")


@pytest.mark.parametrize("name", ["text", "latex", "html"])
def test_a_paper_is_shorter_and_says_what_follows_likewise(name, derivation):
    full, brief = derivation.to(name), derivation.to(name, detail="paper")
    assert len(brief) < 0.9 * len(full)
    assert "inserted likewise" in " ".join(brief.split())
    assert "inserted likewise" not in full
    assert "Onsager" in full
    assert "Onsager" not in brief
    with pytest.raises(ValuesError, match="full, paper"):
        derivation.to(name, detail="short")


def test_every_claim_of_the_theory_stands_in_the_paper(derivation):
    from symcavity.writing.brief import ASIDE, BETWEEN, LATER, REPEATED, in_brief

    brief = in_brief(derivation)
    left = {step.key for step in derivation} - {step.key for step in brief}
    always = (LATER | REPEATED) - {"free_energy_slopes"}  # of Gibbs measures
    passing = {"elimination", "load", "response", "symmetry"}
    assert always <= {derivation[key].rule for key in left} <= always | ASIDE | BETWEEN | passing
    assert brief.results == derivation.results


@pytest.mark.parametrize("name", ["gardner", "logistic_teacher", "correlated_points"])
def test_a_paper_leaves_out_eliminations_only_where_there_are_closed_forms(name):
    from symcavity.writing.brief import in_brief

    full = import_module(f"symcavity.derivations.{name}").problem.cavity().derivation
    brief = in_brief(full)
    before, after = ([step for step in record if step.rule == "elimination"] for record in (full, brief))
    assert before
    assert [step.key for step in after] == ([] if name == "gardner" else [step.key for step in before])
    assert "begin{tabular}" not in full.to_latex(detail="paper")  # each is defined where it stands first


def test_a_paper_leaves_out_a_reduction_that_is_longer_than_what_it_replaces():
    full = import_module("symcavity.derivations.correlated_manifolds").problem.cavity().derivation
    assert any(step.rule == "result" for step in full)
    text = full.to_latex(detail="paper")
    assert "The theory is closed by equations" in text
    assert "elimination gives" not in text
    assert "The closed equations of the theory are" not in text  # they stand above
    assert "Gaussian, with mean zero and" in text
