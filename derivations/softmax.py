"""Three classes told apart by the softmax loss with ridge penalty, labels at random.

The mean loss on the data of training is ``l_train``; that on fresh data cannot fall below ``log(3)``.

Values: ``alpha``, ``gamma``. Each datum hears three fields, and its law fixes three multipliers together: the
cavity fields have a covariance, and the responses are matrices. Classes are alike, and weights add up to zero.

B. Loureiro, G. Sicuro, C. Gerbelot, A. Pacco, F. Krzakala, L. Zdeborová, Adv. Neural Inf. Process. Syst. 34 (2021).
"""

from sympy import KroneckerDelta, Rational, Sum, Symbol, exp, log

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, i, mu

third = Rational(1, 3)
x, w1, w2, w3 = Coupling("x"), Feature("w1"), Feature("w2"), Feature("w3")
y, gamma = Quenched("y", mu, law={1: third, 2: third, 3: third}), Symbol("gamma", positive=True)
h = [Sum(x[mu, i] * w[i], (i, 1, N)) for w in (w1, w2, w3)]
loss = log(sum(exp(u) for u in h)) - sum(KroneckerDelta(y[mu], k + 1) * u for k, u in enumerate(h))

problem = ConvexProblem(
    minimize=Sum(loss, (mu, 1, P)) + gamma * Sum(w1[i] ** 2 + w2[i] ** 2 + w3[i] ** 2, (i, 1, N)) / 2,
    named={Symbol("l_train"): average(loss)},
    name="Three classes, softmax loss",
    says=(
        "Random labels of three classes are partly learned by heart: at α = 2 and γ = 1 the mean loss on the data "
        "of training is 0.816, and on fresh data it cannot fall below log 3 = 1.099."
    ),
    cite=(
        "B. Loureiro, G. Sicuro, C. Gerbelot, A. Pacco, F. Krzakala, L. Zdeborová, Adv. Neural Inf. "
        "Process. Syst. 34 (2021)"
    ),
)
values = {alpha: 2, gamma: 1}
shown = [average(w1[i] ** 2), average(w1[i] * w2[i])]
