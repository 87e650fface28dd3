"""Counts and times of the server, in the text format of Prometheus."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Mapping

# Name: type and help.
COUNTERS = {
    "hiero_requests_total": "Requests by path and status.",
    "hiero_rejected_total": "Requests that were not answered as asked, by reason.",
    "hiero_lines_total": "Lines translated, by model.",
    "hiero_words_total": "Source words translated, by model.",
    "hiero_failed_lines_total": "Lines with words but without a translation, by model.",
    "hiero_search_cpu_seconds_total": "CPU seconds of all steps of decoding, by model.",
    "hiero_model_loads_total": "How often a model was loaded.",
}
GAUGES = {
    "hiero_queue_lines": "Lines that wait for a thread.",
    "hiero_busy_threads": "Threads that translate.",
    "hiero_threads": "Threads for translation.",
    "hiero_vocabulary_words": "Words that a model knows by number, by model.",
    "process_resident_memory_bytes": "Resident memory.",
    "process_start_time_seconds": "Start of the process, in seconds since 1970.",
}
HISTOGRAMS = {
    "hiero_request_seconds": "Seconds from the header of a request to the end of its answer, by path."
}
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Values by name and labels; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._value: dict[tuple[str, Labels], float] = {}
        self._buckets: dict[tuple[str, Labels], list[int]] = {}

    def add(self, name: str, value: float = 1.0, **labels: str) -> None:
        """Add to a counter."""
        key = name, tuple(sorted(labels.items()))
        with self._lock:
            self._value[key] = self._value.get(key, 0.0) + value

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Add a value to a histogram."""
        key = name, tuple(sorted(labels.items()))
        with self._lock:
            counts = self._buckets.setdefault(key, [0] * (len(BOUNDS) + 1))
            counts[bisect_left(BOUNDS, value)] += 1
            self._value[key] = self._value.get(key, 0.0) + value

    def text(self, gauges: Mapping[tuple[str, Labels], float]) -> str:
        """All of it, with the present values of gauges."""
        lines: list[str] = []
        with self._lock:
            values, buckets = dict(self._value), {key: list(counts) for key, counts in self._buckets.items()}
        for table, kind, known in (
            (COUNTERS, "counter", values),
            (GAUGES, "gauge", gauges),
            (HISTOGRAMS, "histogram", values),
        ):
            for name, meaning in table.items():
                lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
                for (found, labels), value in sorted(known.items()):
                    if found != name:
                        continue
                    if kind == "histogram":
                        lines += _histogram(name, labels, buckets[name, labels], value)
                    else:
                        lines.append(f"{name}{_labels(labels)} {value:.17g}")
        return "\n".join(lines) + "\n"


def _histogram(name: str, labels: Labels, counts: list[int], total: float) -> list[str]:
    lines, seen = [], 0
    for bound, count in zip((*map(str, BOUNDS), "+Inf"), counts, strict=True):
        seen += count
        lines.append(f"{name}_bucket{_labels((*labels, ('le', bound)))} {seen}")
    return [*lines, f"{name}_sum{_labels(labels)} {total:.17g}", f"{name}_count{_labels(labels)} {seen}"]


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    escaped = (
        (key, value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")) for key, value in labels
    )
    return "{" + ",".join(f'{key}="{value}"' for key, value in escaped) + "}"
