"""The page of conventions: each cell of its tables is a claim, and each claim is tried on a rule.

A rule is a source's update, written out from its box or its documentation; only those of this
course and of torch are the real thing. The cells of a row, put into the formula of the method, must
take the same steps.
"""

import ast
import dataclasses
import inspect
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from optdl import optimizers
from tools.layout import ROOT

PAGE = (ROOT / "book" / "conventions.md").read_text("utf-8")
Gradient = Callable[[int, float], float]
"""The number of the step, from 0, and the parameter → the derivative there."""


class Rule(NamedTuple):
    """A source's way to step: gradient, rates, options → the change of θ in each step."""

    moves: Callable[..., Iterator[float]]
    defaults: dict[str, float | None]
    """The value of each option when nothing is said; None when one must be given."""
    first: int = 0
    """The first step whose gradient is remembered."""

    def __call__(
        self, gradient: Gradient | Sequence[float], rates: Sequence[float], **options: float
    ) -> list[float]:
        """Return the moves; gradients may be listed, and options that it lacks are dropped."""
        slope = gradient if callable(gradient) else lambda t, theta: gradient[t]
        unset = {name: 0.0 for name, value in self.defaults.items() if value is None}
        given = unset | {name: x for name, x in options.items() if name in self.defaults}
        with np.errstate(divide="ignore", invalid="ignore"):
            given.pop("rate", None)
            return [float(move) for move in self.moves(slope, rates, **given)]


def of_optdl(name: str, options: dict[str, str], _: str) -> Rule:
    make = getattr(optimizers, name)

    def moves(gradient: Gradient, rates: Sequence[float], **given: float) -> Iterator[float]:
        opt = make(lr=lambda k: rates[k], **{options[key]: value for key, value in given.items()})
        theta = np.zeros(1)
        state = opt.init(theta)
        for t in range(len(rates)):
            new, state = opt.step(theta, state, lambda at, t=t: np.array([gradient(t, at[0])]))
            yield (new - theta)[0]
            theta = new

    fields = {field.name: field.default for field in dataclasses.fields(make)}
    known = {key: fields[own] for key, own in ({"rate": "lr"} | options).items()}
    return Rule(moves, {k: None if v is dataclasses.MISSING else v for k, v in known.items()})


def of_torch(name: str, options: dict[str, str], flag: str) -> Rule:
    """Return the rule of an optimizer of torch; Dampened looks like a moving average."""
    make = torch.optim.SGD if name == "Dampened" else getattr(torch.optim, name)

    def moves(gradient: Gradient, rates: Sequence[float], **given: float) -> Iterator[float]:
        arguments: dict[str, Any] = {options[key]: value for key, value in given.items()}
        if "beta1" in arguments:
            arguments["betas"] = (arguments.pop("beta1"), arguments.pop("beta2"))
        arguments |= {flag: True} if flag else {}
        arguments |= {"dampening": arguments["momentum"]} if name == "Dampened" else {}
        theta = torch.zeros(1, dtype=torch.float64, requires_grad=True)
        opt = make([theta], **arguments)
        for t, rate in enumerate(rates):
            before = theta.item()
            theta.grad = torch.tensor([gradient(t, before)], dtype=torch.float64)
            opt.param_groups[0]["lr"] = rate
            opt.step()
            yield theta.item() - before

    documented = {k: v.default for k, v in inspect.signature(make).parameters.items()}
    documented["beta1"], documented["beta2"] = documented.get("betas", (None, None))
    return Rule(moves, {k: documented[own] for k, own in ({"rate": "lr"} | options).items()})


def from_formulas(options: str, update: str, move: str, *rest: str) -> Rule:
    defaults = eval(f"dict({options})")
    said = {"at": "theta", "begins": "", "first": "0"} | dict(x.split(" ", 1) for x in rest)

    def moves(gradient: Gradient, rates: Sequence[float], **given: float) -> Iterator[float]:
        names = {"sqrt": np.sqrt, "theta": 0.0} | dict.fromkeys("vmrD", np.float64(0))
        names |= defaults | given
        names |= {said["begins"]: np.float64(names.get("start", 0))}
        for t, rate in enumerate(rates):
            names |= {"t": t, "rate": rate, "g": gradient(t, eval(said["at"], names))}
            exec(update, names)
            step = eval(move, names)
            names["theta"] += step
            yield step

    return Rule(moves, defaults, int(said["first"]))


def rule_of(text: str) -> Rule:
    if known := re.fullmatch(r"(optdl|torch) (\w+)\((.*)\) ?(\w*)", text):
        options = dict(option.split("=") for option in known[3].split(", ") if option)
        return (of_optdl if known[1] == "optdl" else of_torch)(known[2], options, known[4])
    return from_formulas(*(part.strip() for part in text.split("|")))


TABLES = Path(__file__).with_name("conventions.txt").read_text("utf-8")
RULES: dict[str, dict[str, Rule]] = {}
for method, body in re.findall(r"^= (.+)\n((?:.+\n)+)", TABLES, re.MULTILINE):
    lines = [line.split(":", 1) for line in body.splitlines()]
    RULES[method] = {source: rule_of(text.strip()) for source, text in lines}


# --- What a cell can say ----------------------------------------------------------------------

CELLS: dict[str, dict[str, str]] = {
    "Step": {r"$\theta \leftarrow \theta - \eta g$": "move = -rate*g"},
    "First velocity": {"0": "", "an input": "v = start if t == 0 else v"},
    "Factor of the gradient": {
        "1": "",
        r"1, then $1 - \alpha$": "h = g if t == 0 else (1 - alpha)*g",
    },
    "Velocity": {
        r"$v \leftarrow \alpha v - \eta g$": "v = alpha*v - rate*h; moved = v",
        r"$b \leftarrow \alpha b + g$": "v = alpha*v + h; moved = -rate*v",
    },
    "Gradient at": {
        r"the interim point $\theta + \alpha v$": "move = moved",
        "its own θ, which is our interim point": "move = alpha*moved - rate*h",
        r"$\theta$": "move = moved",
    },
    "First r": {
        "0": "",
        "0.1": "r = 0.1 if t == 0 else r",
        "an input": "r = start if t == 0 else r",
    },
    "δ": {
        "no δ": "",
        r"inside: $\sqrt{\delta + r}$": "inside = delta",
        "inside both roots": "within = delta",
        r"outside: $\delta + \sqrt r$": "outside = delta",
        r"beside $\sqrt{\hat r}$": "beside = delta",
        r"beside $\sqrt r$": "beside = delta/sqrt(1 - old**n)",  # by which r̂ is larger
    },
    "ρ or β weighs": {"the old average": "old = share", "the new gradient": "old = 1 - share"},
    "Averages steps": {"before the rate": "e = d", "after the rate": "e = rate*d"},
    "The shares weigh": {
        "the old average": "older, old = beta1, beta2",
        "the new gradient": "older, old = 1 - beta1, 1 - beta2",
    },
    "θ shrinks by": {
        r"$1 - \eta\omega$": "shrink = rate*decay*theta",
        r"$1 - \omega$": "shrink = decay*theta",
        r"nothing of its own: ωθ is added to $g$": "g = g + decay*theta",
    },
}
"""What each cell of a column stands for in the formula of its method."""
AVERAGED = "r = old*r + (1 - old)*g*g if t >= first else r"
ROOT = "root = outside + sqrt(inside + r)"
ADAM = [
    *("The shares weigh", "m = older*m + (1 - older)*g if t >= first else m", AVERAGED),
    *("n = t + 1 - first", "δ", "r_hat = r/(1 - old**n)"),
    "move = -rate*m/(1 - older**n)/(beside + sqrt(r_hat)) - shrink",
]
FORMS = {
    "SGD": ["Step"],
    "Momentum": ["First velocity", "h = g", "Factor of the gradient", "Velocity", "move = moved"],
    "Nesterov momentum": ["h = g", "Velocity", "Gradient at"],
    "AdaGrad": ["First r", "r = r + g*g if t >= first else r", "δ", ROOT, "move = -rate*g/root"],
    "RMSProp": ["ρ or β weighs", AVERAGED, "δ", ROOT, "move = -rate*g/root"],
    "RMSProp with momentum": [
        *("old = share", AVERAGED, "δ", ROOT, "h = g/root", "Velocity", "Gradient at"),
    ],
    "AdaDelta": [
        *("D = first*start if t == 0 else D", "ρ or β weighs", AVERAGED, "δ"),
        *("d = -sqrt(within + D)/sqrt(within + r)*g; move = rate*d", "Averages steps"),
        "D = old*D + (1 - old)*e*e if t >= first else D",
    ],
    "Adam": ADAM,
    "AdamW": ["θ shrinks by", *ADAM],
}
"""The formula of each method, with the names of columns where the sources differ."""
LETTERS = {"rate": "η", "alpha": "α", "share": "ρ", "beta1": "β₁", "beta2": "β₂", "delta": "δ"}
LETTERS |= {"decay": "ω"}
OPTIONS = ", ".join(f"{name}=None" for name in [*LETTERS, "start"])
VALUES = {"alpha": 0.6, "share": 0.8, "beta1": 0.7, "beta2": 0.9, "delta": 0.1, "decay": 0.3}


def from_cells(method: str, cells: dict[str, str], first: int) -> Rule:
    """Return the rule that the cells of a row tell."""
    code = [CELLS[part][cells[part]] if part in CELLS else part for part in FORMS[method]]
    begin = f"first = {first}; shrink = inside = outside = within = beside = 0"
    ahead = cells.get("Gradient at", "").startswith("the interim point")
    at = "theta + alpha*v" if ahead else "theta"
    return from_formulas(OPTIONS, "; ".join(filter(None, [begin, *code])), "move", f"at {at}")


def first_step(rule: Rule) -> str:
    """Return the size of the first step in words of η, at the gradient 1 and all defaults."""
    if "alpha" in rule.defaults and "share" not in rule.defaults:
        return r"$\eta g$" if rule([1.0], [1.0], alpha=0.5)[0] == -1 else r"$(1 + \alpha)\,\eta g$"
    for name, letter in (("share", "ρ"), ("start", "r")):
        if rule.defaults.get(name, 0) is None and not rule.first:
            low, high = (rule([1.0], [1.0], **{name: value}) for value in (0.5, 0.9))
            return f"depends on {letter}" if low != high else "the same for all"
    size = abs(rule([1.0], [1.0])[0])
    return "∞" if math.isinf(size) else "0/0" if math.isnan(size) else f"{size:.2g} η"


def defaults(rule: Rule) -> str:
    given = {k: v for k, v in rule.defaults.items() if k in LETTERS and v is not None}
    values = [f"{LETTERS[k]} {value:g}".replace("e-0", "e-") for k, value in given.items()]
    return ", ".join(values) or "none"


# --- The tables of the page -------------------------------------------------------------------


def table(caption: str) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a table of the page."""
    [text] = re.findall(rf"```{{stacking-table}} {caption}\n(.*?)```", PAGE, re.DOTALL)
    head, _, *rows = [[c.strip() for c in line.strip("|").split("|")] for line in text.splitlines()]
    return head, rows


@pytest.mark.row(
    "L1-24", "L1-26", "L1-27", "L1-29", "L1-30", "L1-31", "L2-03", "L2-05", "L2-06", "F-05"
)
@pytest.mark.parametrize("method", RULES)
def test_cells_of_a_row_tell_its_rule(method):
    head, rows = table(method)
    assert [row[0] for row in rows] == [*RULES[method]]
    rates, listed = [0.5, 0.4, 0.3, 0.2], [1.0, 2.0, -1.5, 0.5]
    for rule, row in zip(RULES[method].values(), rows, strict=True):
        cells = dict(zip(head, row, strict=True))
        assert cells.pop("First step", first_step(rule)) == first_step(rule), row
        assert cells.pop("Defaults") == defaults(rule), row
        assert {*cells} - {"Source"} == {*FORMS[method]} & {*CELLS}
        assert (cells.get("δ", "") == "no δ") == ("δ" in cells and "delta" not in rule.defaults)
        # a start is an input where it has no default; no cell tells Nesterov's first velocity
        asked = rule.defaults.get("start", 0) is None and method != "Nesterov momentum"
        # the first step of L2 may be infinite, and then there is no gradient at θ
        slope = listed if rule.first else lambda t, theta: theta - listed[t]
        expected = rule(slope, rates, **VALUES, **({"start": 5.0} if asked else {}))
        moves = from_cells(method, cells, rule.first)(slope, rates, **VALUES, start=5.0)
        np.testing.assert_allclose(moves, expected, rtol=1e-9, err_msg=str(row))


# --- The table of conversions -----------------------------------------------------------------

WORDS = {"rho": "share", "decay": "share", "eps": "delta", "epsilon": "delta", "momentum": "alpha"}
WORDS |= {"beta_1": "beta1", "beta_2": "beta2", "b1": "beta1", "b2": "beta2", "lr": "rate"}
WORDS |= {"initial_accumulator_value": "start", "weight_decay": "decay"}
METHODS = {"Nesterov": "Nesterov momentum", "RMSPropNesterov": "RMSProp with momentum"}
CONVERSIONS = [
    (own.strip("`"), library, text)
    for own, *texts in table("The same steps elsewhere")[1]
    for library, text in zip(("torch", "Keras", "optax"), texts, strict=True)
]


def call(code: str) -> tuple[str, dict[str, str]]:
    """Return the name and the arguments of a call; ``a`` alone stands for ``a=a``."""
    tree: Any = ast.parse(code, mode="eval").body
    given = {ast.unparse(item): ast.unparse(item) for item in tree.args}
    return tree.func.id, given | {item.arg: ast.unparse(item.value) for item in tree.keywords}


def both_paths(
    own: str, library: str, code: str, rates: Sequence[float], small: float
) -> tuple[list[float], list[float]]:
    """Return where the two rules go: ours, seen at its interim point if theirs is, and theirs."""
    values = VALUES | {"rho": VALUES["share"], "delta": small, "lr": 1}
    (name, arguments), (_, theirs) = call(own), call(code)
    ahead, given = theirs.pop("nesterov", "False") == "True", {}
    for argument, value in theirs.items():
        of_rmsprop = (library, argument) == ("torch", "alpha")
        word = "share" if of_rmsprop else WORDS.get(argument, argument)
        words = ("beta1", "beta2") if argument == "betas" else (word,)
        given |= dict(zip(words, map(float, np.atleast_1d(eval(value, {}, values))), strict=True))
    source = f"{library}, `nesterov=True`" if ahead and name == "RMSPropNesterov" else library
    rule = RULES[METHODS.get(name, name)][source]
    assert {*given} <= {"rate", *rule.defaults}
    slope = lambda t, theta: (theta - 1.0) * (1.0 + 0.5 * math.sin(t))  # noqa: E731
    constants = {k: values[k] for k in arguments if k != "lr"}
    opt = getattr(optimizers, name)(lr=lambda k: rates[min(k, len(rates) - 1)], **constants)
    theta, here = np.zeros(1), []
    state = opt.init(theta)
    for t in range(len(rates)):
        theta, state = opt.step(theta, state, lambda at, t=t: slope(t, at))
        here.append(float((opt.interim(theta, state) if ahead else theta)[0]))
    return here, list(np.cumsum(rule(slope, rates, **given)))


@pytest.mark.row("L1-24", "L1-26", "L1-27", "L1-29", "L1-30", "L1-31", "L2-05", "L2-06", "F-05")
@pytest.mark.parametrize(("own", "library", "text"), [c for c in CONVERSIONS if c[2] != "none"])
def test_a_conversion_takes_the_same_steps(own, library, text):
    constant, varying = [0.1] * 100, [0.1 / (1 + t / 10) for t in range(100)]
    [code] = re.findall(r"`([^`]+)`$", text)
    only_without_delta, only_constant = "with `delta=0`" in text, "constant rate" in text
    small = 0.0 if only_without_delta else VALUES["delta"]
    rates = constant if only_constant else varying
    np.testing.assert_allclose(*both_paths(own, library, code, rates, small), rtol=0, atol=1e-12)
    # what the cell restricts itself to is needed
    if only_constant:
        assert not np.allclose(*both_paths(own, library, code, varying, small), atol=1e-4)
    if only_without_delta:
        with_delta = code.replace("=0)", "=delta)").replace("=0,", "=delta,")
        assert not np.allclose(*both_paths(own, library, with_delta, rates, 0.1), atol=1e-4)


def test_each_optimizer_has_its_conversion():
    methods = {call(own)[0] for own, _, _ in CONVERSIONS}
    assert {METHODS.get(name, name) for name in methods} == {*RULES}
    without = {
        (own.partition("(")[0], library) for own, library, text in CONVERSIONS if text == "none"
    }
    assert without == {("RMSPropNesterov", "torch"), ("RMSPropNesterov", "Keras")}
