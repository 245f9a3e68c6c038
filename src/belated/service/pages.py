"""The pages for people."""

from __future__ import annotations

from starlette.responses import Response

from belated.service.problems import Problem
from belated.service.request import Scope
from belated.service.routes import Route


def table() -> list[Route]:
    """The addresses of the pages."""
    return []


def refusal(problem: Problem, scope: Scope) -> Response:
    """What a person sees instead of a page."""
    return problem.response()
