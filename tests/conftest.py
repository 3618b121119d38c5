"""One thread of linear algebra for each test process, tiers of tests by what they cost, and LaTeX where there is one.

``python -m pytest -n 2`` runs the default tier: every test but those that ``durations.json`` records as dear.
``--dear`` runs those, ``--full`` all, and with them those that are marked as the whole of a sample.  Tests that are
marked as of the house, which a moved file breaks, run in the default tier at any cost.  ``--full --record`` writes
the costs of the tests that run, in seconds of the processor.  ``--record`` alone raises the costs of those tests of the
default tier that derive there what another test has derived before them in the full tier.
"""

import gc
import json
import os
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

SHARED = re.compile(r"symcavity\.derivations|gallery_shared|installed\(\)|paper_reading")  # what derives them

DURATIONS = Path(__file__).parent / "durations.json"
COSTS = {}  # seconds of the processor, by test
COLLECTED = set()  # names of the tests of whole files
DEAR = 0.25  # seconds of the processor; a dearer test belongs to the full tier, unless its file has no other
ROUGH = 0.05  # seconds below which nothing is recorded

gc.set_threshold(50_000, 20, 100)  # theories are remembered and never garbage: looking through them takes long


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Neighbours in one process, since they share theories, which every process derives for itself."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.option.dist == "load" else None


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="run the dear tests too")
    parser.addoption("--dear", action="store_true", help="run the dear tests alone")
    parser.addoption("--record", action="store_true", help="write what each test costs to tests/durations.json")


def pytest_configure(config):
    config.addinivalue_line("markers", "house: of the plan of files; runs in the default tier at any cost")
    config.addinivalue_line("markers", "whole: of a suite of which a sample runs in every tier; runs with --full")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Add what the test cost, with its fixtures and the processes that it started, to its last report."""
    item.begin = _seconds()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "teardown":
        report.user_properties.append(("seconds", _seconds() - item.begin))
    return report


def pytest_runtest_logreport(report):
    if report.when == "teardown":
        COSTS[report.nodeid] = dict(report.user_properties)["seconds"]


def pytest_sessionfinish(session):
    if session.config.option.record and not hasattr(session.config, "workerinput"):
        known = json.loads(DURATIONS.read_text(encoding="utf-8")) if DURATIONS.exists() else {}
        files = {name.partition("::")[0] for name in COLLECTED}
        known = {name: c for name, c in known.items() if name in COLLECTED or name.partition("::")[0] not in files}
        new = COSTS if session.config.option.full else {n: max(c, known.get(n, 0)) for n, c in COSTS.items()}
        costs = {name: round(cost, 2) for name, cost in (known | new).items() if cost > ROUGH}
        DURATIONS.write_text(json.dumps(dict(sorted(costs.items())), indent=0) + "\n", encoding="utf-8")


def _seconds():
    return sum(os.times()[:4])


def dear(names, costs):
    """The tests of the full tier, of all tests that were collected: by recorded cost, and never all of a file."""
    files = defaultdict(list)
    for name in names:
        files[name.partition("::")[0]].append(name)
    chosen = set()
    for members in files.values():
        above = [name for name in members if costs.get(name, 0) > DEAR]
        keep = min(above, key=lambda name: (costs[name], name)) if len(above) == len(members) else None
        chosen.update(name for name in above if name != keep)
    return chosen


def pytest_collection_modifyitems(config, items):
    """Leave dear tests to the full tier; those of installed derivations stand together and share theories."""
    asked = any("::" in argument for argument in config.args)  # a test that is named is run
    if not (asked or config.option.keyword or config.option.markexpr):
        COLLECTED.update(item.nodeid for item in items)
    if not (config.option.full or asked):
        sampled = [item for item in items if item.get_closest_marker("whole") is None]
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("whole")])
        items[:] = sampled
        names = [item.nodeid for item in items if item.get_closest_marker("house") is None]
        left = dear(names, json.loads(DURATIONS.read_text(encoding="utf-8")))
        left = {item.nodeid for item in items} - left if config.option.dear else left
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left])
        items[:] = [item for item in items if item.nodeid not in left]
    alone = {path for path in {item.path for item in items} if not SHARED.search(path.read_text(encoding="utf-8"))}
    items.sort(key=lambda item: item.path in alone)


@pytest.fixture
def typeset(tmp_path):
    """Typeset a source in ``tmp_path/paper.tex`` and give the log; a second pass resolves the references."""
    command = shutil.which("pdflatex")
    if command is None:
        pytest.skip("no TeX")

    def run(source, passes=1):
        (tmp_path / "paper.tex").write_text(source, encoding="utf-8")
        for left in reversed(range(passes)):
            draft = ["-draftmode"] if left else []  # no pages before the last pass
            done = subprocess.run(  # noqa: S603
                [command, *draft, "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
                cwd=tmp_path, capture_output=True, check=False, text=True, errors="replace",
            )  # fmt: skip
            assert done.returncode == 0, done.stdout[-3000:]
        return done.stdout

    return run
