"""Sweeps: rows on disk as they finish, resumption, failures, executors that die."""

import csv
import importlib
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from declarations_simulated import VALUES, C, field, half_norm, hard, kappa, l, soft, uneven, w
from sympy import Max, Rational, Sum, Symbol

from symcavity.errors import ValuesError
from symcavity.face import ConvexProblem
from symcavity.finite.executors import BrokenExecutor, processes
from symcavity.finite.rows import RowFile
from symcavity.finite.sweep import sweep_simulation, sweep_theory
from symcavity.model.averages import average, response
from symcavity.model.kinds import N as SIZE
from symcavity.model.kinds import P, alpha, i, mu

GRID = {alpha: [0.5, 1.0], C: [1, 2]}
NORM = [average(w[i] ** 2), response(w)]


def small(**options):
    return sweep_simulation(soft, GRID, N=20, seeds=2, observables=NORM, **options)


def test_the_grid_is_swept_in_order():
    rows = small()
    assert len(rows) == 8
    assert [r["alpha"] for r in rows] == [0.5] * 4 + [1.0] * 4
    assert [r["seed"] for r in rows] == [0, 1] * 4
    assert all(r["stationarity"] < 1e-10 and r["feasible"] and r["P"] == 20 * r["alpha"] for r in rows)
    assert all(v > 0 for v in rows.column(NORM[0]))
    assert "average(w[i]**2)" in str(rows)


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_rows_are_written_and_resumed(tmp_path, name):
    path, calls = tmp_path / name, []
    first = small(file=path, progress=lambda *args: calls.append(args))
    assert [c[:2] for c in calls] == [(k, 8) for k in range(1, 9)]
    assert calls[-1][3] == 0
    lines = path.read_text().splitlines(keepends=True)
    header = 1 if name.endswith("csv") else 0
    path.write_text("".join(lines[: header + 3]) + lines[header + 3][:9])  # stopped in the middle of a row
    calls.clear()
    second = small(file=path, progress=lambda *args: calls.append(args))
    assert len(calls) == 5
    assert [r["point"] for r in second] == [r["point"] for r in first]
    for one, two in zip(first, second, strict=True):
        assert two["average(w[i]**2)"] == one["average(w[i]**2)"]
        assert two["feasible"] is True
    small(file=path, progress=lambda *args: calls.append(args))
    assert len(calls) == 5
    if header:
        with path.open(newline="") as handle:
            assert len(list(csv.DictReader(handle))) == 8
    else:
        assert len([json.loads(line) for line in path.read_text().splitlines()]) == 8


def test_failed_points_are_recorded_and_the_rest_goes_on(tmp_path):
    path = tmp_path / "rows.csv"
    grid = [{alpha: 1, C: 1}, {alpha: 1, C: -1}, {alpha: 2, C: 1}]
    rows = sweep_simulation(soft, grid, N=20, seeds=1, observables=NORM, file=path)
    assert [bool(r.get("error")) for r in rows] == [False, True, False]
    assert "positive" in rows.failed[0]["error"]
    assert "1 of 3 rows failed" in str(rows)
    calls = []
    again = sweep_simulation(
        soft,
        grid,
        N=20,
        seeds=1,
        observables=NORM,
        file=path,
        retry=True,
        progress=lambda *a: calls.append(a),
    )
    assert len(calls) == 1
    assert len(again) == 3
    assert "positive" in again.failed[0]["error"]


def test_infeasible_instances_are_rows():
    rows = sweep_simulation(hard, {alpha: [0.2, 4]}, N=20, seeds=2, observables=NORM)
    assert rows.column("feasible") == [True, True, False, False]
    assert rows.failed == []


def test_sweeps_that_cannot_start_say_so(tmp_path):
    with pytest.raises(ValuesError, match="C"):
        sweep_simulation(soft, {alpha: [1]}, N=20, seeds=1)
    with pytest.raises(ValuesError, match="grid is empty"):
        sweep_simulation(soft, {alpha: []}, N=20, seeds=1)
    with pytest.raises(ValuesError, match="cannot be written"):
        small(file=tmp_path / "no" / "such" / "rows.csv")
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(ValuesError, match="other columns"):
        small(file=other)
    assert other.read_text() == "a,b\n1,2\n"


def test_a_disk_that_fills_up_loses_nothing(tmp_path):
    class Full:
        def write(self, _):
            raise OSError(28, "No space left on device")

        def close(self):
            raise OSError(28, "No space left on device")

    def fill():
        with RowFile(tmp_path / "rows.csv", ("a",)) as store:
            store.add({"a": 1})
            store._handle.close()
            store._handle = Full()
            store.add({"a": 2})

    with pytest.raises(BrokenExecutor, match="No space left") as caught:
        fill()
    assert caught.value.rows == [{"a": 1}, {"a": 2}]


def test_a_file_that_may_not_grow_keeps_whole_rows_and_the_error_has_all(tmp_path):
    resource = pytest.importorskip("resource")
    path, before = tmp_path / "rows.csv", resource.getrlimit(resource.RLIMIT_FSIZE)
    small(file=path)
    size = path.stat().st_size
    path.unlink()
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, before[1]))
    try:
        with pytest.raises(BrokenExecutor, match=r"rows\.csv could not be written after") as caught:
            small(file=path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert 2 < len(caught.value.rows) < 7
    calls = []
    assert len(small(file=path, progress=lambda *args: calls.append(args))) == 8
    assert len(calls) == 8 - (len(caught.value.rows) - 1)


ANOTHER = {
    "a declaration": (lambda file: sweep_simulation(hard, GRID_OF_LOADS, N=20, seeds=1, **NORMS, file=file), "margin"),
    "couplings": (lambda file: loads(file=file, couplings="rademacher"), "couplings = rademacher"),
    "a method": (lambda file: loads(file=file, method="conic"), "method = conic"),
    "values": (lambda file: loads(file=file, values={C: 2}), "C = 2"),
    "a law of couplings": (lambda file: loads(file=file, couplings=_three_points), "couplings = _three_points"),
}
NORMS = {"observables": [average(w[i] ** 2)]}
GRID_OF_LOADS = {alpha: [0.5]}


def loads(**options):
    return sweep_simulation(soft, GRID_OF_LOADS, N=20, seeds=1, **{**NORMS, "values": {C: 1}, **options})


def _three_points(rng, shape):
    return rng.choice([-(1.5**0.5), 0.0, 1.5**0.5], shape)


@pytest.mark.parametrize("what", ANOTHER)
@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_rows_of_another_simulation_are_refused_and_both_are_named(tmp_path, what, name):
    path = tmp_path / name
    loads(file=path)
    before = path.read_bytes()
    run, said = ANOTHER[what]
    with pytest.raises(ValuesError, match=r"another sweep: there .* here ") as caught:
        run(path)
    assert what == "a declaration" or said in caught.value.found
    assert path.read_bytes() == before
    assert len(loads(file=path)) == 1


def test_rows_of_another_theory_are_refused_and_both_are_named(tmp_path):
    path, grid = tmp_path / "theory.csv", {kappa: [1]}
    law = {l: {Rational(1, 5): Rational(1, 2), Rational(9, 5): Rational(1, 2)}}
    options = {"observables": [alpha], "file": path}
    sweep_theory(uneven.naive(), grid, values=law, **options)
    with pytest.raises(ValuesError, match="there method = naive; here method = cavity"):
        sweep_theory(uneven.cavity(), grid, values=law, **options)
    other = {l: {Rational(1, 2): Rational(1, 2), Rational(50): Rational(1, 2)}}
    with pytest.raises(ValuesError, match=r"l = \{1/5: 1/2, 9/5: 1/2\}; here l = \{1/2: 1/2, 50: 1/2\}"):
        sweep_theory(uneven.naive(), grid, values=other, **options)
    with pytest.raises(ValuesError, match="digits = 15; here digits = 20"):
        sweep_theory(uneven.naive(), grid, values=law, dps=20, **options)
    (row,) = sweep_theory(uneven.naive(), grid, values=law, **options)
    assert not row.get("error")


def test_a_fingerprint_is_the_same_in_every_process():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import declarations_simulated as d\n"
        "from symcavity.finite.fingerprint import fingerprint\n"
        "print([fingerprint(d.as_system(p), {d.C: 1, d.l: [1, 2]}) for p, _ in d.VALUES.values()])"
    ).replace("d.as_system", "__import__('symcavity.finite.run', fromlist=['as_system']).as_system")
    found = {
        subprocess.run(  # noqa: S603 - this interpreter, on a code of our own
            [sys.executable, "-c", code, os.path.dirname(__file__)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "77")
    }
    assert len(found) == 1
    assert len(set(next(iter(found)).decode().split("', '"))) == len(VALUES)


DAMAGE = {
    "a line of garbage": (lambda lines: [*lines[:2], b"\x00\x01garbage", *lines[2:]], "Line 3 "),
    "bytes that are no text": (lambda lines: [lines[0], b"\xff" + lines[1], *lines[2:]], "Line 2 "),
    "a list": (lambda lines: [*lines, b"[1, 2]"], "Line "),
    "half a row": (lambda lines: [*lines[:2], lines[2][: len(lines[2]) // 2], *lines[3:]], "Line 3 "),
    "a size that is not a number": (lambda lines: [lines[0], lines[1].replace(b",20,0,", b",2x,0,").replace(
        b'"N": 20', b'"N": "2x"'), *lines[2:]], "its N is '2x'"),
    "a number that is none": (lambda lines: [lines[0], lines[1].replace(b"0.", b"0_"), *lines[2:]], "Line 2 "),
    "another parameter": (lambda lines: [lines[0], lines[1].replace(b",0.5,", b",0.7,").replace(
        b'"alpha": 0.5', b'"alpha": 0.7'), *lines[2:]], "contradicts itself"),
}


@pytest.mark.parametrize("what", DAMAGE)
@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_damaged_files_are_refused_and_left_as_they_are(tmp_path, what, name):
    path = tmp_path / name
    small(file=path)
    damage, said = DAMAGE[what]
    path.write_bytes(b"\n".join(damage(path.read_bytes().splitlines())) + b"\n")
    before = path.read_bytes()
    with pytest.raises(ValuesError, match=said):
        small(file=path)
    assert path.read_bytes() == before


def test_two_writers_of_one_file_are_one_too_many(tmp_path):
    path = tmp_path / "rows.csv"
    refused = []

    def during(done, *_):
        if done == 1:
            with pytest.raises(ValuesError, match="being written by another sweep") as caught:
                small(file=path)
            refused.append(caught.value)

    assert len(small(file=path, progress=during)) == 8
    assert len(refused) == 1
    assert len(small(file=path)) == 8
    assert len(path.read_text().splitlines()) == 9


def test_points_that_are_given_twice_count_once(tmp_path):
    path = tmp_path / "rows.csv"
    rows = sweep_simulation(soft, {alpha: [0.5, 1, 0.5]}, N=20, seeds=1, values={C: 1}, file=path)
    assert rows.column("alpha") == [0.5, 1.0]
    assert len(path.read_text().splitlines()) == 3


def test_points_that_differ_in_the_last_digit_are_two():
    rows = sweep_simulation(soft, {C: [0.3, 0.1 + 0.2]}, N=20, seeds=1, values={alpha: 1}, observables=NORM)
    assert len(rows) == 2


def test_a_parameter_called_like_a_column_is_refused():
    seed = Symbol("seed", positive=True)
    problem = ConvexProblem(half_norm + seed * Sum(Max(0, 1 - field), (mu, 1, P)))
    with pytest.raises(ValuesError, match="seed has the name of another column"):
        sweep_simulation(problem, {alpha: [1], seed: [1, 2]}, N=20, seeds=1)


def test_sizes_may_stand_in_the_grid_of_a_theory(tmp_path):
    path, theory = tmp_path / "rows.csv", hard.cavity()
    for _ in range(2):
        rows = sweep_theory(theory, [{P: 50, SIZE: 100}, {P: 100, SIZE: 100}], observables=[alpha], file=path)
        assert rows.column("N") == [100, 100]
        assert rows.column("alpha") == [0.5, 1.0]


def fatal(rng, shape):
    """Couplings of which those of one size take the process with them, as memory that is short does."""
    if shape == (7, 14):
        os._exit(1)
    return rng.standard_normal(shape)


def sweep_with_a_fatal_size(**options):
    return sweep_simulation(
        soft, {alpha: ["1/2"]}, N=[10, 12, 14, 20], seeds=1, values={C: 1}, observables=NORM, couplings=fatal, **options
    )


def check_fatal(rows):
    """No row is lost, none is there twice, and only the fatal ones have no answer."""
    assert rows.column("N") == [10, 12, 14, 20]
    assert [r["N"] for r in rows.failed] == [14]
    assert all("the process that computed it died" in r["error"] for r in rows.failed)


def test_an_instance_that_kills_its_process_costs_its_own_row_only(tmp_path):
    path = tmp_path / "rows.csv"
    check_fatal(sweep_with_a_fatal_size(file=path, executor=2))
    assert len(path.read_text().splitlines()) == 5
    check_fatal(sweep_with_a_fatal_size(file=path))  # nothing is computed again


def test_an_executor_that_died_is_started_anew(tmp_path):
    with processes(1) as pool:
        pool.submit(int).result()
        next(iter(pool._processes.values())).kill()
        assert len(small(file=tmp_path / "rows.csv", executor=pool)) == 8


def test_an_executor_that_was_shut_down_is_refused():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(BrokenExecutor, match="after 0 of 8"):
        small(executor=pool)


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_executors_give_the_same_rows(kind):
    here = small()
    with ThreadPoolExecutor(2) if kind == "threads" else processes(2) as pool:
        there = small(executor=pool)
    assert [r["average(w[i]**2)"] for r in here] == [r["average(w[i]**2)"] for r in there]


def test_a_dask_cluster_gives_the_same_rows():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        there = small(executor=client)
    assert [r["average(w[i]**2)"] for r in small()] == [r["average(w[i]**2)"] for r in there]


def test_a_cluster_loses_a_worker_and_no_row(tmp_path):
    distributed = pytest.importorskip("distributed")
    path, killed = tmp_path / "rows.csv", []
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster) as client,
    ):

        def during(done, *_):
            if done == 2 and not killed:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        there = small(executor=client, file=path, progress=during)
    assert killed
    assert [r["average(w[i]**2)"] for r in small()] == pytest.approx([r["average(w[i]**2)"] for r in there], rel=1e-12)
    assert len(path.read_text().splitlines()) == 9


def test_an_instance_that_kills_its_worker_of_a_cluster_costs_its_own_row_only(tmp_path):
    distributed, cloudpickle = pytest.importorskip("distributed"), pytest.importorskip("cloudpickle")
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import the tests
    path = tmp_path / "rows.csv"
    with (
        importlib.import_module("dask").config.set({"distributed.scheduler.allowed-failures": 0}),  # as the page says
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster) as client,
    ):
        check_fatal(sweep_with_a_fatal_size(file=path, executor=client))
    assert len(path.read_text().splitlines()) == 5


def test_theory_is_swept_too(tmp_path):
    theory = hard.cavity()
    path = tmp_path / "theory.csv"
    rows = sweep_theory(theory, {kappa: [0, Rational(1, 2), 1]}, observables=[alpha], file=path)
    assert rows.column("alpha") == pytest.approx([2, 0.98, 0.5196], abs=0.02)
    assert len(sweep_theory(theory, {kappa: [0, Rational(1, 2), 1]}, observables=[alpha], file=path)) == 3
    failing = sweep_theory(theory, {alpha: [1, 3]}, observables=[kappa, average(w[i] ** 2)])
    assert [bool(r.get("error")) for r in failing] == [False, True]


def test_progress_goes_to_stderr(capsys):
    small(progress=True)
    captured = capsys.readouterr()
    assert "8/8 done" in captured.err
    assert captured.out == ""


def test_theory_and_simulation_share_a_plot(tmp_path):
    pytest.importorskip("matplotlib")
    simulated = sweep_simulation(soft, {alpha: [0.5, 1]}, N=20, seeds=3, values={C: 1}, observables=NORM)
    theory = sweep_theory(soft.cavity(), {alpha: [0.5, 0.75, 1]}, values={C: 1}, observables=NORM)
    ax = (theory + simulated).plot("alpha", NORM[0])
    ax.figure.savefig(tmp_path / "sweep.png")
    assert len(ax.get_legend().get_texts()) == 2
    assert (tmp_path / "sweep.png").stat().st_size > 5000
