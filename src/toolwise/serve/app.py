"""The server for programs: the chat APIs that the world uses, over any chat model, with keys and bounds.

    POST /v1/chat/completions, /v1/responses, /v1/messages, /v1beta/models/{model}:generateContent and :stream...
    GET  /v1/models, /v1beta/models     what is served
    GET  /health, /metrics              whether it lives, and what it counts
    GET  /openapi.json                  all of this, for programs

A handler reads the body strictly, asks the format to read the request, and has the model's turn written back by the
format (`serve.answer`). Errors have the format's own shape, also where nothing was read yet. Who asks is whose key it
is; without keys it is `local`, and then the server is to be reached from this machine only (`commands.serve`).

Not covered: how often somebody may ask; a budget of the gate bounds what their calls may do.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolwise.core.chat import ChatModel
from toolwise.core.clock import Clock, SystemClock
from toolwise.core.errors import BadInput, DeadlineExceeded, NotFound, ToolwiseError
from toolwise.core.jsonio import quote
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import Principal
from toolwise.decode.unmasked import downgrades
from toolwise.notation.wire.base import Ident
from toolwise.serve.answer import Answer, Shop, failure, refusal
from toolwise.serve.door import NOT_JSON, Door, body_of, is_json
from toolwise.serve.formats import APIS, COUNT_PATH, COUNTED, METHODS, Api, api_of
from toolwise.serve.keys import LOCAL, Keys
from toolwise.serve.metrics import Metrics
from toolwise.serve.openapi import description
from toolwise.serve.server_tools import ServerTools
from toolwise.serve.slots import Places

_CLOCK = SystemClock()
_ID = "toolwise.request"  # in a request's scope

Endpoint = Callable[[Request], Any]


class ApiServer:
    """The application, with what its handlers share."""

    def __init__(
        self, models: Iterable[ChatModel], keys: Keys | None, tools: ServerTools | None, shop: Shop, clock: Clock
    ) -> None:
        self.models: Mapping[str, ChatModel] = {model.name: model for model in models}
        self.shop = shop
        self._keys = keys
        self._tools = tools
        self._clock = clock
        self._started = clock.now()
        limits = shop.limits
        self._body = replace(
            limits,
            request_bytes=limits.chat_bytes,
            request_seconds=limits.chat_seconds,
            string_bytes=limits.chat_bytes,
            json_depth=limits.chat_depth,
        )

    def who(self, request: Request, door: str) -> Principal:
        """Raises Unauthenticated."""
        if self._keys is None:
            return LOCAL
        return self._keys.principal(request.headers, request.query_params, door)

    def model(self, name: str) -> ChatModel:
        """Raises NotFound, which names those that there are."""
        found = self.models.get(name)
        if found is None:
            raise NotFound(f"No model is named {quote(name)} here; there is {', '.join(map(quote, self.models))}.")
        return found

    def reply(self, api: Api) -> Endpoint:
        async def endpoint(request: Request) -> ASGIApp:
            if not is_json(request.headers):
                return refusal(api, NOT_JSON, 415)
            principal = self.who(request, api.name)
            body = await body_of(request, self._body)
            asked, framing = await run_in_threadpool(api.read, body, request)
            model, asked = self.model(asked.model), replace(asked, whose=principal.id)
            if self._tools is not None:
                model = self._tools.equipped(model, principal, request.headers)
            ident = Ident(request.scope[_ID], asked.model, int(self._clock.now().timestamp()))
            return Answer(
                *(self.shop, api, asked, framing, ident),
                make=lambda: model.reply(asked),
                lost=lambda: downgrades(model, asked) or (),
            )

        return _said_by(api, endpoint)

    async def count(self, request: Request) -> Response:
        """How many tokens a request of Anthropic's has, where the model can tell."""
        if not is_json(request.headers):
            return refusal(COUNTED, NOT_JSON, 415)
        self.who(request, COUNTED.name)
        body = await body_of(request, self._body)
        body = {"max_tokens": 1} | body if isinstance(body, dict) else body  # which the API asks for elsewhere
        asked, _ = await run_in_threadpool(COUNTED.read, body, request)
        tokens = getattr(self.model(asked.model), "prompt_tokens", None)
        if tokens is None:
            raise NotFound("The tokens of this model cannot be counted here.")
        told = asked if self._tools is None else replace(asked, tools=asked.tools + self._tools.specs)
        return JSONResponse({"input_tokens": await run_in_threadpool(tokens, told)})

    # What is served

    async def list_models(self, request: Request) -> Response:
        """For all clients at once: each leaves what it does not know."""
        self.who(request, "models")
        listed = [self._described(name) for name in self.models]
        ends = {"first_id": listed[0]["id"], "last_id": listed[-1]["id"]} if listed else {}
        return JSONResponse({"object": "list", "data": listed, "models": listed, "has_more": False} | ends)

    async def one_model(self, request: Request) -> Response:
        self.who(request, "models")
        name = request.path_params["model"]
        if name.endswith(METHODS):  # a path of another kind, which a model's name could be read from
            raise HTTPException(405, headers={"allow": "POST"})
        return JSONResponse(self._described(self.model(name).name))

    async def openapi(self, request: Request) -> Response:
        self.who(request, "models")
        return JSONResponse(description(list(self.models), keys=self._keys is not None, tools=self._tools is not None))

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def metrics(self, request: Request) -> Response:
        self.who(request, "metrics")
        return Response(self.shop.metrics.text(), media_type="text/plain; version=0.0.4")

    def _described(self, name: str) -> dict[str, Any]:
        """As OpenAI, Anthropic and Google describe a model, in this order."""
        made = self._started.astimezone(UTC)
        return {
            **{"id": name, "object": "model", "created": int(made.timestamp()), "owned_by": "toolwise"},
            **{"type": "model", "display_name": name, "created_at": made.strftime("%Y-%m-%dT%H:%M:%SZ")},
            **{"name": f"models/{name}", "displayName": name},
            "supportedGenerationMethods": ["generateContent", "streamGenerateContent"],
        }


def api_app(
    models: Iterable[ChatModel],
    *,
    keys: Keys | None = None,
    tools: ServerTools | None = None,
    hosts: Collection[str] = (),
    places: int | None = None,
    limits: Limits = LIMITS,
    clock: Clock = _CLOCK,
) -> ASGIApp:
    """The application. `tools` are those that the server runs itself. `hosts` are the names besides this machine's own
    under which it is reached; `places` is how many replies are made at one time. Raises BadInput for a host that is
    none.
    """
    line = Places(places, limits)
    threads = ThreadPoolExecutor(line.most, thread_name_prefix="toolwise-reply")
    metrics = Metrics(line)
    if tools is not None:
        tools.called = metrics.called
    served = ApiServer(models, keys, tools, Shop(line, threads, metrics, clock, limits), clock)
    gets: tuple[tuple[str, Endpoint], ...] = (
        ("/v1/models", served.list_models),
        ("/v1/models/{model:path}", served.one_model),
        ("/v1beta/models", served.list_models),
        ("/v1beta/models/{model:path}", served.one_model),
        ("/health", served.health),
        ("/metrics", served.metrics),
        ("/openapi.json", served.openapi),
    )
    routes = [
        *(Route(path, served.reply(api), methods=["POST"]) for api in APIS for path in api.paths),
        Route(COUNT_PATH, _said_by(COUNTED, served.count), methods=["POST"]),
        *(Route(path, _said_by(None, endpoint), methods=["GET"]) for path, endpoint in gets),
    ]
    handlers: dict[Any, Any] = {HTTPException: _strange, Exception: _failed}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return _counted(Door(app, hosts, programs=True, refuse=_refuse), metrics)


def _said_by(api: Api | None, endpoint: Endpoint) -> Endpoint:
    """The handler, whose errors are said in the shape of its API, or of that to which its path belongs."""

    async def answering(request: Request) -> Any:
        try:
            return await endpoint(request)
        except ToolwiseError as error:
            slow = 408 if isinstance(error, DeadlineExceeded) else None  # the request was, and not its answer
            return refusal(api or api_of(request.url.path), error, slow)

    return answering


def _refuse(path: str, error: ToolwiseError, status: int) -> ASGIApp:
    return refusal(api_of(path), error, status)


async def _strange(request: Request, error: HTTPException) -> Response:
    """No such path, or no such method of it."""
    api = api_of(request.url.path)
    if error.status_code == 404:
        return refusal(api, NotFound("There is nothing under this path; /openapi.json says what there is."))
    answer = refusal(api, BadInput("This path takes another method."), error.status_code)
    answer.headers.update(error.headers or {})
    return answer


async def _failed(request: Request, error: Exception) -> Response:
    return refusal(api_of(request.url.path), failure())


def _counted(app: ASGIApp, metrics: Metrics) -> ASGIApp:
    """Gives each request an id, as the official clients show it of one that went wrong, and counts the answers."""

    async def counting(scope: Scope, receive: Receive, send: Send) -> None:
        scope[_ID] = secrets.token_hex(12)

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                metrics.answered(_door(scope["path"]), message["status"])
                MutableHeaders(scope=message).update({"x-request-id": scope[_ID], "request-id": scope[_ID]})
            await send(message)

        await app(scope, receive, noted)

    return counting


def _door(path: str) -> str:
    """The door that a path belongs to; few words whatever was asked for."""
    if path in ("/health", "/metrics", "/openapi.json", "/v1/models", "/v1beta/models"):
        return path.rpartition("/")[2]
    return api_of(path).name
