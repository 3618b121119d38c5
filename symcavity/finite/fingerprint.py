"""What the rows of a sweep depend on, written so that equal texts mean equal rows, in every process."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from sympy import Add, Basic, Dummy, Float, Mul, Symbol
from sympy.core.operations import LatticeOp
from sympy.logic.boolalg import BooleanFunction
from sympy.sets.sets import Set

from symcavity.model.atoms import DataAtom
from symcavity.model.system import System
from symcavity.shapes.base import Shape

FORMAT = 1
_SHORT, _PROBES = 60, 8
_UNORDERED = (Add, Mul, LatticeOp, BooleanFunction, Set)


def exact_text(value: Any) -> str:
    """Write a value such that different numbers have different texts, and equal ones of one type the same.

    Parameters
    ----------
    value : object
        A number, a SymPy expression, an array, a mapping, a shape, a system.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str | complex):
        return value if isinstance(value, str) else repr(value)
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, System):
        return exact_text([*value.laws.values(), value.global_conditions, value.fixed])
    if isinstance(value, Shape):
        return _shape(value)
    if isinstance(value, Basic):
        return _expression(value)
    if isinstance(value, Mapping):
        pairs = sorted((exact_text(k), exact_text(v)) for k, v in value.items())
        return "{" + ", ".join(f"{k}: {v}" for k, v in pairs) + "}"
    if isinstance(value, Iterable):
        return "[" + ", ".join(exact_text(v) for v in value) + "]"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return type(value).__name__ + exact_text(parts)
    if hasattr(value, "_mpf_"):
        return f"mpf{value._mpf_}"
    return str(value)


def _expression(value: Basic) -> str:
    """SymPy's own ``srepr`` leaves out what our atoms hold, and orders some arguments by hash."""
    if isinstance(value, DataAtom):
        return type(value).__name__ + exact_text(list(value._data))  # noqa: SLF001 - what identifies it
    if isinstance(value, Symbol):
        given = {} if isinstance(value, Dummy) else {k: v for k, v in value.assumptions0.items() if v}
        return f"{type(value).__name__}({value.name}{''.join(f', {k}' for k in sorted(given))})"
    if isinstance(value, Float):
        return repr(float(value)) if value._prec == 53 else f"Float{value._mpf_}"  # noqa: SLF001
    if not value.args:
        return str(value)
    parts = [exact_text(a) for a in value.args]
    return f"{type(value).__name__}({', '.join(sorted(parts) if isinstance(value, _UNORDERED) else parts)})"


def _array(value: np.ndarray) -> str:
    if value.dtype == object or value.size <= _PROBES:
        return exact_text(value.tolist())
    return f"{'x'.join(map(str, value.shape))} numbers {digest(value.astype(float).tobytes())}"


def _shape(shape: Shape) -> str:
    """A shape by its name, and by its support function in some directions."""
    directions = np.random.default_rng(0).standard_normal((_PROBES, shape.dimension))
    values = ", ".join(f"{v:.7e}" for v in shape.support(directions))
    return f"{shape!r} {digest(values.encode())}"


def digest(data: bytes) -> str:
    """Return a short name for bytes."""
    return hashlib.sha256(data).hexdigest()[:12]


def _brief(value: Any) -> str:
    """A text that a reader can compare, or where it is too long its digest."""
    text = exact_text(value) if not isinstance(value, Symbol) else str(value)
    return text if len(text) <= _SHORT else digest(text.encode())


def _law(couplings: str | Callable[..., Any]) -> str:
    """A law of couplings by its name, and for a function by what it draws."""
    if isinstance(couplings, str):
        return couplings
    drawn = np.asarray(couplings(np.random.default_rng(0), (_PROBES, _PROBES)), dtype=float)
    return f"{getattr(couplings, '__qualname__', type(couplings).__name__)} {digest(drawn.tobytes())}"


def fingerprint(
    system: System, values: Mapping[Any, Any], *, couplings: str | Callable[..., Any] = "", **parts: Any
) -> str:
    """Name everything that the rows of a sweep depend on and that is not in the rows themselves.

    Parameters
    ----------
    system : System
        The declaration.
    values : mapping
        What is the same at all points.
    couplings : str or callable, optional
        The law of the couplings.
    **parts
        What else there is: the method, the digits.
    """
    declared = f"{system.name} {digest(exact_text(system).encode())}".strip()
    named = {"format": FORMAT, "declaration": declared, **parts}
    named |= {str(k): _brief(v) for k, v in sorted(values.items(), key=lambda item: str(item[0]))}
    named |= {"couplings": _law(couplings)} if couplings else {}
    return "; ".join(f"{k} = {' '.join(_brief(v).split())}" for k, v in named.items())
