"""Drawing the charts of a page, in a process of its own.

The library that makes SVG holds Python's lock while it works, some 50 ms a chart: in the process that answers, every
decision would wait for it. That process reads what to draw from its input, and ends when its input does.
"""

from __future__ import annotations

import atexit
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from typing import Any, NamedTuple

from belated.live_shown import Belief, History, Steps

TIME = 20.0  # seconds until a drawing is given up

log = logging.getLogger("belated.service")


class Drawing(NamedTuple):
    """All that the charts of an experiment are made from. Arms go by the number of their colour."""

    beliefs: list[Belief]
    history: History | None
    leaders: list[str]  # whose success rates are drawn
    ripe: int | None  # the end of the time whose windows have closed
    waits: dict[str, Steps]
    window: int | None
    coming: tuple[list[float], list[float]] | None  # times from now, outcomes expected by then
    learned: dict[str, Steps]  # by which silence is read


def pictures(drawing: Drawing) -> dict[str, str]:
    """The charts as SVG, by name, with a sentence each for those who cannot see them."""
    from belated import live_charts as charts

    page: dict[str, Any] = {"theme": charts.PAGE}
    plain = {**page, "legend": False}
    colours = {belief.name: belief.colour for belief in drawing.beliefs}
    made: dict[str, tuple[Any, str]] = {
        "beliefs": (
            charts.posteriors(drawing.beliefs, **plain),
            "How likely each success rate is, arm by arm, with the mean and the 95 % interval.",
        )
    }
    if drawing.history is not None:
        leaders = {name: colours[name] for name in drawing.leaders}
        made["allocation"] = (
            charts.allocation(drawing.history, colours, **plain),
            "The share of decisions that each arm got, over time.",
        )
        made["success"] = (
            charts.success(drawing.history, leaders, ripe=drawing.ripe, **plain),
            "The success rate by the time of the decision, of the leading arms and of all arms.",
        )
    if drawing.waits:
        made["waits"] = (
            charts.waits(drawing.waits, colours, window=drawing.window, **plain),
            "The share of decisions whose outcome has come, by the time since the decision.",
        )
    if drawing.learned:
        made["learned"] = (
            charts.learned(drawing.learned, colours, window=drawing.window, **plain),
            "The share of conversions that have come, by the time since the decision, as it was learned.",
        )
    if drawing.coming is not None:
        made["coming"] = (
            charts.to_come(*drawing.coming, **page),
            "How many of the pending outcomes are expected, by the time from now.",
        )
    return {name: charts.svg(chart, charts.PAGE, label) for name, (chart, label) in made.items() if chart is not None}


# --- The other process ---


class Pen:
    """The process that draws, started when it is first needed. Calls wait for one another."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, so that it is ready when there is something to draw."""
        with self._lock:
            self._running()

    def drawn(self, drawing: Drawing) -> dict[str, str]:
        """The pictures; none if they cannot be drawn, which is logged."""
        with self._lock:
            process = self._running()
            late = threading.Timer(TIME, process.kill)
            late.start()
            try:
                answer = self._asked(process, drawing)
            except (OSError, EOFError, pickle.UnpicklingError) as error:
                self._end()
                answer = f"the process that draws ended: {error!r}"
            finally:
                late.cancel()
        if isinstance(answer, str):
            log.error("charts could not be drawn: %s", answer)
            return {}
        return answer

    @staticmethod
    def _asked(process: subprocess.Popen[bytes], drawing: Drawing) -> dict[str, str] | str:
        assert process.stdin is not None
        assert process.stdout is not None
        pickle.dump(drawing, process.stdin)
        process.stdin.flush()
        answer: dict[str, str] | str = pickle.load(process.stdout)
        return answer

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            command = [sys.executable, "-m", "belated.service.drawing"]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self._process

    def close(self) -> None:
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


PEN = Pen()  # one for all the applications of a process
atexit.register(PEN.close)


def main() -> None:
    """Draw what comes in until nothing more does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then ends this
    os.nice(5)  # decisions come first
    answers, sys.stdout = sys.stdout.buffer, sys.stderr
    while True:
        try:
            drawing = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer: dict[str, str] | str = pictures(drawing)
        except Exception:
            answer = traceback.format_exc()
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main()
