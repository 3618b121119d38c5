"""What is remembered is bounded, and remembered once."""

import importlib
import inspect
import pickle
import pkgutil
import sys
from concurrent.futures import ThreadPoolExecutor

import symcavity
from symcavity.algebra.memory import Memory
from symcavity.derivations import soft_margin
from symcavity.evaluate.tasks import task_of
from symcavity.finite.compiled import compile_system
from symcavity.finite.setup import as_system
from symcavity.model.averages import average
from symcavity.model.kinds import alpha, i
from symcavity.model.problem import Problem
from symcavity.witness.simulated import simulation_class


def test_every_cache_of_a_module_is_bounded():
    seen = 0
    for found in pkgutil.walk_packages(symcavity.__path__, "symcavity."):
        if found.name.startswith("symcavity.derivations"):
            continue
        for name, each in vars(importlib.import_module(found.name)).items():
            if not hasattr(each, "cache_parameters"):
                continue
            seen += 1
            several = inspect.signature(each).parameters  # without any there is one answer
            closed = several and each.cache_parameters()["maxsize"] is None
            assert not closed or name == "simulation_class", f"{found.name}.{name} never forgets"
    assert seen > 20
    assert inspect.signature(simulation_class).parameters.keys() == {"name"}  # of two classes


def test_a_memory_forgets_the_oldest():
    memory = Memory(3)
    for k in range(10):
        memory[k] = k
        memory[k] = -k
    assert memory == {7: -7, 8: -8, 9: -9}
    copy = pickle.loads(pickle.dumps(memory))  # noqa: S301 - it was made a moment ago
    assert (copy, copy.bound) == (memory, 3)


def test_observables_do_not_pile_up():
    theory = soft_margin.problem.cavity()
    solution = theory.solve({alpha: 1, soft_margin.C: 1})
    task = task_of(theory)
    task.cache.bound = task.observables.bound = 5
    weight = soft_margin.w[i]
    values = [float(solution[average(weight**2) + k]) for k in range(12)]
    assert values[5] - values[0] == 5
    assert len(task.cache) <= 5
    assert len(task.observables) <= 5


def test_a_problem_is_derived_and_compiled_once():
    problem = Problem(soft_margin.problem.minimize, soft_margin.problem.subject_to)
    assert as_system(problem) is as_system(problem)
    assert compile_system(as_system(problem)) is compile_system(as_system(problem))
    declared = soft_margin.problem
    assert declared.cavity() is declared.cavity() is declared.kkt().cavity()
    assert declared.naive() is declared.naive() is not declared.cavity()
    assert declared.cavity().replace().system is declared.kkt()
    system = pickle.loads(pickle.dumps(declared.kkt()))  # noqa: S301 - it was made a moment ago
    assert not {"_cavity", "_naive"} & vars(system).keys()
    assert [str(e) for e in system.cavity().equations] == [str(e) for e in declared.cavity().equations]


def test_threads_share_a_memory():
    memory, interval = Memory(2), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            jobs = [pool.submit(lambda k=k: [memory.__setitem__((k, n), n) for n in range(20000)]) for k in range(4)]
        assert all(len(job.result()) == 20000 for job in jobs)
    finally:
        sys.setswitchinterval(interval)
    assert len(memory) <= 4
