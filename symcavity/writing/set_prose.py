"""What is said about the steps of a law that is given by a convex set."""

from __future__ import annotations

from sympy import oo

from symcavity.model.support import bold
from symcavity.record.derivation import Step
from symcavity.writing.fragments import Fragments, Given, Prose, formula
from symcavity.writing.printing import CavityPrinter, tex


def support_function(step: Step) -> Prose:
    """What a support function and its anchor points are."""
    node, name = step.data["node"], step.data["set"]
    before: Fragments = ["The support function ", formula(node.g), " of the set ", name, " is the least product "]
    before += ["of a vector with the points of the set. Its gradient is the point at which the minimum is taken, the "]
    before += ["anchor point,"]
    return Prose(before, ["Only the convex hull of the set matters; it must not contain the origin."])


def minimum(step: Step) -> Prose:
    """The law as the optimality conditions of a projection."""
    data = step.data
    hard = data["softness"] == 0 and data["cap"] == oo
    before: Fragments = [
        Given("The law of the new site, with its complementary pairs, is the set of optimality conditions of a"),
        " convex problem in one vector: ", "the projection of its field on a convex set," if hard else "the minimum",
    ]  # fmt: skip
    after: Fragments = ["With a source the distance is that from ", formula(_field(step)), "."]
    after += [" The minimum exists and is unique, because the function is strictly convex; that the set be smooth is "]
    return Prose(before, [*after, "not needed."])


def projection(step: Step) -> Prose:
    """The displacement along the anchor point."""
    after: Fragments = [
        "Where ",
        step.data["g"],
        (
            " is not differentiable, the gradient is to be read as the subgradient that the projection "
            "selects: a point of "
            "the convex set at which the minimum is taken."
        ),
    ]
    return Prose([Given("The displacement is along the anchor point,")], after)


def _field(step: Step) -> str:
    """TeX of the field of the site with its source, as vectors."""
    source = step.data["source"]
    return f"{step.data['eta'].whole()} + {bold(CavityPrinter(), source, source.indices[-1])}"


def multiplier(step: Step) -> Prose:
    """The multiplier by the anchor point."""
    s = step.data["s"]
    before: Fragments = [Given("The scalar product of the law, at zero source, with the anchor point "), s]
    before += [" gives the multiplier: the product of ", s, " with the vector is ", step.data["g"], " (Euler), and"]
    after = ["The second line uses that the multiplier vanishes unless the constraint is tight."]
    return Prose([*before, " with it"], after if len(step.claims) > 1 else [])


def interior(step: Step) -> Prose:
    """The first regime."""
    return Prose(
        [
            "The site has several regimes. First, the field may lie inside: where ",
            formula(f"{tex(step.data['g'].g)}\\left({_field(step)}\\right)", ">", step.data["bound"]),
            ", ",
            formula(step.data["lam"], "=", 0),
            ", and the vector follows its source,",
        ]
    )


def touching(step: Step) -> Prose:
    """The second regime."""
    s, H = step.data["s"], step.data["H"]
    word = "tight" if step.data["softness"] == 0 else "broken"
    return Prose(
        [
            f"Second, the constraint may be {word}, ",
            formula(step.data["g"], "=", step.data["tight"]),
            ", at a point where the support function is differentiable. With the anchor point ",
            s,
            " and the Hessian ",
            H,
            (
                " of the support function, the product and chain rules give the derivative of the law and of the "
                "constraint with respect to the source:"
            ),
        ]
    )


def touching_response(step: Step) -> Prose:
    """Solving the two linear equations."""
    P, H = step.data["P"], step.data["H"]
    after: Fragments = [
        P,
        " is symmetric, because ",
        H,
        (
            " is; it is not a projection, for its eigenvalues lie between 0 and 1 and are in general neither "
            "(for a ball "
            "of radius "
        ),
        formula("R"),
        " they are 1 and ",
        formula("1 / (1 + R", step.data["strength"], step.data["lam"], "/ \\rho)"),
        ", where ",
        formula("\\rho"),
        " is the length of the vector across the axis of the ball).",
    ]
    return Prose(
        [Given("Solving the first equation for the response of the vector, and inserting it into the second, gives")],
        after,
    )


def touching_trace(_step: Step) -> Prose:
    """The trace in the second regime."""
    return Prose([Given("The response of the vector multiplier, and its trace, are")])


def tip(step: Step) -> Prose:
    """The third regime."""
    if step.data["softness"] != 0:
        return _soft_tip(step)
    before: Fragments = [
        (
            "Third, the projection may land where the support function is not differentiable. For a set that lies in a "
            "hyperplane this has positive probability, however smooth and round the set is; for one of full dimension "
            "with a smooth boundary it has none. At the tip of the set of admissible vectors every "
            "point of the convex set lies on the margin; the vector stays where it is, the multiplier and the selected "
            "subgradient take up the whole source, and every one of the "
        ),
        step.data["size"],
        " directions is absorbed:",
    ]
    after = [
        (
            "Sets with edges or flat faces have whole families of such points: while a face of the set "
            "lies on the margin, "
            "the directions that the face spans together with its anchor point are absorbed, and each "
            "contributes minus one "
            "to the divergence below."
        )
    ]
    return Prose(before, [*after])


def _soft_tip(step: Step) -> Prose:
    """The third regime, with a soft bound."""
    n, s = step.data["n"], formula("\\bm{s}")
    before: Fragments = [
        (
            "Third, the projection may land where the support function is not differentiable. For a set that lies in a "
            "hyperplane this has positive probability, however smooth and round the set is: every point of it may lie "
            "at the same height. The vector is then that height times the normal "
        ), n, " of the set, for which ",
        formula(n, "\\cdot", "\\bm{s}", "= 1"), " at every point ", s, ", and moves along it only:",
    ]  # fmt: skip
    return Prose(
        before,
        [
            (
                "Where no plane off the origin holds the set, the normal is to be read as zero, and the vector "
                "vanishes. Sets with edges or flat faces have whole families of such points, one for each face."
            )
        ],
    )


def regimes(step: Step) -> Prose:
    """The regimes together."""
    r = step.data["regime"]
    before: Fragments = [
        Given("The regimes together give the divergence of the displacement, self-coupling times the trace above"),
        ": with ",
        formula(r, "= 0"), " inside, ", formula(r, "= 1"), " touching at one point, ", formula(r, "= 3"),
        " with the whole set on the margin",
    ]  # fmt: skip
    before += [", and ", formula(r, "= 4"), " with the multiplier at its bound,"] if step.data["cap"] != oo else [","]
    between = "For sets with edges there is one between the second and the third: on a proper face, "
    if step.data["softness"] != 0:
        face = ", it is minus the number of directions that the face spans, plus the last term with its normal."
        return Prose(before, [between, formula(r, "= 2"), face])
    after: Fragments = [
        between, formula(r, "= 2"), (
            ", it is minus the number of absorbed directions, "
        "plus the contribution of the curvature of the face if it has any. Leaving out the third regime makes the "
        "response of the features wrong."),
    ]  # fmt: skip
    return Prose(before, after)


def saturated(step: Step) -> Prose:
    """The regime of slack."""
    s, x = formula("\\bm{s}"), formula("\\bm{x}")
    before: Fragments = [
        "With slack there is a fourth: the multiplier has reached its bound, and the constraint is broken. ",
        "The vector is then ", formula(step.data["strength"], step.data["cap"], "(\\bm{s} - \\bm{x})"),
        " with its anchor point ", s, ", where ", formula("-", step.data["strength"], step.data["cap"], "\\bm{x}"),
        " is the field together with the source. The anchor point of ", formula("\\bm{s} - \\bm{x}"),
        " is the point of the convex hull nearest to ", x, ", and its derivative ", step.data["N"],
        " belongs to the set alone:",
    ]  # fmt: skip
    return Prose(
        before,
        [
            "Its eigenvalues are one along the flat face that the nearest point lies in, and below one elsewhere; ",
            "the multiplier does not move, so that a single anchor point absorbs nothing.",
        ],
    )


def response(step: Step) -> Prose:
    """The average."""
    size = step.data["g"].components.size
    before: Fragments = [
        "In units of the standard deviation of the field, ",
        formula("\\bm{t} \\sim \\mathcal{N}\\left(0, \\mathbf{1}\\right)"),
        " has ", size, " components, ", formula("\\bm{v}"), " is its projection, and ",
        formula("\\bm{v} - \\bm{t} = \\ell \\bm{s}"),
        "; averages over ", formula("\\bm{t}"),
        " carry the bound in these units as an index. The response is",
    ]  # fmt: skip
    return Prose(before)


def euler(step: Step) -> Prose:
    """The scalar product with the anchor point."""
    before: Fragments = [
        (
            "To prove it, note that the support function is homogeneous of degree one, so that its "
            "scalar product with the "
            "gradient is the function itself (Euler). For every field"
        )
    ]
    bound = step.data.get("bound")
    before += [",", *([] if bound is None else [" with any bound ", bound, ","])]
    return Prose(before, ["The second holds because the multiplier vanishes unless the constraint is tight."])


def parts(_step: Step) -> Prose:
    """The density, and integration by parts with it."""
    before: Fragments = ["With the Gaussian density ", formula("f"), " of the field, whose gradient is the density "]
    before += ["times minus the field, the average is integrated by parts:"]
    after = ["The boundary contributes nothing. The last line is what the regimes above add up to."]
    return Prose(before, after)


def stein(step: Step) -> Prose:
    """Integration by parts."""
    return Prose(
        [
            (
                "The displacement is a Lipschitz function of the field, so that Gaussian integration by "
                "parts (Stein's lemma "
                "in "
            ),
            step.data["size"],
            " dimensions) applies to it, whatever the regimes:",
        ]
    )


def stein_conclusion(step: Step) -> Prose:
    """The conclusion."""
    lead = "Averaging the pointwise identity and inserting this gives the identity"
    several = step.data.get("several")
    return Prose([Given(f"{lead}, bound by bound," if several else f"{lead},")])


TEMPLATES = {
    "support_function": support_function,
    "set_minimum": minimum,
    "projection": projection,
    "regime_interior": interior,
    "regime_touching": touching,
    "touching_response": touching_response,
    "touching_trace": touching_trace,
    "regime_tip": tip,
    "regimes": regimes,
    "regime_saturated": saturated,
    "vector_response": response,
    "euler": euler,
    "stein_parts": parts,
    "set_multiplier": multiplier,
    "stein": stein,
    "stein_conclusion": stein_conclusion,
}
