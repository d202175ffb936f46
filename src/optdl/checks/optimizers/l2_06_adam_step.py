"""Take one step of Adam."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.optimizers.shared import random_start


@answer_to("L2-06:step", "adam_step", parts=("θ", "m", "r"))
def exercise(theta, g, m, r, t, lr, beta1, beta2, delta):
    m = beta1 * m + (1 - beta1) * g
    r = beta2 * r + (1 - beta2) * g * g
    m_hat, r_hat = m / (1 - beta1**t), r / (1 - beta2**t)
    return theta - lr * m_hat / (np.sqrt(r_hat) + delta), m, r


@exercise.cases
def _(rng):
    for t in (1, int(rng.integers(2, 5)), int(rng.integers(5, 30))):
        n = int(rng.integers(1, 5))
        theta, g, m, root = (random_start(rng, n) for _ in range(4))
        low, high = (0.1, 0.6, 0.92, 0.2), (1.0, 0.9, 0.99, 0.5)
        yield theta, g, m, root**2, t, *rng.uniform(low, high).round(2).tolist()


@exercise.fact("with δ = 0, from m = r = 0 and under a constant g, each step is −η sign(g)")
def _(function, rng):
    g, (theta, m, r) = random_start(rng, 3), np.zeros((3, 3))
    for t in range(1, 6):
        before, (theta, m, r) = theta, np.array(function(theta, g, m, r, t, 0.1, 0.9, 0.99, 0.0))
        if not np.allclose(theta - before, -0.1 * np.sign(g), rtol=1e-9):
            return False
    return True


exercise.help(r"""
1. Which two averages does the next step need, and which two are for this step only?
2. $m$ and $r$ are returned as they are; for $\hat m$ and $\hat r$ each is divided by $1 - \beta^t$.
3. Average `g` into `m` with `beta1` and `g * g` into `r` with `beta2`. Divide each by 1 minus its β
   to the power `t`, and subtract $\eta\,\hat m$ over $\sqrt{\hat r} + \delta$.
you do not correct m; divide it by 1 − β₁ᵗ
    m / (1 - beta1**t) → m
you do not correct r; divide it by 1 − β₂ᵗ
    r / (1 - beta2**t) → r
you keep the corrected averages; m and r go on without the correction
    + delta), m, r → + delta), m_hat, r_hat
you give the fraction β to the new gradient, as the second lecture does; the old average keeps β
    beta1 * m + (1 - beta1) * g → (1 - beta1) * m + beta1 * g
    beta2 * r + (1 - beta2) * g * g → (1 - beta2) * r + beta2 * g * g
you put δ inside the root; it stands outside
    np.sqrt(r_hat) + delta → np.sqrt(r_hat + delta)
you divide by r̂ without a root; the root has the unit of the gradient
    np.sqrt(r_hat) + delta → r_hat + delta
you correct r with β₁; divide it by 1 − β₂ᵗ
    1 - beta2**t → 1 - beta1**t
you add δ to √r before you correct it; add it to √r̂
    (np.sqrt(r_hat) + delta) → (np.sqrt(r_hat) + delta / np.sqrt(1 - beta2**t))
you correct √r; correct r, then take the root
    (np.sqrt(r_hat) + delta) → (np.sqrt(r) / (1 - beta2**t) + delta)
""")
