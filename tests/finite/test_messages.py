"""Message passing as a start: the single sites against brute force, the branches against another method."""

import numpy as np
import pytest
from declarations_simulated import SIGNS, VALUES, C, field, gamma, half_norm, l, t, tied, w, x, y, z
from families_of_messages import FAMILIES
from scipy.optimize import minimize_scalar
from sympy import Abs, Max, Rational, Sum

from symcavity.face import ConvexProblem
from symcavity.finite import linearised, newton, single_site
from symcavity.finite.messages import message_passing, started
from symcavity.finite.run import simulate
from symcavity.finite.setup import as_system, prepare
from symcavity.finite.single_site import SingleSites
from symcavity.model.kinds import DATUM, FEATURE, N, P, alpha, i, mu

distance = Sum((field - y[mu]) ** 2, (mu, 1, P)) / 2
taught = Sum(x[mu, i] * t[i], (i, 1, N))
stretched = Sum(z[mu, i] * w[i], (i, 1, N))
EACH = {1: Rational(1, 2), 2: Rational(1, 2)}

SETTLING = {
    "soft": VALUES["soft"],
    "hinge": VALUES["hinge"],
    "lasso": (ConvexProblem(distance + C * Sum(Abs(w[i]), (i, 1, N))), {alpha: 1, C: 0.5, y: SIGNS}),
    "boxed": (ConvexProblem(distance, [w[i] <= 1, w[i] >= -1]), {alpha: 1, y: {2: 0.5, -2: 0.5}}),
    "teacher": (
        ConvexProblem(Sum(Abs(field - taught - y[mu]), (mu, 1, P)) + half_norm),
        {alpha: 2, y: SIGNS, t: {1: 0.5, -2: 0.5}},
    ),
    "stretched": (
        ConvexProblem(half_norm + C * Sum(Max(0, 1 - y[mu] * stretched), (mu, 1, P))),
        {alpha: 2, C: 1, y: SIGNS, l: EACH},
    ),
}


def instance_of(problem, values, n=60, seed=3):
    setup = prepare(as_system(problem), values)
    return setup, setup.instance(n, seed)


@pytest.mark.parametrize("name", SETTLING)
def test_it_ends_on_the_branches_of_the_solution(name):
    problem, values = SETTLING[name]
    ours = simulate(problem, values, N=100, seeds=4)
    theirs = simulate(problem, values, N=100, seeds=4, method="interior point")
    assert {s.method for s in ours} == {"message passing"}
    assert ours.residuals.worst < 1e-9
    for here, there in zip(ours, theirs, strict=True):
        assert here["w"] == pytest.approx(there["w"], abs=1e-7)


def test_few_factorisations_are_left_to_do(monkeypatch):
    """What the start is for: an interior point takes ten."""
    count = []
    make = linearised.LinearSystem.__init__
    monkeypatch.setattr(newton.LinearSystem, "__init__", lambda *a, **k: (count.append(1), make(*a, **k))[1])
    simulate(*SETTLING["lasso"], N=200, seeds=1)
    assert len(count) <= 3


def test_a_site_minimises_its_own_problem():
    """max(0, 1 - u) + (u - r)^2 / (2 F) for a datum whose message is what it sends; |w| + F w^2 / 2 - r w."""
    loss, penalty = Sum(Max(0, 1 - field), (mu, 1, P)), Sum(Abs(w[i]), (i, 1, N))
    _, instance = instance_of(ConvexProblem(loss + penalty), {alpha: 1}, n=40)
    laws = instance.system.laws
    sites = {kind: SingleSites(law, instance.quenched, instance.constants) for kind, law in laws.items()}
    rng = np.random.default_rng(0)
    fields, coupling = 2 * rng.standard_normal(40), rng.uniform(0.3, 2, 40)

    def sent(kind, eta, self_coupling):
        answer = sites[kind].solve(eta[:, None], self_coupling[:, None, None], np.zeros((40, 0)))
        assert np.all(answer.found)
        law = laws[kind]
        slope = -law.emits(answer.args, 40) @ answer.moved[:, :, : law.ke] @ law.hears(answer.args, 40)
        return law.emission(answer.args, 40)[:, 0], slope[:, 0, 0]

    eps = 1e-6
    messages, response = sent(DATUM, fields, coupling)
    slope = (sent(DATUM, fields + eps, coupling)[0] - sent(DATUM, fields - eps, coupling)[0]) / (2 * eps)
    assert response == pytest.approx(slope, abs=1e-6)
    for r, f, e in zip(fields, coupling, messages, strict=True):
        best = minimize_scalar(lambda u: max(0, 1 - u) + (u - r) ** 2 / (2 * f), (-5, 5), tol=1e-12)  # noqa: B023
        assert r + f * abs(e) == pytest.approx(best.x, abs=1e-5)
    weights, response = sent(FEATURE, fields, -coupling)
    assert weights == pytest.approx(np.sign(fields) * np.maximum(np.abs(fields) - 1, 0) / coupling)
    assert response == pytest.approx((np.abs(fields) > 1) / coupling)


@pytest.mark.parametrize("name", ["lasso", "soft margin", "absolute deviations", "variances", "bias", "three kinds"])
def test_tables_of_affine_laws_say_what_newton_steps_on_each_branch_say(name, monkeypatch):
    """At other fields than those of the messages; three kinds: sites that hear themselves in two fields."""
    problem, values, _ = FAMILIES[name]
    setup, instance = instance_of(problem, values, n=40)
    messages, _ = started(setup.system, instance)
    rng = np.random.default_rng(1)
    for kind, law in instance.system.laws.items():
        assert law.affine
        n = instance.size[kind]
        coupling = messages.self_coupling[kind] * rng.uniform(0.5, 2, (n, 1, 1))
        given = 2 * rng.standard_normal((n, law.m)), coupling, np.tile(messages.state.shared, (n, 1))
        table = SingleSites(law, instance.quenched, instance.constants).solve(*given)
        with monkeypatch.context() as patched:
            patched.setattr(single_site, "MOST_PAIRS", -1)
            newton_steps = SingleSites(law, instance.quenched, instance.constants).solve(*given)
        assert np.all(table.found)
        assert np.all(newton_steps.found)
        assert np.any(coupling)
        for one, other in zip(table.args, newton_steps.args, strict=True):
            assert one == pytest.approx(other, rel=1e-8, abs=1e-8)
        for what in ("z", "sent", "responses", "moved"):
            assert getattr(table, what) == pytest.approx(getattr(newton_steps, what), rel=1e-8, abs=1e-8)


def test_where_a_table_has_no_branch_it_says_so():
    """A weight that is not negative, without curvature or feedback: its objective -r w falls for ever where r > 0."""
    _, instance = instance_of(ConvexProblem(Sum(Max(0, 1 - field), (mu, 1, P)), [w[i] >= 0]), {alpha: 1}, n=20)
    sites = SingleSites(instance.system.laws[FEATURE], instance.quenched, instance.constants)
    fields = np.repeat([1.0, -1.0], 10)[:, None]
    answer = sites.solve(fields, np.zeros((20, 1, 1)), np.zeros((20, 0)))
    assert not np.any(answer.found[fields[:, 0] > 0])
    assert np.all(answer.found[fields[:, 0] < 0])
    assert np.all(np.isnan(answer.moved[~answer.found]))


def test_it_keeps_away_from_what_it_does_not_fit():
    for problem, values in (
        (tied, VALUES["tied"][1]),  # a global variable
        VALUES["mixed"],  # a law that bends
        (ConvexProblem(half_norm, [field >= 1]), {alpha: 4}),  # no solution: messages grow without end
        (ConvexProblem(distance / gamma, [w[i] >= 0]), {alpha: 0.2, y: SIGNS, gamma: 1}),  # many
    ):
        setup, instance = instance_of(problem, values)
        assert message_passing(setup.system, instance) is None
