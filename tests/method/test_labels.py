"""The names of order parameters say what is averaged."""

from importlib import import_module

import pytest
from sympy import Symbol, exp, latex

from symcavity import Feature, Quenched, i, mu
from symcavity.loading import installed
from symcavity.method.labels import moment_label, response_label
from symcavity.model.averages import SiteResponse
from symcavity.model.quantities import SiteQuantity
from symcavity.record.order_parameters import OrderParameter

w, v, t, l_, y = Feature("w"), Feature("v"), Quenched("t", i), Quenched("l", i), Quenched("y", mu)
c = Symbol("c", positive=True)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (w[i] ** 2, "w"),
        (t[i] * w[i], "t_w"),
        (v[i] * w[i], "v_w"),
        (l_[i] * w[i] ** 2, "l_w_w"),
        (l_[i] ** 2 * w[i] ** 2, "l_l_w_w"),
        ((w[i] - t[i]) ** 2, "w_minus_t"),
        ((t[i] - w[i]) ** 2, "w_minus_t"),
        ((w[i] + t[i]) ** 2, "w_plus_t"),
        ((w[i] - t[i] / c) ** 2, "w_minus_t_over_c"),
        (l_[i] * (w[i] - t[i]) ** 2, "l_times_w_minus_t"),
        ((w[i] - l_[i] * t[i]) ** 2, "w_minus_l_t"),
        ((w[i] - t[i]) * v[i], None),
        (exp(w[i]), None),
        ((w[i] - 2 * t[i]) ** 2, None),
    ],
)
def test_a_name_lists_the_factors(body, name):
    assert moment_label(body) == name


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (SiteResponse(w[i]), "w"),
        (l_[i] * SiteResponse(w[i]), "l_w"),
        (l_[i] ** 2 * SiteResponse(w[i]), "l_l_w"),
        (SiteResponse(w[i], v[i]), "w_to_v"),
        (SiteResponse(w[i]) - SiteResponse(v[i]), "w_minus_v"),
        (c * SiteResponse(w[i]) - 2 * SiteResponse(v[i]), None),
    ],
)
def test_a_response_names_the_state_and_the_field(body, name):
    assert response_label(body, ()) == name
    if name == "w_to_v":
        assert response_label(body, {v}) == "w"


def test_a_teacher_and_a_student_of_one_site_are_told_apart():
    """The response to the field of the student has the plain name, wherever it was needed first."""
    found = {}
    for name in ("flipped_labels", "logistic_teacher", "sign_teacher"):
        theory = import_module(f"symcavity.derivations.{name}").problem.cavity()
        found |= {str(s): str(m) for s, m in theory.order_parameters.items()}
    assert found["S_lambda"] == "average(response(lambda[mu], h[mu]))"
    assert found["S_lambda_to_u_y"] == "average(response(lambda[mu], u_y[mu]))"
    assert found["S_g_to_h_2"] == "average(response(g[mu], h_2[mu]))"
    assert found["S_y_lambda_to_u_y"] == "average(y[mu]*response(lambda[mu], u_y[mu]))"


def test_one_name_is_one_average_in_all_of_the_gallery():
    """Quantities by their names, as any declaration may call them; only numbers may stand for different averages."""
    meanings: dict[str, set[object]] = {}
    for name in installed():
        for symbol, meaning in import_module(f"symcavity.derivations.{name}").problem.cavity().order_parameters.items():
            body, named = meaning.args[0], "_to_" in str(symbol)
            body = body.xreplace({r: Symbol(f"R{r.state.family.name}{r.field if named else ''}") for r in
                                  body.atoms(SiteResponse)})
            for sign in (q for q in body.atoms(SiteQuantity) if q.few and all(value**2 == 1 for value in q.few)):
                body = body.subs(sign**2, 1)
            letters = {q: Symbol(q.family.name) for q in body.atoms(SiteQuantity)}
            meanings.setdefault(str(symbol), set()).add(str(body.xreplace(letters).expand()))
    assert {s: m for s, m in meanings.items() if len(m) > 1 and not s.rpartition("_")[2].isdigit()} == {}


@pytest.mark.parametrize(
    ("name", "tex"),
    [
        ("q_w_minus_t", "q_{w - t}"),
        ("q_y_y_lambda_lambda", r"q_{y^{2} \lambda^{2}}"),
        ("q_l_times_w_minus_t", r"q_{l \left(w - t\right)^{2}}"),
        ("q_w_minus_t_over_c", "q_{w - t / c}"),
        ("S_lambda_to_h_2", r"S^{\lambda}_{h_{2}}"),
        ("S_y_y_lambda", r"S^{y^{2} \lambda}"),
        ("b_hat", r"\hat{b}"),
    ],
)
def test_names_are_printed_as_they_read(name, tex):
    assert latex(OrderParameter(name)) == tex
