"""Training with dropout."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.dropout import dropout_sgd

exercise = Exercise("L2-18", dropout_sgd, parts=("W", "V"))


@exercise.answer
def _(W, V, x, y, masks, lr):
    for inputs, labels, mask in zip(x, y, masks, strict=True):
        z = inputs @ W.T
        hidden = mask * np.maximum(z, 0)
        scores = np.exp(hidden @ V.T)
        error = scores / scores.sum(axis=1, keepdims=True) - np.eye(len(V))[labels]
        back = error @ V * mask * (z > 0) / len(labels)
        W, V = (W - lr * back.T @ inputs, V - lr * error.T @ hidden / len(labels))
    return (W, V)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for t, m, n, h, c in ((3, 2, 2, 3, 2), (4, 3, 3, 5, 3), (5, 4, 3, 6, 3)):
        masks = (rng.random((t, m, h)) >= 0.4) / 0.6
        masks[:, 0, 0], masks[0, :, 1] = 1 / 0.6, 0.0
        yield {
            "W": rng.normal(size=(h, n)).round(2),
            "V": rng.normal(size=(c, h)).round(2),
            "x": rng.normal(size=(t, m, n)).round(2),
            "y": rng.integers(c, size=(t, m)),
            "masks": masks,
            "lr": 0.3,
        }


@exercise.fact(
    "the weights of a unit that is dropped for all examples do not change, and the "
    "others follow the gradient"
)
def _(function: Function, rng: np.random.Generator) -> bool:
    W, V = rng.normal(size=(3, 2)), rng.normal(size=(2, 3))
    x, y = rng.normal(size=(1, 4, 2)), np.array([[0, 1, 1, 0]])
    mask = np.array([[0.0, 2.0, 2.0], [0.0, 0.0, 2.0], [0.0, 2.0, 0.0], [0.0, 2.0, 2.0]])

    def loss(first: np.ndarray, second: np.ndarray) -> float:
        scores = (mask * np.maximum(x[0] @ first.T, 0)) @ second.T
        return float(np.mean(np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(4), y[0]]))

    new_W, new_V = (np.asarray(part) for part in function(W, V, x, y, mask[None], 1e-6))
    fallen = loss(W, V) - loss(new_W, new_V)
    gradient = np.concatenate([(W - new_W).ravel(), (V - new_V).ravel()]) / 1e-6
    rests = np.array_equal(new_W[0], W[0]) and np.array_equal(new_V[:, 0], V[:, 0])
    # To first order a step of descent lowers the loss by lr ‖gradient‖².
    return bool(rests and np.isclose(fallen, 1e-6 * gradient @ gradient, rtol=1e-3))


exercise.mistake("the mask is missing in your gradient of W", ("mask * (", "("))

exercise.mistake(
    "your gradient of W lacks the scale 1/(1 − p); multiply by the mask, which includes it",
    ("mask * (z > 0)", "(hidden > 0)"),
)

exercise.mistake(
    "you use the first mask in every step; each minibatch has its own mask",
    (", mask in zip(x, y, masks, strict=True)", " in zip(x, y, strict=True)"),
    ("= mask", "= masks[0]"),
    ("* mask", "* masks[0]"),
)

exercise.mistake(
    "you do not use the masks",
    (", mask in zip(x, y, masks, strict=True)", " in zip(x, y, strict=True)"),
    ("mask * np", "np"),
    ("mask * (", "("),
)

exercise.mistake(
    "you add up the gradients of the examples; the loss is a mean, so divide by m",
    (
        "back = error @ V * mask * (z > 0) / len(labels)\n"
        "        W, V = (W - lr * back.T @ inputs, V - lr * error.T @ hidden / "
        "len(labels))",
        "back = error @ V * mask * (z > 0)\n"
        "        W, V = (W - lr * back.T @ inputs, V - lr * error.T @ hidden)",
    ),
)

exercise.mistake(
    "the derivative of the ReLU is missing in your gradient of W: multiply by (Z > 0)",
    (
        "z = inputs @ W.T\n        hidden = mask * np.maximum(z, 0)",
        "hidden = mask * np.maximum(inputs @ W.T, 0)",
    ),
    ("* (z > 0) ", ""),
)

exercise.mistake(
    "you use the new V in the gradient of W; compute both gradients, then update both weights",
    (
        "back = error @ V * mask * (z > 0) / len(labels)\n"
        "        W, V = (W - lr * back.T @ inputs, V - lr * error.T @ hidden / "
        "len(labels))",
        "V = V - lr * error.T @ hidden / len(labels)\n"
        "        W = W - lr * (error @ V * mask * (z > 0) / len(labels)).T @ "
        "inputs",
    ),
)

exercise.mistake(
    "the mask is missing in your gradient of V; its factor is H, not max(Z, 0)",
    (
        "hidden = mask * np.maximum(z, 0)\n        scores = np.exp(hidden @ V.T)",
        "scores = np.exp(mask * np.maximum(z, 0) @ V.T)",
    ),
    (
        "W, V = (W - lr * back.T @ inputs, V - lr * error.T @ hidden / len(labels))",
        "step = lr * error.T @ np.maximum(z, 0) / len(labels)\n"
        "        W, V = (W - lr * back.T @ inputs, V - step)",
    ),
)

exercise.mistake(
    "your softmax runs over the examples; the probabilities of each row add up to 1",
    ("1, keepdims=True", "0"),
)

exercise.mistake(
    "your softmax runs over the whole minibatch; the probabilities of each row add up to 1",
    ("axis=1, keepdims=True", ""),
)

exercise.mistake(
    "you compute all gradients at the first weights; each step starts from the "
    "weights of the step before",
    ("def _(W, V, x, y, masks, lr):", "def _(W, V, x, y, masks, lr):\n    steps = []"),
    (
        "W, V = (W - lr * back.T @ inputs, V - lr * error.T @ hidden / "
        "len(labels))\n"
        "    return (W, V)",
        "steps.append((back.T @ inputs, error.T @ hidden / len(labels)))\n"
        "    return (W - lr * sum((step for step, _ in steps)), V - lr * "
        "sum((step for _, step in steps)))",
    ),
)
