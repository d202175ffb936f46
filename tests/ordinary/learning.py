"""torch: modules, gradients and data of the student's and of the test's."""

from ordinary import Case

CASES = (
    Case(
        "the test trains a module of the student's",
        answer="""
        import torch
        from torch import nn

        class TwoLayers(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.hidden = nn.Linear(1, width)
                self.out = nn.Linear(width, 1)

            def forward(self, x):
                return self.out(torch.relu(self.hidden(x)))
        """,
        test="""
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
        """,
        wrong="""
        from torch import nn

        class TwoLayers(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.hidden = nn.Linear(1, width)
                self.out = nn.Linear(width, 1)

            def forward(self, x):
                return self.out(self.hidden(x))
        """,
    ),
    Case(
        "a module of the test's is passed in, and trained by the answer",
        answer="""
        import torch

        def fit_module(model, x, y, steps, lr):
            optimizer = torch.optim.SGD(model.parameters(), lr=lr)
            losses = []
            for _ in range(steps):
                loss = torch.nn.functional.mse_loss(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            return losses
        """,
        test="""
        import torch
        torch.manual_seed(0)
        x = torch.linspace(-1, 1, 20)[:, None]
        model = torch.nn.Linear(1, 1)
        losses = fit_module(model, x, 3 * x + 1, steps=200, lr=0.3)
        assert len(losses) == 200 and losses[-1] < losses[0]
        assert abs(model.weight.item() - 3) < 1e-3
        assert abs(model.bias.item() - 1) < 1e-3
        """,
        wrong="""
        import torch

        def fit_module(model, x, y, steps, lr):
            optimizer = torch.optim.SGD(model.parameters(), lr=lr)
            losses = []
            for _ in range(steps):
                loss = torch.nn.functional.mse_loss(model(x), y)
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            return losses
        """,
    ),
    Case(
        "backward of a loss that the answer computes fills .grad",
        answer="""
        def ridge_loss(w, X, y, strength):
            return ((X @ w - y) ** 2).mean() + strength * (w**2).sum()
        """,
        test="""
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
        """,
        wrong="""
        def ridge_loss(w, X, y, strength):
            return ((X @ w - y) ** 2).mean() + strength * (w.detach() ** 2).sum()
        """,
    ),
    Case(
        "an autograd.Function of the student's is checked by gradcheck",
        answer="""
        import torch

        class HalfSquare(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x.clamp(min=0) ** 2 / 2

            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return grad * x.clamp(min=0)
        """,
        test="""
        import torch
        x = torch.tensor([-1.5, 0.5, 2.0], dtype=torch.double, requires_grad=True)
        assert torch.autograd.gradcheck(HalfSquare.apply, (x,))
        HalfSquare.apply(x).sum().backward()
        assert x.grad.tolist() == [0, 0.5, 2]
        """,
        wrong="""
        import torch

        class HalfSquare(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x.clamp(min=0) ** 2 / 2

            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return grad * x
        """,
    ),
    Case(
        "the named tuple of torch.max is read by name, and unpacked",
        answer="""
        import torch

        def best_classes(scores):
            return torch.max(scores, dim=1)
        """,
        test="""
        import torch
        best = best_classes(torch.tensor([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]]))
        assert best.indices.tolist() == [1, 0]
        values, indices = best
        assert torch.equal(values, torch.tensor([0.7, 0.5]))
        """,
        wrong="""
        def best_classes(scores):
            return scores.max(dim=1).values
        """,
    ),
    Case(
        "a state_dict is saved to a file and loaded into another module",
        answer="""
        from torch import nn

        class Autoencoder(nn.Module):
            def __init__(self, size, code):
                super().__init__()
                self.encoder = nn.Linear(size, code)
                self.decoder = nn.Linear(code, size)

            def forward(self, x):
                return self.decoder(self.encoder(x))
        """,
        test="""
        import torch
        first, second = Autoencoder(4, 2), Autoencoder(4, 2)
        assert list(first.state_dict()) == [
            "encoder.weight", "encoder.bias", "decoder.weight", "decoder.bias"
        ]
        torch.save(first.state_dict(), "autoencoder.pt")
        second.load_state_dict(torch.load("autoencoder.pt"))
        x = torch.ones(1, 4)
        assert torch.equal(first(x), second(x))
        """,
        wrong="""
        from torch import nn

        class Autoencoder(nn.Module):
            def __init__(self, size, code):
                super().__init__()
                self.layers = [nn.Linear(size, code), nn.Linear(code, size)]

            def forward(self, x):
                return self.layers[1](self.layers[0](x))
        """,
    ),
    Case(
        "the parameters of a module are counted, named, frozen and set",
        answer="""
        from torch import nn

        def make_classifier(inputs, classes):
            model = nn.Sequential(nn.Linear(inputs, 8), nn.ReLU(), nn.Linear(8, classes))
            nn.init.zeros_(model[2].bias)
            for parameter in model[0].parameters():
                parameter.requires_grad_(False)
            return model
        """,
        test="""
        import torch
        model = make_classifier(5, 3)
        assert sum(parameter.numel() for parameter in model.parameters()) == 75
        trained = [name for name, p in model.named_parameters() if p.requires_grad]
        assert trained == ["2.weight", "2.bias"]
        assert isinstance(model[1], torch.nn.ReLU) and not model[2].bias.any()
        with torch.no_grad():
            model[2].weight.zero_()
            model[2].bias[1] = 2
        assert model(torch.randn(4, 5)).tolist() == [[0, 2, 0]] * 4
        """,
        wrong="""
        from torch import nn

        def make_classifier(inputs, classes):
            model = nn.Sequential(nn.Linear(inputs, 8), nn.ReLU(), nn.Linear(8, classes))
            nn.init.zeros_(model[2].bias)
            return model
        """,
    ),
    Case(
        "a Dataset of the student's is read through a DataLoader of the test's",
        answer="""
        import torch
        from torch.utils.data import Dataset

        class SineData(Dataset):
            def __init__(self, n):
                self.x = torch.linspace(0, 3, n)

            def __len__(self):
                return len(self.x)

            def __getitem__(self, i):
                return self.x[i], torch.sin(self.x[i])
        """,
        test="""
        import torch
        from torch.utils.data import DataLoader
        data = SineData(10)
        assert len(data) == 10
        batches = list(DataLoader(data, batch_size=4))
        assert [len(x) for x, y in batches] == [4, 4, 2]
        for x, y in batches:
            assert torch.allclose(y, torch.sin(x))
        """,
        wrong="""
        import torch
        from torch.utils.data import Dataset

        class SineData(Dataset):
            def __init__(self, n):
                self.x = torch.linspace(0, 3, n)

            def __len__(self):
                return len(self.x)

            def __getitem__(self, i):
                return self.x[i]
        """,
    ),
)
