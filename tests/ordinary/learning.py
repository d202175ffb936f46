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
)
