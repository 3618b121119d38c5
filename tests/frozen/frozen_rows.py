"""What the package answers, by row: type of outcome, values, evidence, texts and verdicts; written once, checked later.

A refactoring is compared with these rows.  Nothing here says that an answer is right: other tests do.  A row that
was wrong is written anew, and the changelog names it::

    python tests/frozen/frozen_rows.py --check              # every row; status 1 if one differs
    python tests/frozen/frozen_rows.py --check gardner      # rows whose names contain a text
    python tests/frozen/frozen_rows.py --write NAME...      # write those rows anew ("solve": all of that kind)

Kinds of rows: ``solve`` (systems of the gallery at and around the values at which they are shown), ``digits`` (40
digits there), ``fuzz`` (random declarations), ``text`` (a hash of each paragraph, for both methods) and ``verdict``
(what ``verify`` says of each step).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
import warnings
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "fuzz"))

import mpmath  # noqa: E402 - the fuzzer's files are found through the line above
from fuzz_grammar import generate  # noqa: E402
from fuzz_judge import TooSlow, _time_limit  # noqa: E402
from sympy import S  # noqa: E402

import symcavity  # noqa: E402
from symcavity.errors import SymcavityError  # noqa: E402

FILE = HERE / "frozen.json"
FILES = sorted((HERE.parents[1] / "derivations").glob("[a-z]*.py"))
NAMES = [f.stem for f in FILES if "\nuntil" not in f.read_text(encoding="utf-8")]  # states that move have no solution
METHODS = ("cavity", "naive")
FACTORS = ("1", "1/2", "2", "6/5")
SEED, CASES = 20, 120
LIMIT = {"solve": 40, "digits": 60, "fuzz": 100, "text": 120, "verdict": 120}  # CPU seconds of one row
AGREE = {"solve": 1e-8, "fuzz": 1e-7, "digits": 1e-36}


@cache
def _system(name: str) -> Any:
    return import_module(f"symcavity.derivations.{name}")


@cache
def _theory(name: str, method: str = "cavity") -> Any:
    return getattr(_system(name).problem, method)()


def names() -> Iterator[str]:
    """The names of all rows, those of one system beside each other."""
    for name in NAMES:
        values = getattr(_system(name), "values", None)
        if values is not None:
            scaled = [k for k, v in values.items() if _is_number(v)]
            yield f"solve {name}"
            yield from (f"solve {name} {key} * {f}" for key in scaled for f in FACTORS[1:])
            yield f"digits {name}"
        yield from (f"text {name} {method}" for method in METHODS)
        yield f"verdict {name}"
    yield from (f"fuzz {number}" for number in range(CASES))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool) and S(value).is_number  # typed in this tree


def computed(row: str) -> dict[str, Any]:
    """The outcome of a row, with the processor time that it took."""
    kind, name, *rest = row.split(" ")
    begin = time.process_time()
    try:
        with _time_limit(LIMIT[kind]), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = OUTCOMES[kind](name, *rest)
    except TooSlow:
        found = {"type": "too slow"}
    except SymcavityError as error:
        found = {"type": type(error).__name__}
        evidence = getattr(error, "evidence", None)
        if evidence is not None:
            found["evidence"] = type(evidence).__name__
    except Exception as error:  # noqa: BLE001 - a raw error is an outcome too
        found = {"type": f"raw {type(error).__name__}"}
    return found | {"seconds": round(time.process_time() - begin, 2)}


def _numbers(solution: Any, digits: int) -> dict[str, Any]:
    values = {str(s): mpmath.nstr(mpmath.mpmathify(v), digits, strip_zeros=False) for s, v in solution.values.items()}
    found: dict[str, Any] = {"type": "Solution", "values": dict(sorted(values.items()))}
    at_rest = sorted(map(str, getattr(solution, "at_rest", ())))
    return found | ({"at rest": at_rest} if at_rest else {})


def _solved(name: str, *scaled: str) -> dict[str, Any]:
    values = dict(_system(name).values)
    if scaled:
        key, _, factor = scaled
        (symbol,) = (k for k in values if str(k) == key)
        values[symbol] = S(values[symbol]) * S(factor)
    return _numbers(_theory(name).solve(values), 15)


def _digits(name: str) -> dict[str, Any]:
    with mpmath.workdps(45):
        return _numbers(_theory(name).solve(_system(name).values, dps=40), 40)


def _fuzzed(number: str) -> dict[str, Any]:
    space: dict[str, Any] = {}
    exec(generate(SEED, int(number)).source(), space)  # noqa: S102 - text that the grammar wrote
    return _numbers(space["problem"].cavity().solve(space["values"], dps=15), 15)


def _text(name: str, method: str) -> dict[str, Any]:
    text = _theory(name, method).derivation.to_text()
    parts = [hashlib.sha256(part.encode()).hexdigest()[:10] for part in text.split("\n\n")]
    return {"type": "text", "values": parts}


def _verdict(name: str) -> dict[str, Any]:
    rows = _theory(name).derivation.verify(dps=20)
    return {"type": "verdicts", "values": {r.step.key: [f"{v.kind} {v.ok}" for v in r.verdicts] for r in rows}}


OUTCOMES = {"solve": _solved, "digits": _digits, "fuzz": _fuzzed, "text": _text, "verdict": _verdict}


def difference(row: str, was: dict[str, Any], found: dict[str, Any]) -> str:
    """How an outcome differs from the frozen one, in words; nothing if it does not."""
    if was["type"] == "too slow":  # whatever comes now came sooner
        return ""
    for word in ("type", "evidence", "at rest"):
        if was.get(word) != found.get(word):
            return f"{word}: was {was.get(word)}, is {found.get(word)}"
    values, now = was.get("values"), found.get("values")
    kind = row.partition(" ")[0]
    if kind not in AGREE or values is None:
        return "" if values == now else _changed(values, now)
    if sorted(values) != sorted(now):
        return f"unknowns: were {sorted(values)}, are {sorted(now)}"
    with mpmath.workdps(50):
        pairs = {s: (mpmath.mpmathify(values[s]), mpmath.mpmathify(now[s])) for s in values}
        scale = max((abs(a) for a, _ in pairs.values() if mpmath.isfinite(a)), default=1)
        floor, shown = scale / 10**6, mpmath.nstr
        far = {s: p for s, p in pairs.items() if not _agree(*p, AGREE[kind], floor)}
        return "; ".join(f"{s}: was {shown(a, 17)}, is {shown(b, 17)}" for s, (a, b) in far.items())


def _agree(a: Any, b: Any, limit: float, floor: Any) -> bool:
    """Whether two numbers are alike, infinite ones included; what is small beside others may lose digits."""
    return bool(a == b or abs(a - b) <= limit * max(abs(a), floor))


def _changed(was: Any, now: Any) -> str:
    if isinstance(was, dict):
        keys = [k for k in {**was, **now} if was.get(k) != now.get(k)]
        return "; ".join(f"{k}: was {was.get(k)}, is {now.get(k)}" for k in keys)
    return f"{len(set(was) - set(now))} of {len(was)} paragraphs changed"


def frozen() -> dict[str, dict[str, Any]]:
    """The rows as they were written."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def main() -> int:
    """Write rows, or check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*", help="texts, of which a row's name contains one; every row without any")
    given = parser.parse_args()
    table, failed = frozen(), 0
    for row in names():
        if given.names and not any(text in row for text in given.names):
            continue
        found = computed(row)
        if given.write:
            table[row] = found
            lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in table.items())
            FILE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
        elif row in table and (text := difference(row, table[row], found)):
            failed += 1
            print(f"{row}: {text}", flush=True)
    print(f"{failed} rows differ" if given.check else f"{len(table)} rows, symcavity {symcavity.__version__}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
