"""Warnings point at the line of the user that called the package."""

import warnings

from symcavity.derivations import associative_memory


def test_a_warning_names_the_file_of_the_caller():
    theory = associative_memory.problem.cavity()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        theory.solve(associative_memory.values)
    assert seen
    assert {warning.filename for warning in seen} == {__file__}
