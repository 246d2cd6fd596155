"""Prints the ratios at the end of a pytest-benchmark session."""

from typing import Any

import pytest

from benchmarks.timing import readable

collect_ignore = ["sampling/with_numpyro.py", "sampling/with_pymc.py"]        # run where these libraries are


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """One line per group: best time of each engine, and its ratio to the first one measured."""
    session = getattr(config, "_benchmarksession", None)
    groups = best_times(session.benchmarks if session is not None else [])
    if not groups:
        return
    terminalreporter.section("ratios to the first engine of each group (best times)")
    for group, times in groups.items():
        reference = next(iter(times.values()))
        cells = [f"{engine} {readable(t)} ({t / reference:.2f})" for engine, t in times.items()]
        terminalreporter.write_line(f"{group:32s} " + "   ".join(cells))


def best_times(benchmarks: list[Any]) -> dict[str, dict[str, float]]:
    """Best time of one call by group and engine."""
    groups: dict[str, dict[str, float]] = {}
    for bench in benchmarks:
        engine = bench.extra_info.get("engine")
        if engine is None or not bench.stats.data:
            continue
        best = bench.extra_info.get("seconds", bench.stats.min / bench.extra_info.get("calls", 1))
        groups.setdefault(bench.group, {})[engine] = best
    return groups
