"""Parameters off the real line: which values of a call are complex, as exact numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sympy import Expr, Float, I, Symbol

from symcavity.algebra.precision import mp
from symcavity.errors import UnsupportedLaw, ValuesError
from symcavity.evaluate.averages.compiler import to_mpf
from symcavity.evaluate.averages.integrals import LAWS
from symcavity.evaluate.given.checked_values import read_values
from symcavity.evaluate.given.reading import Vocabulary
from symcavity.evaluate.given.values import Given, Task
from symcavity.evaluate.numbers import exact_value
from symcavity.model.exact import is_random

HELD = 1  # what stands for a complex value while the others are read


def parts(value: Any) -> tuple[Any, Any] | None:
    """The real and the imaginary part of a number that is not real; None of all else."""
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value.item()
    if isinstance(value, complex | np.complexfloating):
        found = float(value.real), float(value.imag)
    elif isinstance(value, Expr):
        if not value.is_number or value.is_real is not False or is_random(value):
            return None
        found = value.as_real_imag()
    elif hasattr(value, "_mpc_"):
        found = mp.convert(value).real, mp.convert(value).imag
    else:
        return None
    return found if found[1] != 0 else None


def has_complex(values: Any) -> bool:
    """Whether any value of a call is off the real line."""
    return isinstance(values, Mapping) and any(parts(v) is not None for v in values.values())


def read_complex(task: Task, values: Mapping[Any, Any], dps: int) -> tuple[Given, tuple[Symbol, ...]]:
    """Read the values of a call some of which are complex; return them, and which parameters those belong to.

    Raises
    ------
    ValuesError
        As :func:`read_values`, and for complex numbers of what is no plain parameter.
    UnsupportedLaw
        If the law of a quenched parameter holds one.
    """
    words = Vocabulary(task.parameters, task.kinds, task.quenched)
    plain, found = dict(values), {}
    for key, value in values.items():
        if (pair := parts(value)) is None:
            continue
        target = words.key(key)
        if not (isinstance(target, Symbol) and target in task.parameters):
            raise ValuesError(f"The value of {key} is {value}.", "complex numbers for parameters; a real number")
        real, imaginary = (exact_value(part, str(target), dps) for part in pair)
        inexact = isinstance(real, float | Float) or isinstance(imaginary, float | Float)
        found[target] = complex(real, imaginary) if inexact else real + I * imaginary
        plain[key] = HELD
    for q in task.quenched:
        if isinstance(q.law, Expr) and q.law.free_symbols & set(found):
            raise UnsupportedLaw(f"The law of {q.name} has a parameter that is complex.", "real parameters of laws")
    given = read_values(task, plain, dps, tuple(found))
    return replace(given, exact={**given.exact, **found}), tuple(found)


def environment(given: Given, backend: str) -> dict[Any, Any]:
    """The values for compiled expressions of a backend; in mpmath at its present precision."""
    real = {k: v for k, v in given.exact.items() if parts(v) is None}
    out = replace(given, exact=real).environment(backend)
    for key, value in given.exact.items():
        if (pair := parts(value)) is not None:
            out[key] = complex(value) if backend == "numpy" else mp.mpc(*map(to_mpf, pair))
    return {LAWS: given.laws, **out}
