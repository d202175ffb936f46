"""A step of Adam in the split form."""

from collections.abc import Iterator

import numpy as np

from optdl.bnp import preconditioner, split_adam_step
from optdl.checks.exercise import Case, Exercise, Function

exercise = Exercise("F-11", split_adam_step, parts=("change of the weight", "change of the bias"))


@exercise.answer
def _(grad_weight, grad_bias, mean, std, q, lr, eps=1e-08):
    weight = (grad_weight - np.outer(grad_bias, mean)) / (q * std)
    bias = grad_bias / q
    weight = -lr * weight / (abs(weight) + eps) / (q * std)
    return (weight, -lr * bias / (abs(bias) + eps) / q - weight @ mean)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for outputs, features in ((1, 1), (2, 3), (4, 2)):
        yield {
            "grad_weight": rng.normal(size=(outputs, features)).round(2),
            "grad_bias": rng.normal(size=outputs).round(2),
            "mean": rng.uniform(1, 3, size=features).round(2),
            "std": rng.uniform(0.2, 2, size=features).round(2),
            "q": float(rng.choice([1.5, 2.0, 3.0])),
            "lr": float(rng.choice([0.1, 0.5])),
            "eps": 0.25,
        }


@exercise.fact("to first order the loss falls by η times the sum of |Pᵀ g|")
def _(function: Function, rng: np.random.Generator) -> bool:
    """Check gᵀΔθ = −η Σ|Pᵀg| without ε, by matrices."""
    G, mean, std = rng.normal(size=(3, 4)), rng.uniform(1, 3, size=3), rng.uniform(0.2, 2, size=3)
    U, D = preconditioner(mean, std)
    weight, bias = function(G[:, 1:], G[:, 0], mean, std, 2.0, 0.1, 0.0)
    change = np.column_stack([bias, weight])
    return bool(np.isclose((G * change).sum(), -0.1 * abs(G @ U @ D / 2).sum(), rtol=1e-9))


@exercise.mistake(
    "you give P Pᵀ g to Adam, which divides each component by its own size; it "
    "takes Pᵀ g, and P comes after it"
)
def _(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    weight = (grad_weight - np.outer(grad_bias, mean)) / (q * std) ** 2
    bias = grad_bias / q**2 - weight @ mean
    return -lr * weight / (abs(weight) + eps), -lr * bias / (abs(bias) + eps)


@exercise.mistake("you return the step of z; the parameters are P z, so P is still missing")
def _(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    weight = (grad_weight - np.outer(grad_bias, mean)) / (q * std)
    bias = grad_bias / q
    return -lr * weight / (abs(weight) + eps), -lr * bias / (abs(bias) + eps)


@exercise.mistake("you give Adam the plain gradient; the gradient with respect to z is Pᵀ g")
def _(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    weight = -lr * grad_weight / (abs(grad_weight) + eps) / (q * std)
    return weight, -lr * grad_bias / (abs(grad_bias) + eps) / q - weight @ mean


@exercise.mistake("you multiply Adam's step by P Pᵀ; Pᵀ belongs before Adam")
def _(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    weight = -lr * grad_weight / (abs(grad_weight) + eps)
    bias = -lr * grad_bias / (abs(grad_bias) + eps)
    weight = (weight - np.outer(bias, mean)) / (q * std) ** 2
    return weight, bias / q**2 - weight @ mean


@exercise.mistake("you give P g to Adam and take Pᵀ of its step; it is the other way around")
def _(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    weight = grad_weight / (q * std)
    bias = grad_bias / q - weight @ mean
    weight = -lr * weight / (abs(weight) + eps)
    bias = -lr * bias / (abs(bias) + eps)
    return (weight - np.outer(bias, mean)) / (q * std), bias / q


exercise.mistake(
    "your Pᵀ g lacks the − μ(j) G_b(i) of the weight",
    ("(grad_weight - np.outer(grad_bias, mean))", "grad_weight"),
)

exercise.mistake("your P lacks the − Σ ΔW(i,j) μ(j) of the bias", (" - weight @ mean", ""))


@exercise.mistake("you subtract the sum before dividing by σ̃; D comes first, so the sum takes ΔW")
def _(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    weight = (grad_weight - np.outer(grad_bias, mean)) / (q * std)
    bias = grad_bias / q
    weight = -lr * weight / (abs(weight) + eps)
    bias = -lr * bias / (abs(bias) + eps)
    return weight / (q * std), (bias - weight @ mean) / q


@exercise.mistake(
    "you divide by q²σ̃² before Adam; P and Pᵀ divide by qσ̃ each, one after Adam and one before"
)
def _(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    weight = (grad_weight - np.outer(grad_bias, mean)) / (q * std) ** 2
    bias = grad_bias / q**2
    weight = -lr * weight / (abs(weight) + eps)
    return weight, -lr * bias / (abs(bias) + eps) - weight @ mean


exercise.mistake(
    "your Pᵀ lacks the 1/q; with Adam's ε this is another step",
    (
        "weight = (grad_weight - np.outer(grad_bias, mean)) / (q * std)\n    bias = grad_bias / q",
        "weight = (grad_weight - np.outer(grad_bias, mean)) / std",
    ),
    ("bias / (abs(bias) + eps)", "grad_bias / (abs(grad_bias) + eps)"),
)


@exercise.mistake("your P lacks the 1/q")
def _(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    weight = (grad_weight - np.outer(grad_bias, mean)) / (q * std)
    bias = grad_bias / q
    weight = -lr * weight / (abs(weight) + eps) / std
    return weight, -lr * bias / (abs(bias) + eps) - weight @ mean


@exercise.mistake("you move with the gradient; it is −η")
def _(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    weight = (grad_weight - np.outer(grad_bias, mean)) / (q * std)
    bias = grad_bias / q
    weight = lr * weight / (abs(weight) + eps) / (q * std)
    return weight, lr * bias / (abs(bias) + eps) / q - weight @ mean


@exercise.mistake("you divide by g² + ε; Adam divides by √(g²) + ε = |g| + ε")
def _(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    weight = (grad_weight - np.outer(grad_bias, mean)) / (q * std)
    bias = grad_bias / q
    weight = -lr * weight / (weight**2 + eps) / (q * std)
    return weight, -lr * bias / (bias**2 + eps) / q - weight @ mean
