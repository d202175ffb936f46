"""Print the benchmarks as ratios to torch.optim."""

from collections import defaultdict

KINDS = ("torch.optim", "torch", "in place", "unchecked", "numpy")


def pytest_terminal_summary(terminalreporter, config):
    """Draw a row for each method: torch.optim in milliseconds, the others as ratios to it."""
    times = defaultdict(dict)
    for one in getattr(config, "_benchmarksession").benchmarks:  # noqa: B009 - not public
        info = one.extra_info
        if "kind" in info:
            key = (info["dtype"], info["threads"], info["method"])
            times[key][info["kind"]] = one.stats.median
    if not times:
        return
    terminalreporter.section("ratio of the median times to torch.optim")
    titles = ("torch.optim/ms", *KINDS[1:])
    terminalreporter.write_line(f"{'':42}" + "".join(f"{title:>15}" for title in titles))
    for (dtype, threads, method), row in sorted(times.items()):
        if "torch.optim" in row:
            base = row["torch.optim"]
            ratios = [
                f"{row[kind] / base:15.2f}" if kind in row else " " * 15 for kind in KINDS[1:]
            ]
            label = f"{dtype}  threads={threads}  {method}"
            terminalreporter.write_line(f"{label:42}{base * 1000:15.3f}{''.join(ratios)}")
