"""Sweeps: rows on disk as they finish, resumption, failures, executors that die."""

import csv
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from declarations_simulated import C, hard, kappa, soft, w
from sympy import Rational

from symcavity.errors import ValuesError
from symcavity.finite import BrokenExecutor, processes, sweep_simulation, sweep_theory
from symcavity.finite.sweep import RowFile
from symcavity.model.kinds import alpha, i
from symcavity.model.quantities import average, response

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

        def flush(self):
            pass

        def close(self):
            pass

    with RowFile(tmp_path / "rows.csv", ("a",)) as store:
        store.add({"a": 1})
        store._handle.close()
        store._handle = Full()
        with pytest.raises(BrokenExecutor, match="No space left") as caught:
            store.add({"a": 2})
    assert caught.value.rows == [{"a": 1}, {"a": 2}]


def test_an_executor_that_dies_loses_nothing(tmp_path):
    path = tmp_path / "rows.csv"
    with processes(1) as pool:
        pool.submit(int).result()
        done = sweep_simulation(soft, GRID, N=20, seeds=1, observables=NORM, file=path, executor=pool)
        assert len(done) == 4
        next(iter(pool._processes.values())).kill()
        with pytest.raises(BrokenExecutor, match="died after") as caught:
            small(file=path, executor=pool)
    assert len(caught.value.rows) >= 4
    assert len(small(file=path)) == 8


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
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        there = small(executor=client)
    assert [r["average(w[i]**2)"] for r in small()] == [r["average(w[i]**2)"] for r in there]


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
