"""The page of conventions: each cell of its tables is a claim, and each claim is tried on a rule.

A rule is a source's update, written out from its box or its documentation; only those of this
course and of torch are the real thing. What a cell says must be true of its rule, and what the
other cells of its column say must be false.
"""

import ast
import dataclasses
import inspect
import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from optdl import optimizers
from tools.layout import ROOT

PAGE = (ROOT / "book" / "conventions.md").read_text("utf-8")
TINY = 1e-300
"""A δ that changes nothing."""
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

ONES = [1.0, 1.0]


def near(got: float | Sequence[float], expected: float | Sequence[float]) -> bool:
    return bool(np.allclose(got, expected, rtol=1e-12, atol=0))


def places(rule: Rule) -> tuple[list[float], list[float]]:
    """Return where the rule is in each step, and where it takes the gradient."""
    asked = {}

    def gradient(t: int, theta: float) -> float:
        asked[t] = theta
        return theta - 1.0

    moves = rule(gradient, [0.2] * 6, alpha=0.5, share=0.75, delta=TINY)
    return [0.0, *np.cumsum(moves)[:-1]], [*asked.values()]


def gradient_at(rule: Rule) -> str:
    """Return where the gradient is taken: ahead by the last move, or where the rule is."""
    here, asked = places(rule)
    if near(asked[1:], [b + 0.5 * (b - a) for a, b in pairwise(here)]):
        return r"the interim point $\theta + \alpha v$"
    assert near(asked, here)
    own = "RMSProp with momentum" if "share" in rule.defaults else "Nesterov momentum"
    same = near(here, places(RULES[own]["ours"])[1])
    return "its own θ, which is our interim point" if same else r"$\theta$"


def velocity(rule: Rule) -> str:
    """Say whether a velocity goes on when the rate has become 0."""
    goes_on = rule(ONES, [1.0, 0.0], alpha=0.5)[1] < 0
    return r"$v \leftarrow \alpha v - \eta g$" if goes_on else r"$b \leftarrow \alpha b + g$"


def first_step(rule: Rule) -> str:
    """Return the size of the first step in words of η, at the gradient 1 and all defaults."""
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


Column = Callable[[Rule], str]
"""What the cells of a column say of a rule."""


def says(probe: Callable[[Rule], Any], claims: dict[str, Any]) -> Column:
    """Return a column: the text, or the texts, whose value the probe gives."""

    def column(rule: Rule) -> str:
        return " | ".join(text for text, value in claims.items() if near(probe(rule), value))

    return column


def second(**options: float) -> Callable[[Rule], float]:
    """Return the move with the gradient 2 after one of 0."""
    return lambda rule: rule([0.0, 2.0], ONES, **options)[1]


def first_r(rule: Rule) -> float:
    """Return the move with the gradient 2 after one of 0; a first r that must be given is 5."""
    start = {"start": 5.0} if rule.defaults.get("start", 0) is None else {}
    return second(delta=TINY, **start)(rule)


def with_delta(claims: dict[str, float], **options: float) -> Column:
    """Return what the place of δ = ½ makes of the move with the gradient 2 after one of 0."""
    column = says(second(delta=0.5, **options), claims)
    return lambda rule: column(rule) if "delta" in rule.defaults else "no δ"


def adadelta_r(rule: Rule) -> float:
    """Return the average r after the gradients 0 and 2; D is 0 with δ = ½, or 1 without δ."""
    remembered, small = (0.5, 0.5) if "delta" in rule.defaults else (1.0, 0.0)
    return 4 * remembered / second(share=0.75, delta=0.5, start=1.0)(rule) ** 2 - small


def averaged_steps(rule: Rule) -> float:
    """Return by what the steps are multiplied that D averages, when the rate is ½."""
    if rule.first:  # L2: D begins with 1, and ρ weighs the new
        move = rule([2.0] * 3, [0.5] * 3, share=0.75, start=1.0)[2]
        return math.sqrt((move**2 * 3.75 - 0.25) / 0.75 * 3) / 2
    move = rule([2.0] * 2, [0.5] * 2, share=0.75, delta=0.5)[1]
    return math.sqrt((move**2 * 2.25 - 0.5) / 0.25 * 3) / 2


def adam_shares(claims: dict[str, tuple[float, float]]) -> Column:
    """Return to which of the averages β₁ = 0.9 and β₂ = 0.8 leave these shares."""

    def column(rule: Rule) -> str:
        g = [3.0, 3.0, -1.0]
        move = rule(g, [1.0] * 3, beta1=0.9, beta2=0.8, delta=TINY, decay=0.0)[2]
        seen = g[rule.first :]
        true = []
        for text, old in claims.items():
            # freed of its bias, an average is a weighted mean of what it has seen
            first, last = (share ** np.arange(len(seen))[::-1] for share in old)
            m, r = np.average(seen, weights=first), np.average(np.square(seen), weights=last)
            true += [text] * near(move, -m / math.sqrt(r))
        return " | ".join(true)

    return column


LETTERS = {"rate": "η", "alpha": "α", "share": "ρ", "beta1": "β₁", "beta2": "β₂", "delta": "δ"}
LETTERS |= {"decay": "ω"}
IN, OUT = r"inside: $\sqrt{\delta + r}$", r"outside: $\delta + \sqrt r$"
OLD, NEW = "the old average", "the new gradient"
STEP = {"First step": first_step}
DELTA = with_delta({IN: -2 / math.sqrt(0.5 + 1), OUT: -2 / (0.5 + 1)}, share=0.75, alpha=0.0)
M_HAT, R_HAT = 1 / (1 - 0.5**2), 1 / (1 - 0.75**2)  # after the gradients 0 and 2: m = 1, r = 1
COLUMNS: dict[str, dict[str, Column]] = {
    "SGD": {
        "Step": says(
            lambda rule: rule([3.0, -1.0], [0.5, 0.25]),
            {r"$\theta \leftarrow \theta - \eta g$": [-1.5, 0.25]},
        )
    },
    "Momentum": {
        "Velocity": velocity,
        "Factor of the gradient": says(
            lambda rule: rule(ONES, ONES, alpha=0.5),
            {"1": [-1.0, -1.5], r"1, then $1 - \alpha$": [-1.0, -1.0]},
        ),
        "First velocity": says(
            lambda rule: rule([1.0], [1.0], alpha=0.5, start=3.0), {"0": -1.0, "an input": 0.5}
        ),
    },
    "Nesterov momentum": {
        "Gradient at": gradient_at,
        "Velocity": velocity,
        "First step": says(
            lambda rule: rule([1.0], [1.0], alpha=0.5),
            {r"$\eta g$": -1.0, r"$(1 + \alpha)\,\eta g$": -1.5},
        ),
    },
    "AdaGrad": {
        "δ": with_delta({IN: -2 / math.sqrt(0.5 + 4), OUT: -2 / (0.5 + 2)}, start=0.0),
        "First r": says(
            first_r, {"0": -2 / math.sqrt(4), "0.1": -2 / math.sqrt(4.1), "an input": -2 / 3}
        ),
        **STEP,
    },
    "RMSProp": {
        "δ": DELTA,
        "ρ or β weighs": says(second(share=0.75, delta=TINY), {OLD: -2.0, NEW: -2 / math.sqrt(3)}),
        **STEP,
    },
    "RMSProp with momentum": {"Gradient at": gradient_at, "Velocity": velocity, "δ": DELTA},
    "AdaDelta": {
        "δ": with_delta({"inside both roots": -2 * math.sqrt(0.5 / (0.5 + 1))}, share=0.75),
        "ρ or β weighs": says(adadelta_r, {OLD: 1.0, NEW: 3.0}),
        "Averages steps": says(averaged_steps, {"before the rate": 1.0, "after the rate": 0.5}),
        **STEP,
    },
    "Adam": {
        "δ": with_delta(
            {
                r"beside $\sqrt{\hat r}$": -M_HAT / (math.sqrt(R_HAT) + 0.5),
                r"beside $\sqrt r$": -M_HAT / ((1 + 0.5) * math.sqrt(R_HAT)),
            },
            beta1=0.5, beta2=0.75,
        ),
        "The shares weigh": adam_shares({OLD: (0.9, 0.8), NEW: (0.1, 0.2)}),
        **STEP,
    },
}  # fmt: skip
COLUMNS["AdamW"] = {
    # θ = 1, the gradient is 0, the rate ½ and ω 0.1; where ωθ is added to g, the average r is ½
    # after the gradient −1, then ½ r + ½ 0.1², and Adam's r̂ divides by 1 − ½²
    "θ shrinks by": says(
        lambda rule: rule([-1.0, 0.0], [1.0, 0.5], beta1=0.0, beta2=0.5, delta=TINY, decay=0.1),
        {
            r"$1 - \eta\omega$": [1.0, -0.5 * 0.1],
            r"$1 - \omega$": [1.0, -0.1],
            r"nothing of its own: ωθ is added to $g$": [1.0, -0.05 / math.sqrt(0.255 / 0.75)],
        },
    ),
    **COLUMNS["Adam"],
}


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
def test_table_matches_the_rules_of_each_source(method: str) -> None:
    columns = COLUMNS[method] | {"Defaults": defaults}
    true = [[s, *(says(rule) for says in columns.values())] for s, rule in RULES[method].items()]
    assert table(method) == (["Source", *columns], true)


# --- The table of conversions -----------------------------------------------------------------

WORDS = {"rho": "share", "decay": "share", "eps": "delta", "epsilon": "delta", "momentum": "alpha"}
WORDS |= {"beta_1": "beta1", "beta_2": "beta2", "b1": "beta1", "b2": "beta2", "lr": "rate"}
WORDS |= {"initial_accumulator_value": "start", "weight_decay": "decay"}
VALUES = {"alpha": 0.6, "rho": 0.8, "beta1": 0.7, "beta2": 0.9, "delta": 0.1, "decay": 0.3, "lr": 1}
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
    values = VALUES | {"delta": small}
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
def test_a_conversion_takes_the_same_steps(own: str, library: str, text: str) -> None:
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


def test_each_optimizer_has_its_conversion() -> None:
    methods = {call(own)[0] for own, _, _ in CONVERSIONS}
    assert {METHODS.get(name, name) for name in methods} == {*RULES}
    without = {
        (own.partition("(")[0], library) for own, library, text in CONVERSIONS if text == "none"
    }
    assert without == {("RMSPropNesterov", "torch"), ("RMSPropNesterov", "Keras")}
