"""Take one step of AdaGrad, or of RMSProp."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.optimizers.shared import random_start


@answer_to("L1-29, L1-30:step", "adaptive_step", parts=("θ", "r"))
def exercise(theta, g, r, lr, delta, rho):
    if rho is None:
        r = r + g * g
        return theta - lr / (delta + np.sqrt(r)) * g, r
    r = rho * r + (1 - rho) * g * g
    return theta - lr / np.sqrt(delta + r) * g, r


@exercise.cases
def _(rng):
    for fraction in (None, 1, None, 0):  # of ρ: with ρ = 0, r is the newest square
        n = int(rng.integers(2, 5))
        lr, delta, rho = rng.uniform((0.1, 0.2, 0.6), (1.0, 0.5, 0.95)).round(2).tolist()
        theta, g, root = (random_start(rng, n) for _ in range(3))
        yield theta, g, root**2, lr, delta, None if fraction is None else fraction * rho


@exercise.fact("from r = 0, δ = 0 and g constant, step t is −η sign(g) over √t, or √(1 − ρᵗ)")
def _(function, rng):
    g = random_start(rng, 3)
    for rho in (None, rng.uniform(0.5, 0.95)):
        theta, r = np.zeros(3), np.zeros(3)
        for t in range(1, 6):
            before, (theta, r) = theta, np.array(function(theta, g, r, 0.1, 0.0, rho))
            step = -0.1 / np.sqrt(1 - rho**t if rho else t) * np.sign(g)
            if not np.allclose(theta - before, step, rtol=1e-9):
                return False
    return True


exercise.help(r"""
1. Both methods change $r$ first. Which of them adds, and which averages?
2. AdaGrad divides by $\delta + \sqrt r$, RMSProp by $\sqrt{\delta + r}$, with the new $r$.
3. Add `g * g` to `r`, or mix both by `rho`; subtract $\eta$ over the divisor, times `g`.
you give the fraction ρ to the new gradient; the old average keeps ρ
    rho * r + (1 - rho) * g * g → (1 - rho) * r + rho * g * g
your RMSProp adds the whole square; its weight is 1 − ρ
    (1 - rho) * g * g → g * g
you put AdaGrad's δ inside the root; it stands outside
    (delta + np.sqrt(r)) → np.sqrt(delta + r)
you put RMSProp's δ outside the root; it stands inside
    np.sqrt(delta + r) → (delta + np.sqrt(r))
you divide by r without a root in AdaGrad; the root has the unit of the gradient
    delta + np.sqrt(r) → delta + r
you divide by r without a root in RMSProp; the root has the unit of the gradient
    np.sqrt(delta + r) → (delta + r)
you divide by the old r; change r first
    delta + np.sqrt(r) → delta + np.sqrt(r - g * g) ; r = rho * r → old, r = r, rho * r
    np.sqrt(delta + r) → np.sqrt(delta + old)
you add the squared length of the gradient to each entry of r; each entry has its own square
    r = r + g * g → r = r + g @ g ; rho * r + (1 - rho) * g * g → rho * r + (1 - rho) * (g @ g)
""")
