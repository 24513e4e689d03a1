"""Calls that wait for a person, over HTTP: JSON for programs, and one static page.

    GET  /approvals         those that wait, without their texts
    GET  /approvals/{id}    one of them with the whole text and its digest
    POST /approvals/{id}    {"verdict": "approved" or "rejected", "digest": the digest of the text that was shown}

Whoever asks carries `Authorization: Bearer <token>`, and the token's owner is who decides: nothing in a body can say
otherwise. There are no cookies, so no request carries a right that its sender does not know. The page holds the token
in memory and shows texts as text nodes; it lets a person approve once the end of the text was in view.

Not covered: that the person has read what was in view.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from toolwise.core.errors import BadInput, Denied, ToolwiseError
from toolwise.core.limits import LIMITS, Limits
from toolwise.gate.approval import Approvals
from toolwise.gate.approval_view import as_json
from toolwise.serve.door import Door, Tokens, body_of, refused

_STATIC = resources.files("toolwise.serve").joinpath("static")
_FILES = {
    "/": ("approvals.html", "text/html"),
    "/approvals.js": ("approvals.js", "text/javascript"),
    "/approvals.css": ("approvals.css", "text/css"),
}
_STATUS = {"limit": 413, "timeout": 408, "approval_expired": 410, "storage_unavailable": 503, "corrupt": 500}

Answer = Callable[[Request, str], Awaitable[Response]]


def new_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_urlsafe(32)


def approvals_app(
    approvals: Approvals, people: Mapping[str, str], *, hosts: Collection[str] = (), limits: Limits = LIMITS
) -> Door:
    """The application; `people` maps the name of each person who decides to their token.

    `hosts` are the names besides this machine's own under which it is reached. Raises BadInput for a weak token.
    """
    desk, tokens = _Desk(approvals, limits), Tokens(people)
    routes = [
        *(Route(path, _static(name, kind), methods=["GET"]) for path, (name, kind) in _FILES.items()),
        Route("/approvals", _personal(tokens, desk.waiting), methods=["GET"]),
        Route("/approvals/{id}", _personal(tokens, desk.one), methods=["GET"]),
        Route("/approvals/{id}", _personal(tokens, desk.decide), methods=["POST"]),
    ]
    handlers: dict[Any, Any] = {HTTPException: _strange, Exception: _failed}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return Door(app, hosts)  # outermost: whatever answers, it answers through the door


class _Desk:
    """The handlers. `name` is that of the person whose token came."""

    def __init__(self, approvals: Approvals, limits: Limits) -> None:
        self._approvals = approvals
        self._limits = limits

    async def waiting(self, request: Request, name: str) -> Response:
        found = await run_in_threadpool(self._approvals.pending)
        return JSONResponse({"you": name, "approvals": [as_json(asked, whole=False) for asked in found]})

    async def one(self, request: Request, name: str) -> Response:
        try:
            found = await run_in_threadpool(self._approvals.get, request.path_params["id"])
        except BadInput as error:
            return refused(error, 404)
        return JSONResponse(as_json(found, whole=True))

    async def decide(self, request: Request, name: str) -> Response:
        told, id = _decision(await body_of(request, self._limits)), request.path_params["id"]
        try:
            await run_in_threadpool(self._approvals.get, id)
        except BadInput as error:
            return refused(error, 404)
        try:
            decided = await run_in_threadpool(self._approvals.decide, id, told["verdict"], name, told["digest"])
        except BadInput as error:  # another text, or decided already
            return refused(error, 409)
        return JSONResponse(as_json(decided, whole=False))


def _personal(tokens: Tokens, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    """The handler, for people who decide alone; its errors are said as JSON."""

    async def endpoint(request: Request) -> Response:
        name = tokens.person(request)
        if name is None:
            error = Denied("Send the token of a person who decides.")
            return refused(error, 401, {"www-authenticate": "Bearer"})
        try:
            return await answer(request, name)
        except ToolwiseError as error:
            return refused(error, _STATUS.get(error.code, 400))

    return endpoint


def _decision(told: Any) -> dict[str, Any]:
    match told:
        case {"verdict": "approved" | "rejected", "digest": str(), **rest} if not rest:
            return dict(told)
    raise BadInput("Send exactly a verdict, approved or rejected, and the digest of the text that was shown.")


def _static(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    content = _STATIC.joinpath(name).read_bytes()

    async def endpoint(request: Request) -> Response:
        return Response(content, media_type=kind)

    return endpoint


async def _strange(request: Request, error: HTTPException) -> Response:
    return refused(BadInput("There is nothing of this kind here."), error.status_code, error.headers)


async def _failed(request: Request, error: Exception) -> Response:
    return refused(ToolwiseError("Something failed here; whoever runs this machine can see what."), 500)
