"""Classes, modules of torch, sources and names: what a test asks of what the student made."""

CASES = r'''
=== an exception of the student's is expected by pytest.raises
class Overdrawn(Exception):
    def __init__(self, missing):
        self.missing = missing

def withdraw(balance, amount):
    if amount > balance:
        raise Overdrawn(amount - balance)  # wrong: raise ValueError(amount - balance)
    return balance - amount
--- test
import pytest
assert withdraw(50, 20) == 30
with pytest.raises(Overdrawn, match="30") as caught:
    withdraw(20, 50)
assert caught.value.missing == 30
=== a class of the test's inherits from one of the student's
from abc import ABC, abstractmethod

class Shape(ABC):  # wrong: class Shape:
    @abstractmethod
    def area(self):
        ...

    def describe(self):
        return f"{type(self).__name__} of area {self.area()}"
--- test
import pytest

class Tile(Shape):
    def area(self):
        return 9

assert Tile().describe() == "Tile of area 9"
assert isinstance(Tile(), Shape)
with pytest.raises(TypeError):
    Shape()
=== issubclass of classes of the student's
class Animal:
    pass

class Dog(Animal):  # wrong: class Dog:
    def speak(self):
        return "Woof"
--- test
assert issubclass(Dog, Animal) and not issubclass(Animal, Dog)
assert Dog.__bases__ == (Animal,) and "speak" in vars(Dog)
=== inspect.signature gives parameters and defaults
def compound(capital, rate=0.05, *, years=1):  # wrong: def compound(capital, rate=0.05, years=1):
    return capital * (1 + rate) ** years
--- test
import inspect
signature = inspect.signature(compound)
assert list(signature.parameters) == ["capital", "rate", "years"]
assert signature.parameters["rate"].default == 0.05
assert signature.parameters["years"].kind is inspect.Parameter.KEYWORD_ONLY
assert compound(100, 0.5, years=2) == 225
=== inspect.getsource shows whether there is a loop
import numpy as np  # wrong:

def sum_of_cubes(x):
    return (np.asarray(x) ** 3).sum()  # wrong: return sum(value**3 for value in x)
--- test
import ast
import inspect
source = inspect.getsource(sum_of_cubes)
loops = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp)
assert not any(isinstance(node, loops) for node in ast.walk(ast.parse(source)))
assert "**" in source
assert sum_of_cubes([1, 2, 3]) == 36
=== the docstring is read by inspect.getdoc
def celsius(fahrenheit):
    """Return the temperature in °C."""  # wrong:
    return (fahrenheit - 32) * 5 / 9
--- test
import inspect
assert celsius.__doc__ is not None, "please write a docstring"
assert inspect.getdoc(celsius) == "Return the temperature in °C."
assert celsius(212) == 100
=== a name is looked up in globals()
planet_count = 8  # wrong: planets_count = 8
--- test
assert "planet_count" in globals(), "define planet_count"
assert globals()["planet_count"] == 8
assert "moon_count" not in globals()
=== a global of the student's is read after a function has changed it
visits = 0

def visit():
    global visits  # wrong: visits = 1
    visits += 1  # wrong:
--- test
before = visits
for _ in range(3):
    visit()
assert visits == before + 3
=== a global of the student's is set by the test, and used by the answer
gravity = 9.81

def fall_time(height):
    return (2 * height / gravity) ** 0.5  # wrong: return (2 * height / 9.81) ** 0.5
--- test
import math
assert math.isclose(fall_time(9.81), 2**0.5)
gravity = 2
assert fall_time(16) == 4
=== the test trains a module of the student's
import torch  # wrong:
from torch import nn

class TwoLayers(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.hidden = nn.Linear(1, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(x)))  # wrong: return self.out(self.hidden(x))
--- test
import torch
torch.manual_seed(0)
x = torch.linspace(-1, 1, 41)[:, None]
model = TwoLayers(20)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
for _ in range(100):
    optimizer.zero_grad()
    loss = ((model(x) - x.abs()) ** 2).mean()
    loss.backward()
    optimizer.step()
assert loss.item() < 0.005
=== backward of a loss that the answer computes fills .grad
def ridge_loss(w, X, y, strength):
    return ((X @ w - y) ** 2).mean() + strength * (w**2).sum()
    # wrong: return ((X @ w - y) ** 2).mean() + strength * (w.detach() ** 2).sum()
--- test
import torch
torch.manual_seed(2)
X, y = torch.randn(6, 3), torch.randn(6)
w = torch.randn(3, requires_grad=True)
loss = ridge_loss(w, X, y, 0.5)
assert loss.requires_grad and loss.shape == ()
loss.backward()
with torch.no_grad():
    expected = 2 / 6 * X.T @ (X @ w - y) + 2 * 0.5 * w
assert torch.allclose(w.grad, expected, atol=1e-6)
'''
