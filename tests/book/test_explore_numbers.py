"""The figures to explore compute what optdl, torch or a closed form computes."""

import json
import math
import re
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import torch
from figures import box_muller, figure, normals, uniforms
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from scipy.special import softmax

from optdl import batchnorm as bn
from optdl import bnp, bnp_cnn, conditioning, dropout, erm, problems, quadratic
from optdl import initialization as init
from optdl import optimizers as opt
from optdl.optimizers import SGD, Momentum, run
from optdl.records import Record
from tools.layout import ROOT

pytestmark = pytest.mark.xdist_group("figures")

ONE, ZERO = np.ones(1), np.zeros(1)


def rms(values: Any) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def derivatives(f: Any, points: Any) -> list[np.ndarray]:
    """Return values, gradients and Hessians at many points by autograd."""
    p = torch.tensor(points, dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(f(p).sum(), p, create_graph=True)
    H = [torch.autograd.grad(g[:, i].sum(), p, retain_graph=True)[0] for i in range(len(p[0]))]
    return [v.detach().numpy() for v in (f(p), g, torch.stack(H, dim=1))]


# --- empirical risk minimization ---


def capacity_sample(m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the sample that the figure draws: for each example x, and then its noise."""
    drawn = uniforms(seed, 3 * m).reshape(m, 3)
    x = 2 * drawn[:, 0] - 1
    return x, np.sin(np.pi * x) + 0.3 * box_muller(drawn[:, 1:])


def capacity_risks(m: int, seed: int) -> np.ndarray:
    population = erm.NoisyCurve(lambda x: np.sin(np.pi * x), noise=0.3)
    return np.transpose(erm.capacity_sweep(population, *capacity_sample(m, seed), range(12)))


@figure("capacity", "n seed", (12, 1), (13, 59), (40, 3), (100, 1))
def test_samples_have_the_risks_of_optdl(n, seed):
    """{...sample(n, seed), risks: risks(sample(n, seed)).map(r => [r.empirical, r.risk])}"""
    x, y = capacity_sample(n, seed)
    return {"x": x, "y": y, "risks": capacity_risks(n, seed)}


@figure("capacity", n=[5, 6])
def test_lines_are_medians_of_samples(n):
    """medians(20, n).map(r => [r.empirical, r.risk])"""
    return np.median([capacity_risks(20, k) for k in range(1, n + 1)], axis=0)


@figure("needle", at=[-137.5, -20, 34.5, 61], atol=1e-4)
def test_needle_has_the_risks_of_its_points(at):
    """[errors(at), logistic(at), slope(at)]"""
    gaussians = problems.TwoGaussians(np.array([1.0, 0.5]), prior=0.4)
    x, y = (torch.tensor(v) for v in gaussians.sample(40, np.random.default_rng(2)))

    def margins(phi):
        return 2 * (torch.cat([phi.cos(), phi.sin()], dim=1) @ x.T) * y

    phi = torch.tensor([[math.radians(at)]], dtype=torch.float64)
    J, g, _ = derivatives(lambda p: torch.log2(1 + (-margins(p)).exp()).mean(dim=1), phi.tolist())
    return [(margins(phi) <= 0).sum(), J[0], g[0, 0]]


@figure("stopping")
def test_stopping_matches_the_recorded_run(shown):
    """{...curves, stops: Array.from({length: 100}, (_, k) => stop(k + 1))}"""
    kept = Record.load(ROOT / "experiments/results/recorded/erm-without-halt.json").curves
    names = "validation_error", "train_error", "batch_gradient_norm"
    validation, training, norm = (np.array(kept[f"seed 0: {name}"]) for name in names)
    assert_allclose(shown["NORM"], norm, atol=0.0051)
    stops = (erm.early_stopping(validation.tolist(), patience) for patience in range(1, 101))
    assert shown["stops"] == [{"best": best, "halt": halt} for best, halt in stops]
    return {"VALIDATION": 500 * validation, "TRAINING": 500 * training}


@figure("batch-size", "n scale", (1, 10), (32, 300), (1000, 300), (10_000, 1000))
def test_minibatch_progress_is_measured_and_predicted(shown, n, scale):
    """[minibatches(n, scale), measured(n, scale), progress(n, scale)]"""
    gradients = np.array(shown[0])
    noise = erm.standard_error(np.sqrt(scale), n)  # ‖g‖ = 1, hence σ² is the noise scale
    assert np.sqrt(2) * rms(gradients - [1, 0]) == pytest.approx(noise, rel=0.06)
    rates = np.geomspace(1e-4, 2, 20_001)  # the decrease of a step on a loss of curvature 1
    decrease = rates * gradients[:, 0].mean() - rates**2 * rms(gradients) ** 2
    assert shown[1] == pytest.approx(decrease.max() / 0.5, rel=1e-3)
    assert shown[2] == pytest.approx(1 / (1 + noise**2))
    assert shown[1] == pytest.approx(shown[2], abs=0.05)


# --- quadratic models ---


@figure("quadratic-bowl", "kappa lr start",
        (10, 1.7, [1.2, 0.85]), (37.5, 0.333, [-0.4, 0.9]), (4, 2.1, [1, 1]))  # fmt: skip
def test_bowl_runs_gradient_descent(kappa, lr, start):
    """path rate"""
    H = np.diag([1 / kappa, 1.0])
    path = run(SGD(lr), problems.quadratic(H), np.array(start, float), 40)
    return {"path": path, "rate": np.linalg.norm(np.eye(2) - lr * H, 2)}


@figure("descent", "start lr momentum",
        ([-2.6, 0.75], 1.8, 0), ([-1, 0.4], 2.2, 0.6), ([1, -0.9], 3, 0.3))  # fmt: skip
def test_valley_shows_the_path_of_momentum(shown, start, lr, momentum):
    """path steps"""
    valley = problems.quadratic(np.diag([0.05, 1.0]))
    path = run(Momentum(lr, momentum), valley, np.array(start), len(shown["path"]) - 1)
    outside = np.flatnonzero(np.linalg.norm(path, axis=1) > 0.1)[-1]
    return {"path": path, "steps": np.inf if outside == len(path) - 1 else outside + 1}


@figure("line-search", start=[(0.5, 0.8), (-0.3, -0.2), (0.16, 0.8)], b=[0.05, 0.2, 0.9])
def test_line_search_turns_by_right_angles(start, b):
    """{path: path(), angle: angle(...path().slice(0, 2), b), fraction: fraction(), ok: solved()}"""
    H, worst = np.diag([1.0, b]), ((1 - b) / (1 + b)) ** 2
    path = quadratic.exact_line_search(H, np.array(start), 12)
    fraction = (path[1] @ H @ path[1]) / (path[0] @ H @ path[0])
    solved = fraction > 0.99 * worst and b < 0.5
    return {"path": path, "angle": 90, "fraction": fraction, "ok": solved}


@figure("eigendirections", "w steep turn", ([1.1, 0.9], 9, -25), ([-0.4, 1.2], 3, 70))
def test_terms_match_the_eigenbasis(shown, w, steep, turn):
    """(({flat, steep, loss}) => [flat.alpha, steep.alpha, flat.term, steep.term, loss])(split())"""
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    R = np.array([[c, -s], [s, c]])
    H = R @ np.diag([1.0, steep]) @ R.T
    eigenvalues, vectors = quadratic.eigenbasis(H)
    a = vectors.T @ w
    assert_allclose(np.abs(shown[:2]), np.abs(a))  # an eigenvector has two signs
    assert_allclose(shown[2:4], eigenvalues * a**2 / 2)
    assert shown[4] == pytest.approx(problems.quadratic(H).value(np.array(w)))


@figure("centering", "shift angle", (0, 0), (2, 0.9), (0.8, 2.094), (4, -1))
def test_shifted_inputs_have_their_second_moments(shown, shift, angle):
    """(m => ({x: inputs(m), H: moments(m), kappa: kappa(m), path: path()}))(mean())"""
    x, path = np.array(shown["x"]), np.array(shown["path"])
    mean, covariance = quadratic.mean_and_covariance(x)
    assert_allclose(mean, [shift * np.cos(angle), shift * np.sin(angle)], atol=1e-12)
    assert_allclose(np.linalg.eigvalsh(covariance), [0.36, 1.0])
    H = quadratic.second_moment(x)
    lr = quadratic.optimal_step(np.linalg.eigvalsh(H))
    path = run(SGD(lr), problems.quadratic(H), path[0], len(path) - 1)
    kappa = conditioning.condition_number(H)
    return {"H": [H[0, 0], H[1, 1], H[0, 1]], "kappa": kappa, "path": path}


@figure("taylor", "w lr", (0.4, 1.0), (1.0, 0.7), (1.7, 2.0), (-2.5, 0.3))
def test_step_model_matches_taylor_expansion(w, lr):
    """[loss(w), slope(w), curvature(w), model(w, lr), loss(after(w, lr))]"""
    J, g, H = derivatives(lambda p: 1 - torch.exp(-(p[:, 0] ** 2) / 2), [[w]])
    gain, end = conditioning.step_gain(g[0], H[0], lr), w - lr * g[0, 0]
    return [J[0], g[0, 0], H[0, 0, 0], J[0] + gain, 1 - np.exp(-(end**2) / 2)]


# --- conditioning ---


@figure("sharpness", lr=[0.1, 0.2, 0.21, 0.25, 0.3, 0.35])
def test_sharpness_of_a_run_matches_autograd(shown, lr):
    """[path(), path().map(sharpness)]"""
    path = np.array(shown[0])
    _, g, H = derivatives(lambda p: (1 - (p[:, 0] * p[:, 1]) ** 2) ** 2 / 4, path)
    assert_allclose(path[1:], (path - lr * g)[:-1], rtol=1e-9)
    assert_allclose(shown[1], np.linalg.eigvalsh(H)[:, -1])
    assert np.prod(path[-1]) == pytest.approx(1, abs=1e-3)
    assert 2 * np.sum(path[-1] ** 2) < 2 / lr


STARTS = np.random.default_rng(0).uniform([-3.4, -2.7], [2.8, 2.1], (60, 2))


@figure("basins", lr=[0.1, 0.6, 0.75, 0.8], starts=[STARTS.tolist()])
def test_basins_match_optdl(shown, lr):
    """{minima: minima(), limits: minima().map(limit), path: path().slice(0, 31),
    ends: starts.map(p => basin(p, lr)).map(j => j < 0 ? NaN : j)}"""
    surface, minima = problems.mixture(), np.array(shown["minima"])
    assert_allclose([surface.gradient(p) for p in minima], np.zeros((3, 2)), atol=1e-9)
    return {
        "ends": conditioning.basins(surface, minima, STARTS, lr, 400),
        "limits": [2 / np.linalg.eigvalsh(surface.hessian(p))[-1] for p in minima],
        "path": run(SGD(lr), surface, np.array([-0.5, 1.6]), 30),
    }


@figure("clipping", "c limit", (0.1, 0.1), (0.5, 0.5), (3, 3), (9, np.inf))
def test_cliff_is_clipped_by_norm(shown, limit):
    """{...(limit === c ? clipped() : free()), largest: largest()}"""
    cliff, lr, path = conditioning.recurrent_cliff(), 0.3, np.array(shown["path"])
    gradients = [cliff.gradient(p) for p in path]
    steps = [lr * conditioning.clip_by_norm(g, limit) for g in gradients[:-1]]
    assert_allclose(path[1:], path[:-1] - steps, rtol=1e-6, atol=1e-9)
    longest = np.linalg.norm(np.diff(path, axis=0), axis=1).max()
    assert longest <= lr * limit + 1e-12
    outside = (path < [3.9, -3.4]).any(axis=1) | (path > [6.3, -1.2]).any(axis=1)
    assert outside.any() == (limit > shown["largest"])
    left = outside.argmax() if outside.any() else -1
    return {"norms": np.linalg.norm(gradients, axis=1), "longest": longest, "left": left}


@figure("saddle", rtol=1e-5, along=[-0.8], side=[1, -1],
        lr=[0.05, 0.3, 0.5], d=[0.5, 0.037, 1e-5, 1e-9])  # fmt: skip
def test_saddle_is_left_after_the_steps_predicted(shown, lr, d, side, along):
    """{path: path(), law: escape(d, lr)}"""
    start = np.array([side * d + along, side * d - along]) / np.sqrt(2)
    path = run(SGD(lr), conditioning.two_weights(), start, len(shown["path"]) - 1)
    distance = np.abs(path.sum(axis=1)) / np.sqrt(2)
    assert distance[:-1].max() < 1 <= distance[-1]
    law = conditioning.escape_steps(d, 1.0, lr, 1.0)
    assert abs(len(path) - 1 - law) <= 3 / lr  # far from the saddle the growth is another one
    return {"path": path, "law": law}


@figure("saddle", side=[0], along=[-0.8, 2.2, 2.8], lr=[0.05, 0.3, 0.5])
def test_start_on_the_line_never_leaves(shown, along, lr):
    """[path(), fig.sentence().includes('converge')]"""
    a, b = np.transpose(shown[0])
    np.testing.assert_array_equal(a, -b)
    assert shown[1] == np.all(np.diff(np.abs(a)) < 0) == (lr * (1 + along**2 / 2) < 2)


@figure("uphill", p=[[1.5, 0.4], [-0.3, 1.1], [0.0, -0.7], [2.0, 0.0], [0.4, 0.0]],
        c=[0, 0.3, 0.9], atol=1e-6)  # fmt: skip
def test_uphill_model_matches_optdl(p, c):
    """{...model(p, c), uphill: uphill(p, c),
    values: [0, 0.13, 0.8, 2].map(r => [linear, quadratic, actual].map(f => f(p, c, r)))}"""

    def J(q):
        x, y = q[:, 0], q[:, 1]
        return (x**2 + 5 * y**2) / 2 + c * ((x**4 + y**4) / 4 - x**2)

    (at,), (g,), (H,) = derivatives(J, [p])

    def change(lr):
        return J((p - lr * g)[None])[0] - at

    gain, bound = conditioning.step_gain, conditioning.uphill_step(g, H)
    changes = [[-lr * g @ g, gain(g, H, lr), change(lr)] for lr in (0, 0.13, 0.8, 2)]
    crossing = brentq(change, 0.1, 8)
    return {"bound": bound, "best": bound / 2, "values": at + changes, "uphill": crossing}


@figure("inexact", "lr bias sigma",
        (0.2, [0.3, 0.3], 0.5), (0.85, [-0.7, 0.1], 1.0), (0.05, [0, 0], 0))  # fmt: skip
def test_inexact_gradients_end_where_predicted(shown, lr, bias, sigma):
    """{errors: errors(), path: path(), limit: limit(bias), variance: variance(lr, sigma),
    parts: parts(lr, bias, sigma)}"""
    h, errors = np.array([0.3, 2.0]), np.array(shown["errors"])
    uncertainty = 4 * sigma / np.sqrt(len(errors))
    assert_allclose(errors.mean(axis=0), bias, atol=uncertainty)
    assert_allclose(errors.std(axis=0), sigma, atol=uncertainty)
    draw = iter(errors)
    path = run(SGD(lr), lambda w: h * w + next(draw), np.array([-3.4, 1.6]), 400)
    limit = conditioning.limit_point(np.diag(h), np.zeros(2), np.array(bias))
    variance = conditioning.stationary_variance(h, lr, sigma)
    parts = [h @ limit**2 / 2, h @ variance / 2]
    return {"path": path, "limit": limit, "variance": variance, "parts": parts}


# --- optimizers ---


def slowest(lr: float, alpha: float, kappa: float) -> float:
    """Return the rate of momentum on a bowl with many eigenvalues between 1/κ and 1."""
    spectrum = np.geomspace(1 / kappa, 1, 50)
    return max(np.abs(np.roots([1, -(1 + alpha - lr * h), alpha])).max() for h in spectrum)


@figure("momentum-plane", "named x alpha kappa",
        ("overdamped", 0.05, 0.5, 50), ("complex", 1.3, 0.85, 50), ("alternating", 2.72, 0.4, 50),
        ("divergent", 3.9, 0.6, 50), ("plain", 0.7, 0.0, 50), ("critical", 0.25, 0.25, 50),
        ("limit", 3.0, 0.5, 50), ("still", 0.0, 0.5, 50), ("complex", 0.3, 0.8, 50),
        ("complex", 2.6, 0.7, 9), ("complex", 3.06, 0.57, 50), ("plain", 1, 0, 9),
        ("complex", 3.7, 0.86, 50), ("alternating", 3.1, 0.57, 50), ("divergent", 4.2, 0, 50),
        ("limit", 3.98, 0.99, 50))  # fmt: skip
def test_plane_shows_the_iteration_of_momentum(shown, named, x, alpha, kappa):
    """{values: eigenvalues().sort(([a, b], [c, d]) => a - c || b - d), path: path(), rate: rate(),
    bowl: bowl(), run: run(), named: regime(), damping: damping(), ...extent()}"""
    values = np.sort_complex(np.linalg.eigvals(np.array([[1 + alpha - x, -alpha], [1.0, 0.0]])))
    both = run(Momentum(x, alpha), lambda w: w * [1, 1 / kappa], np.ones(2), 200)
    path, size = both[:61, 0], np.abs(both[:61, 0])
    if x < 2 * (1 + alpha):
        assert size.max() <= shown["top"] <= max(1.5, 2.6 * size.max())
    facts = {"values": np.transpose([values.real, values.imag]), "path": path, "named": named}
    facts |= {"rate": np.abs(values).max(), "bowl": slowest(x, alpha, kappa)}
    facts |= {"run": np.linalg.norm(both, axis=1) / math.sqrt(2)}
    if named in ("overdamped", "complex"):
        facts["damping"] = opt.damping_ratio(x, alpha, 1.0)
    return facts | {"left": np.argmax(np.append(size, np.inf) > shown["top"])}


@figure("momentum-plane", kappa=[4, 50, 1000])
def test_plane_compares_the_best_settings(shown, kappa):
    """{...best(), errors: errors()}"""
    lr, alpha = shown["lr"], shown["alpha"]
    near = 0.95 * alpha, alpha, min(1.05 * alpha, 0.9999)
    neighbors = [slowest(lr * factor, other, kappa) for factor in (0.9, 1, 1.1) for other in near]
    assert min(neighbors) > neighbors[4] - 1e-6
    bowl = problems.quadratic(np.diag([1 / kappa, 1.0]))
    methods = SGD(2 / (1 + 1 / kappa)), Momentum(lr, alpha)
    errors = [np.linalg.norm(run(m, bowl, np.ones(2), 200), axis=1) for m in methods]
    return {"rate": neighbors[4], "errors": np.array(errors) / math.sqrt(2)}


@figure("momentum-plane", "noise x alpha", (1, 0.3, 0.8), (1, 0.05, 0.9), (1, 1, 0), (1, 3, 0.6))
def test_noise_levels_off_where_the_covariance_does(shown, x, alpha):
    """floor measured path"""
    push = x * 0.05 * np.ones((2, 1))
    M = opt.momentum_matrix(x, alpha, 1.0)
    floor = math.sqrt(scipy.linalg.solve_discrete_lyapunov(M, push @ push.T)[0, 0])
    assert shown["measured"] == pytest.approx(floor, rel=0.15)
    draw = iter(0.05 * normals(1, 60))
    path = run(Momentum(x, alpha), lambda w: w + next(draw), np.ones(1), 60).ravel()
    return {"floor": floor, "path": path}


SURFACES = {
    "valley": problems.valley(0.05),
    "saddle": problems.saddle(),
    "beale": problems.beale(),
    "rosenbrock": problems.rosenbrock(),
}


def compare_race(shown: dict[str, Any], problem: problems.Problem, start: Any) -> None:
    """Compare each step of the race with that of optdl from the iterate before it.

    Near a minimum the adaptive methods magnify rounding errors from step to step.
    """
    memory, tiny = {"alpha": 0.9}, {"rho": 0.9, "delta": 1e-6}
    methods = {
        "SGD": (opt.SGD, {}),
        "Momentum": (opt.Momentum, memory),
        "Nesterov": (opt.Nesterov, memory),
        "AdaGrad": (opt.AdaGrad, {"delta": 1e-7}),
        "RMSProp": (opt.RMSProp, tiny),
        "RMSProp + Nesterov": (opt.RMSPropNesterov, tiny | memory),
        "AdaDelta": (opt.AdaDelta, {"rho": 0.9, "delta": 1e-3}),
        "Adam": (opt.Adam, {"beta1": 0.9, "beta2": 0.999, "delta": 1e-8}),
        "Newton": (opt.Newton, {"hessian": problem.hessian}),
    }
    assert shown["names"] == list(methods)
    for name, lr, path in zip(methods, shown["rates"], map(np.array, shown["paths"]), strict=True):
        make, constants = methods[name]
        method = make(lr=lr, **constants)
        far = np.flatnonzero(np.abs(path).max(axis=1) >= 50)
        assert len(path) == 1 + min([300, *far]), name
        state, steps = method.init(path[0]), [start]
        for before in path[:-1]:
            after, state = method.step(before, state, problem.gradient)
            steps.append(after)
        assert_allclose(path, steps, rtol=1e-6, atol=1e-6, err_msg=name)


@figure("optimizer-race", "surface first",
        *((name, None) for name in SURFACES), ("beale", [1.3, 0.8]))  # fmt: skip
def test_race_runs_every_method_of_optdl(shown, surface):
    """(first && set({start: first}), {names: names(), paths: paths(), start: state.start,
    rates: names().map(n => state["lr-" + n])})"""
    compare_race(shown, SURFACES[surface], shown["start"])


@figure("optimizer-race", angle=[30, 45, 90])
def test_rotated_valley_troubles_diagonal_methods(shown, angle):
    """{names: names(), paths: paths(), rates: names().map(n => state["lr-" + n]),
    losses: [losses(), (set({angle: 0}), losses())]}"""
    c, s = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    R = np.array([[c, -s], [s, c]])
    compare_race(shown, opt.change_of_variable(SURFACES["valley"], R.T), R @ [0.6, 1.0])
    rotated, straight = np.array(shown["losses"])
    changed = np.abs(rotated - straight) > 1e-6 * straight + 1e-15
    diagonal = {"AdaGrad", "RMSProp", "RMSProp + Nesterov", "AdaDelta", "Adam"}
    assert set(np.array(shown["names"])[changed]) == (diagonal if angle < 90 else set())


@figure("optimizer-race", "surface lr-SGD sgd newton",
        ("valley", 2.5, "diverged", "0"), ("saddle", 1, "escaped", "at the saddle"))  # fmt: skip
def test_race_names_what_diverged_or_escaped(shown, sgd, newton):
    """(set({step: 300}), outcomes().map(words => words.split(',')[0]))"""
    assert (shown[0], shown[-1]) == (sgd, newton)


@figure("schedule", fall=["constant", "cosine", "linear", "stable"],
        plan=[(0.02, 0), (0.6, 20), (1.0, 100)])  # fmt: skip
def test_schedule_is_followed_by_sgd(shown, plan, fall):
    """(set({lr: plan[0], warmup: plan[1]}), {rates: rates(), mean: train().mean,
    paths: [0, 1].map(path), quiet: fig.sentence().match(/would be ([.0-9]+)/)[1]})"""
    lr, warmup = plan
    left = 300 - warmup
    rate = {"cosine": opt.CosineDecay(lr, left), "linear": opt.LinearDecay(lr, left, last=0.0),
            "stable": opt.StableDecay(lr, left - 60, 60)}.get(fall, lr)  # fmt: skip
    if warmup or fall == "constant":
        rate = opt.Warmup(rate, steps=max(warmup, 1))
    draw = iter(0.3 * normals(1, 200, 300, 2).swapaxes(0, 1))

    def gradient(p: np.ndarray) -> np.ndarray:  # of many runs at once
        return np.stack([p[:, 0] + 0.3 * p[:, 0] ** 3, 0.03 * p[:, 1]], axis=1)

    start = np.tile([4.0, 3.0], (200, 1))
    paths = run(SGD(rate), lambda p: gradient(p) + next(draw), start, 300)
    still = run(SGD(rate), gradient, start[:1], 300)
    losses, quiet = (p**2 @ [0.5, 0.015] + 0.075 * p[:, :, 0] ** 4 for p in (paths, still))
    if quiet[-1, 0] > 1e-3:  # smaller ones are shown with a power of ten
        assert float(shown["quiet"]) == pytest.approx(quiet[-1, 0], abs=5e-5)
    rates = [rate(k) for k in range(300)]
    return {"rates": rates, "paths": paths[:, :2].swapaxes(0, 1), "mean": losses.mean(axis=1)}


def iterates(lr: Any, n: int) -> np.ndarray:
    """Return the iterates of 200 runs by optdl, a column for each."""
    draw = iter(normals(1, 200, 1000).T / math.sqrt(n))
    return np.asarray(run(SGD(lr), lambda theta: theta + next(draw), np.full(200, 5.0), 1000))


@figure("averaging", "lr n", (0.006, 1), (0.5, 1), (1.9, 1), (0.5, 16))
def test_averaging_has_the_errors_of_sgd(shown, lr, n):
    """...errors path floor"""
    path, falling = iterates(lr, n), iterates(opt.PowerDecay(lr, power=1.0, tau=20), n)
    average = [rms(path[k // 2 + 1 : k + 1].mean(axis=0)) ** 2 for k in range(1, 1001)]
    floor = opt.noise_floor(lr, 1.0, 1 / math.sqrt(n))
    if lr == 0.5:  # the start is forgotten
        ends = [shown["constant"][-1], shown["average"][-1]]
        variance = opt.averaged_variance(lr, 1.0, 1 / math.sqrt(n), 500)
        assert ends == pytest.approx([floor, variance], rel=4 * math.sqrt(2 / 200))
    constant, falling = (np.mean(v**2, axis=1) for v in (path, falling))
    errors = {"constant": constant, "average": [25, *average], "falling": falling}
    return errors | {"path": path[:, 0], "floor": floor}


# --- initialization ---

TORCH = {"tanh": torch.tanh, "relu": torch.relu, "sigmoid": torch.sigmoid, "linear": torch.clone}


@figure("signal", f=list(TORCH), scale=[0.5, 1.7, 3.0])
def test_signal_matches_optdl_and_torch(f, scale):
    """(({activations, gradients}) => ({activations, gradients}))
    (measure(draw(7), scale, ACTIVATIONS[f]))"""
    x, upstream, weights = np.split(normals(7, 2000 + 50 * 100**2), [1000, 2000])
    x, layers = x.reshape(10, 100), list(weights.reshape(50, 100, 100) * scale / 10)
    h = [torch.tensor(x, requires_grad=True)]
    for W in layers:
        h.append(TORCH[f](h[-1] @ torch.tensor(W).T))
    gradients = torch.autograd.grad(h[-1], h, torch.tensor(upstream.reshape(10, 100)))
    squares = [(g**2).mean().item() for g in gradients]
    return {"activations": init.measured_second_moments(x, layers, f), "gradients": squares}


NODES, WEIGHTS = np.polynomial.legendre.leggauss(200)
T = 4.5 * (NODES + 1)
DENSITY = 4.5 * WEIGHTS * np.exp(-T * T / 2) / np.sqrt(2 * np.pi)


def wide_layers(name: str, scale: float) -> dict[str, Any]:
    """Return both mean squares in layers of infinite width, by Gauss's rule on each side of 0."""
    f, forward, factors = init.ACTIVATIONS[name], [1.0], [1.0]
    for _ in range(50):
        z = scale * math.sqrt(forward[-1]) * T
        forward.append(DENSITY @ (f.value(z) ** 2 + f.value(-z) ** 2))
        factors.append(scale**2 * DENSITY @ (f.slope(z) ** 2 + f.slope(-z) ** 2))
    return {"activations": forward, "gradients": np.cumprod([1, *factors[:0:-1]])[::-1]}


@figure("signal", f=list(TORCH), scale=[0.3, 1.0, 2.5], rtol=1e-4)
def test_prediction_matches_wide_layers(f, scale):
    """predict(scale, ACTIVATIONS[f])"""
    return wide_layers(f, scale)


@figure("signal", f=list(TORCH))
def test_curves_cross_one_where_quadrature_does(shown, f):
    """sweep(ACTIVATIONS[f]).crossings"""
    bounded = f in ("tanh", "sigmoid")
    assert (shown["forward"] is None) == bounded
    for way, kind, end in (("forward", "activations", -1), ("backward", "gradients", 0))[bounded:]:
        below, above = (wide_layers(f, factor * shown[way])[kind][end] for factor in (0.99, 1.01))
        assert below < 1 < above


# --- batch normalization ---


@figure("running-mean", doublings=[0, 1, 3, 8], rho=[0.0, 0.9, 0.99], moves=[False, True])
def test_running_mean_matches_optdl(shown, doublings, rho, moves):
    """...shown ...numbers"""
    m, truth = 2**doublings, 2 + moves * 0.02 * np.arange(200)
    batches = truth[:, None] + normals(1, 200, 256)[:, :m]
    means, example = batches.mean(axis=1), truth + 1.5
    running = bn.moving_average(means[:, None], rho, ZERO).ravel()
    with_example = np.column_stack([example, batches[:, 1:]])  # one feature for each step
    layer = np.ones(200), np.zeros(200)
    training = bn.batchnorm_forward(with_example.T, *layer)[0][0]
    assert np.abs(training).max() <= np.sqrt(m - 1)
    late = moves * (0.02 * sum(k * (1 - rho) * rho**k for k in range(3000)))  # of 0, 0.02, 0.04, …
    values = {"truth": truth, "means": means, "running": running, "training": training}
    values |= {"jitter": rms(means - truth), "predicted": 1 / np.sqrt(m), "lag": late}
    values |= {"behind": truth[-1] - running[-1], "memory": 1 / (1 - rho)}
    if m == 1:
        assert shown["inference"] is None
        return values
    variances = bn.moving_average(batches.var(axis=1, ddof=1, keepdims=True), rho, ONE).ravel()
    inference = bn.batchnorm_inference(example[None], *layer, running, variances).ravel()
    return values | {"inference": inference, "gap": rms((training - inference)[100:])}


@figure("batch-of-two", "seed at", (1, 3.6), (2, 5.0), (3, -4.0))
def test_lines_of_both_minibatches_match_optdl(shown, seed, at):
    """Object.fromEntries(simulate(at, draw(seed)).map(r => [r.m, r]))"""
    there = bn.batchnorm_inference(np.array([[at]]), ONE, ZERO, 3 * ONE, 4 * ONE)
    expected = {}
    for m in (2, 64):
        others = 3 + 2 * normals(seed, 40, 63)[:, : m - 1]
        batches = np.column_stack([np.full(40, at), others]).T
        outputs, _ = bn.batchnorm_forward(batches, np.ones(40), np.zeros(40))
        mean, std = np.transpose([(s["mean"], s["deviation"]) for s in shown[str(m)]["statistics"]])
        assert_allclose((batches - mean) / std, outputs, atol=1e-6)
        expected[str(m)] = {"outputs": outputs[0], "gap": rms(outputs[0] - there)}
    return expected


# --- dropout ---

OUTPUTS = {
    "softmax": lambda s: softmax(s, axis=-1),
    "relu": lambda s: np.maximum(s, 0).sum(axis=-1, keepdims=True),
    "linear": lambda s: s.sum(axis=-1, keepdims=True),
}


def dropout_network(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs and the weights as the figure draws them, with one decimal."""
    x, W = np.split(normals(seed, 24), [6])
    return np.floor(10 * (0.5 + np.abs(x)) + 0.5) / 10, np.floor(10 * W + 0.5).reshape(3, 6) / 10


@figure("subnetworks", seed=[1, 2, 3], kind=list(OUTPUTS), p=[0.05, 0.5, 0.8])
def test_ensemble_of_all_masks_matches_optdl(seed, kind, p):
    """(all => ({...ensemble(draw(seed), kind, p), masks: all.map(mask),
    chances: all.map(k => chance(k, p))}))([...Array(64).keys()])"""
    (x, W), masks = dropout_network(seed), dropout.subnetwork_masks(6)
    outputs = OUTPUTS[kind]((masks * x) @ W.T)
    chances = np.prod(np.where(masks == 1, 1 - p, p), axis=1)
    values = {"all": outputs, "masks": masks, "chances": chances, "arithmetic": chances @ outputs}
    if kind == "softmax":
        values["geometric"] = dropout.geometric_ensemble(W, np.zeros(3), x, 1 - p)
    return values | {"scaled": OUTPUTS[kind]((1 - p) * (W @ x))}


def test_drawn_masks_match_optdl(figures):
    stage = figures.fresh("subnetworks", p=0.3, kind="relu")
    for label in ("Draw 100", "Draw a mask"):
        stage.get_by_role("button", name=label).press("Enter")
    masks = dropout.dropout_mask(uniforms(1000, 101 * 6).reshape(101, 6), 0.3) > 0
    numbers = masks @ 2 ** np.arange(6)[::-1]
    x, W = dropout_network(1)
    shown = figures.ask("subnetworks", "{...fig.state, ...fig.now()}")
    assert shown["k"] == numbers[-1]
    assert shown["counts"] == np.bincount(numbers, minlength=64).tolist()
    assert shown["sofar"] == pytest.approx([OUTPUTS["relu"]((masks * x) @ W.T).mean()])


# --- batch normalization preconditioning ---


def hessians(H: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return P and the Hessian in the three coordinate systems I, U and UD."""
    mean, var = bnp.batch_statistics(H)
    U, D = bnp.preconditioner(mean, np.sqrt(var))
    whole = bnp.layer_hessian(H, np.ones(len(H)))
    return [(P, P.T @ whole @ P) for P in (np.eye(3), U, U @ D)]


@figure("bnp-cloud", "mean s1 s2 r", ([3, 2], 1.2, 0.3, 0.5), ([-2.7, 5.1], 0.1, 1.75, -0.95),
        ([0, 0], 2, 0.35, 0.3), ([0, 0], 1, 1, 0.8), ([0, 0], 0.1, 0.1, 0), ([0, 0], 1, 1, 0),
        atol=1e-8)  # fmt: skip
def test_cloud_has_the_condition_numbers_of_bnp(shown, mean, s1, s2, r):
    """points starts systems"""
    H, starts, systems = np.array(shown["points"]), np.array(shown["starts"]), []
    assert_allclose(H.mean(axis=0), mean, atol=1e-9)
    assert_allclose(H.std(axis=0), [s1, s2], rtol=1e-9)
    assert np.corrcoef(H.T)[0, 1] == pytest.approx(r, abs=1e-9)
    assert starts[0, 0] == 0  # the bias starts right
    for i, (P, hessian) in enumerate(hessians(H)):
        assert_allclose(P @ starts[i], starts[0], atol=1e-9)
        values, count = np.linalg.eigvalsh(hessian), shown["systems"][i]["count"]
        lr = 2 / (values[0] + values[2])
        path = run(SGD(lr), problems.quadratic(hessian), starts[i], 20)
        before, after = (np.abs(1 - lr * values).max() ** n for n in (count - 1, count))
        assert after <= 0.01 * (1 + 1e-9)
        assert before > 0.01  # from the worst start
        systems.append({"hessian": hessian, "values": values, "lr": lr, "path": path})
        systems[i]["kappa2"] = bnp.condition_numbers(H)[i] ** 2
    return {"systems": dict(enumerate(systems))}


@figure("gain", "inputs hidden", (3.0, 0.8), (0.0, 0.8), (1.5, 3.0), (6.0, 0.0))
def test_gain_matches_both_spectra(shown, inputs, hidden):
    """{H: [points(inputs, 1), points(hidden, 0.6)], methods: methods()}"""
    spectra = []
    for H, mean, std in zip(np.array(shown["H"]), (inputs, hidden), (1.0, 0.6), strict=True):
        assert_allclose(H.mean(axis=0), mean, atol=1e-9)
        assert_allclose(H.std(axis=0), std, rtol=1e-9)
        assert np.corrcoef(H.T)[0, 1] == pytest.approx(0.5)
        spectra.append([np.linalg.eigvalsh(hessian) for _, hessian in hessians(H)])
    systems = {"plain": (0, 0), "inputs centered": (1, 0), "BN": (0, 2), "BNP": (2, 2)}
    for method, (name, kinds) in zip(shown["methods"], systems.items(), strict=True):
        values = [spectra[layer][kind] for layer, kind in enumerate(kinds)]
        kappa = np.max(values) / np.min(values)
        count = conditioning.iterations_needed(kappa, 0.01)
        assert_allclose(np.sort(method["values"]), values)
        assert method["kappa"] == pytest.approx(kappa)
        assert (method["name"], method["count"]) == (name, count)


# --- convolutions ---

STATISTICS = (ROOT / "book/bnp_cnn/statistics.md").read_text("utf-8")
IMAGE = json.loads(re.search(r"(?s)image = np\.array\((.*?)\)", STATISTICS)[1])
IMAGES = [IMAGE, np.ones((5, 5)).tolist(), (9 * np.eye(25)[12]).reshape(5, 5).tolist()]


@figure("kernel-entry", image=IMAGES, atol=1e-6)
def test_kernel_columns_have_the_statistics_of_optdl(image):
    """columns moments channel bound"""
    h = np.array(image, float)[None, None]
    mean, var = bnp_cnn.exact_column_statistics(h, 3)
    channel_mean, channel_var = bnp_cnn.channel_statistics(h)
    return {
        "columns": bnp_cnn.convolution_matrix(h, 3).T,
        "moments": np.column_stack([mean, np.sqrt(var)]),
        "channel": [channel_mean[0], np.sqrt(channel_var[0])],
        "bound": bnp_cnn.statistics_bound(h, 3)[0],
    }


@figure("kernel-entry", stride=[1, 2], padding=[0, 1, 2])
def test_every_stride_gives_the_windows_of_torch(stride, padding):
    """{columns: columns(), moments: moments(), pixels: [0, 1, 2, 3, 4, 5, 6, 7, 8].map(k =>
    (set({i: Math.floor(k / 3), j: k % 3}), seen().filter(met => !met.border).length))}"""

    def unrolled(image: Any) -> np.ndarray:
        maps = torch.tensor(image, dtype=torch.float64)[None, None]
        return torch.nn.functional.unfold(maps, 3, padding=padding, stride=stride)[0].numpy()

    columns, pixels = unrolled(IMAGE), unrolled(np.ones((5, 5))).sum(axis=1)
    moments = np.column_stack([columns.mean(axis=1), columns.std(axis=1)])
    return {"columns": columns, "moments": moments, "pixels": pixels}
