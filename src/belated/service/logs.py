"""Log lines: JSON, one line each, with a request id; no key and no unit ever stands in one.

Lines of requests are written together, ten times a second, for one by one they would cost as much as the answer.
"""

from __future__ import annotations

import atexit
import logging
import sys
import threading
import time
from typing import Any

import msgspec

from belated.live import values

_lines: list[bytes] = []
_encode = msgspec.json.Encoder().encode
_on = False
_timer: threading.Timer | None = None
_lock = threading.Lock()


def request(id: str, method: str, route: str, status: int, seconds: float) -> None:
    """Note a request that has been answered."""
    if _on:
        _add({"at": _now(), "level": "info", "request": id, "method": method, "route": route, "status": status,
              "ms": round(1000 * seconds, 3)})  # fmt: skip


def _add(entry: dict[str, Any]) -> None:
    global _timer
    line = _encode(entry) + b"\n"  # before the list is looked at, which another thread may take away
    _lines.append(line)
    if _timer is None:
        _timer = threading.Timer(0.1, flush)
        _timer.daemon = True
        _timer.start()


def flush() -> None:
    """Write what is waiting."""
    global _timer, _lines
    with _lock:
        _timer = None
        waiting, _lines = _lines, []
        try:
            sys.stderr.buffer.write(b"".join(waiting))
            sys.stderr.buffer.flush()
        except (OSError, ValueError):  # nobody reads the log any more
            pass


def _now() -> str:
    return values.iso(int(time.time() * 1000))


class Handler(logging.Handler):
    """The lines of loggers, in the same form."""

    def emit(self, record: logging.LogRecord) -> None:
        entry = {"at": _now(), "level": record.levelname.lower(), "message": record.getMessage()}
        if record.exc_info:
            entry["error"] = logging.Formatter().formatException(record.exc_info)
        _add(entry)


def start(requests: bool = True) -> None:
    """Log to standard error; with `requests`, a line for each of them too."""
    global _on
    _on = requests
    root = logging.getLogger()
    root.handlers = [Handler()]
    root.setLevel(logging.INFO)
    atexit.register(flush)
