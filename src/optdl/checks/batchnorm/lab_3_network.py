"""The student builds a network of dense layers, with normalization and without."""

import torch
from torch import nn

from optdl.checks.compare import disagreement
from optdl.checks.exercise import Exercise
from optdl.labs.drivers import batchnorm as drivers
from optdl.labs.drivers.follow import fill


class Network(nn.Module):
    """A network of dense layers with ReLU, normalized before each ReLU if asked. Source: LAB-3."""

    def __init__(self, widths, normalization=None, momentum=0.1):
        super().__init__()
        layers = []
        for k in range(len(widths) - 2):
            layers.append(nn.Linear(widths[k], widths[k + 1], bias=normalization is None))
            if normalization is not None:
                layers.append(normalization(widths[k + 1], momentum=momentum))
            layers.append(nn.ReLU())
        layers.append(nn.Linear(widths[-2], widths[-1]))
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        """Return the scores of examples."""
        return self.layers(x)

    def fit(self, batches, lr):
        """Take a step of gradient descent for each minibatch; return the loss before each."""
        optimizer = torch.optim.SGD(self.parameters(), lr=lr)
        self.train()
        losses = []
        for x, y in batches:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses


exercise = Exercise("LAB-3:network", Network, use=drivers.network)


@exercise.cases
def _(rng):
    momentum = {"momentum": round(rng.uniform(0.2, 0.9), 2)}
    for hidden, normalized, options in [
        (1, False, {}),
        (1, True, {}),
        (int(rng.integers(2, 4)), True, momentum),
        (1, True, {"momentum": None}),
        (2, True, {"momentum": 0.0}),
    ]:
        m, *widths = rng.integers(2, 7, size=hidden + 3).tolist()
        widths[-2] = widths[1]  # two hidden layers are alike
        x, y = rng.normal(size=(m + 2, widths[0])), rng.integers(0, widths[-1], size=m + 2)
        x = 30 * x.round(2)  # an `nn.ReLU6` gives at most 6
        yield tuple(widths), normalized, options, x, y, int(rng.integers(1000))


@exercise.fact("without normalization, two layers have the state and scores of two linear layers")
def _(kind, rng):
    x, y, seed = rng.normal(size=(6, 3)), rng.integers(0, 2, size=6), int(rng.integers(1000))
    plain = fill(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).double(), seed)
    scores = exercise.observe(kind, (3, 4, 2), False, {}, x, y, seed)[1]
    return disagreement(plain(torch.tensor(x)), scores, 1e-6, 1e-7) is None


exercise.help(r"""
1. Which layers lead from one of the `widths` to the next, and for which pair is this different?
2. Collect all layers in one list. Each pair of consecutive widths except the last gives a linear
   layer, a normalization if there is one, and a ReLU; the last pair gives a linear layer alone.
3. Loop over all pairs but the last and append their layers; a linear layer has a bias only if there
   is no normalization. Append the last linear layer; unpack the list into `nn.Sequential`.
your normalization stands behind the ReLU; here it stands between the dense layer and the ReLU
    if norm → layers.append(nn.ReLU())\n            if norm
    )\n            layers.append(nn.ReLU())\n        layers → )\n        layers
you do not pass `momentum` on to the normalization, which takes its own default
    , momentum=momentum) → )
you pass on another momentum for 0 or None, as `momentum or …` does; pass on what you are given
    momentum=momentum) → momentum=momentum or 0.1)
you pass momentum where `nn.BatchNorm1d` expects eps; pass it by its name, `momentum=momentum`
    momentum=momentum → momentum
hidden layers of one width share a normalization, the same module; each layer has its own
    append(normalization( → append(vars(self).setdefault(widths[k + 1], normalization(
    momentum=momentum)) → momentum=momentum)))
your network ends with a softmax, which cross_entropy applies itself; return the scores
    return self.layers(x) → return self.layers(x).softmax(dim=1)
there are layers that your module does not know; put all of them into one `nn.Sequential`
    = nn.Sequential(*layers) → = lambda x, run=nn.Sequential(*layers): run(x)
you normalize with `nn.BatchNorm1d`, whatever class you are given; call `normalization`
    append(normalization(widths → append(nn.BatchNorm1d(widths
""")
