"""What commands print as JSON, what ``show`` says of a declaration, and pages that end well without a figure."""

import argparse
import json

import pytest

from symcavity import UnsupportedLaw, alpha
from symcavity.cli import main
from symcavity.commands.parser import build_parser
from symcavity.derivations import gardner
from symcavity.record.derivation import Checked, Step, Verdict, Verification
from symcavity.writing.text import verification_text


def printed(capsys, *words):
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_show_says_what_takes_values_and_where_a_declaration_stands(capsys):
    found = printed(capsys, "show", "sparse_regression")
    assert found["values"] == ["C", "alpha", "noise", "s", "size"]
    assert found["path"].endswith("sparse_regression.py")
    assert "minimize" in found["declaration"]
    assert main(["show", "gardner"]) == 0
    out = capsys.readouterr().out
    assert "values         kappa, alpha" in out
    assert "average(w[i]**2) = kappa**(-2)" in out
    assert " ".join(out.split()).count("two without a margin") == 1
    assert found["says"].startswith("The absolute penalty drops weights")


def test_list_as_data(capsys):
    rows = printed(capsys, "list")
    assert {"name", "words"} == set(rows[0])
    assert "gardner" in [row["name"] for row in rows]


def test_simulations_sweeps_and_studies_as_data(capsys):
    found = printed(capsys, "simulate", "gardner", "alpha=1/2", "--N", "20", "--seeds", "2")
    assert {"observable", "theory", "simulation", "stderr", "z", "note"} == set(found["rows"][0])
    rows = printed(capsys, "sweep", "gardner", "kappa=1/2:1:2", "--show", "average(w[i])")
    assert set(rows[0]) == {"point", "kappa", "alpha", "average(w[i])", "residual"}  # and no other column
    found = printed(capsys, "sensitivity", "gardner", "kappa=1", "--of", "alpha", "--by", "kappa", "--dps", "20")
    assert found["derivative"].startswith("-0.58489350956361707")


def test_checks_as_data(capsys):
    found = printed(capsys, "check", "least_variance_portfolio")
    assert found["ok"]
    assert all(w["ok"] for step in found["steps"] for w in step["witnesses"])


def test_a_grid_names_the_command_that_takes_it(capsys):
    assert main(["solve", "gardner", "kappa=0:3:5"]) == 2
    assert "symcavity sweep" in capsys.readouterr().err


def test_few_digits_are_told_apart():
    step = Step("a", "stationarity", (gardner.problem.cavity().equations[0],))
    few = Checked(step, (Verdict("quadrature to 24 digits", True, "", 24), Verdict("quadrature", True, "", 2)))
    many = Checked(step, (Verdict("symbolic", True),))
    assert (few.digits, many.digits) == (2, None)
    lines = verification_text(Verification((few, many))).splitlines()
    assert "2 digits" in lines[2]
    assert " ok " in lines[3]


def test_a_figure_that_fails_says_why_and_the_page_ends_well(tmp_path, monkeypatch, capsys):
    from symcavity.commands import reporting

    def refused(_simulation, quantity, *, bins, **_options):
        raise UnsupportedLaw(f"no density of {quantity} in {bins} bins")

    monkeypatch.setattr(reporting, "plot_distribution", refused)
    monkeypatch.setattr(reporting, "_typeset", lambda _folder: None)
    words = ["report", "gardner", "alpha=1/2", "-o", str(tmp_path / "out"), "--N", "20", "--seeds", "2", "--dps", "15"]
    assert main([*words, "--json"]) == 0
    assert "no density of w[i] in 30 bins" in (tmp_path / "out" / "report.html").read_text()
    shown = capsys.readouterr()
    assert "distribution.w" in shown.err
    found = json.loads(shown.out)
    assert found["verified"]
    assert "report.html" in found["files"]


def test_an_instance_is_a_row():
    pandas = pytest.importorskip("pandas")
    frame = gardner.problem.simulate({alpha: 0.5}, N=20, seeds=3).to_pandas(["average(w[i]**2)"])
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["seed"]) == [0, 1, 2]
    assert frame["average(w[i]**2)"].notna().all()
    grid = pandas.DataFrame({"kappa": [0.5, 1.0]}).to_dict("records")
    assert len(gardner.problem.cavity().sweep(grid)) == 2


def test_parameters_of_functions_and_studies_have_names():
    theory = gardner.problem.cavity()
    kappa = gardner.kappa
    assert theory.function("alpha", "kappa")(1.0) == theory.function(alpha, kappa)(1.0)
    assert theory.sensitivity("alpha", "kappa", {"kappa": 1}) == theory.sensitivity(alpha, kappa, {kappa: 1})
    with pytest.raises(ValueError, match="feasibility"):
        theory.boundary("feasible", {alpha: (1, 2)})


def test_sizes_may_stand_among_the_values():
    with pytest.raises(ValueError, match="number of features"):
        gardner.problem.simulate({alpha: 0.5})


def test_every_command_that_answers_gives_data():
    choices = next(a.choices for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))
    plain = {name for name, command in choices.items() if "--json" not in command._option_string_actions}
    assert plain == set()
