"""The addresses of the dashboard: the answer to each, and the answer where a run or a file cannot be read."""

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from attempts.store import StoreError
from coral import __version__
from coral.errors import CoralError, hint_of
from coral.web import (
    agents_data,
    artifacts,
    attempts_data,
    curve_data,
    fleet_data,
    knowledge_data,
    membership,
    metrics_data,
    past_data,
    preview,
    resuming,
    runs_data,
    steering,
    synthesis_data,
)
from coral.web.access import Guard, PageAccess, refusal
from coral.web.assets import Asset, assets, open_paths
from coral.web.lineage_data import LineageCache
from coral.web.live import to_json
from coral.web.reading import RunView, opened
from coral.web.runs import Runs
from heartbeats.heartbeat import HeartbeatError
from workspace.errors import WorkspaceError

PING_SECONDS = 3  # a page that hears nothing for three times as long makes a new connection
GRACE_SECONDS = 1.0
Asked = Mapping[str, str]  # the parameters of an address
Answer = Callable[[RunView, Asked], object]

# Below /api/runs/<run>/; what is read of one run.
READS: dict[str, Answer] = {
    "fleet": lambda view, _: fleet_data.fleet(view),
    "attempts": attempts_data.table,
    "attempts/{number:int}": lambda view, asked: attempts_data.one(view, int(asked["number"])),
    "attempts/{number:int}/hint": lambda view, asked: attempts_data.hint(view, int(asked["number"])),
    "attempts/{number:int}/diff": lambda view, asked: attempts_data.change(
        view, int(asked["number"]), asked.get("against", "parent")
    ),
    "attempts/{number:int}/text": lambda view, asked: artifacts.text_of(view, int(asked["number"]), asked),
    "attempts/{number:int}/file": lambda view, asked: artifacts.download(view, int(asked["number"]), asked),
    "metrics": metrics_data.names,
    "metrics/pairs": metrics_data.pairs,
    "knowledge": knowledge_data.knowledge,
    "knowledge/notes/{number:int}": knowledge_data.note,
    "knowledge/skill": knowledge_data.skill,
    "knowledge/syntheses": synthesis_data.compared,
    "heartbeats": agents_data.heartbeats,
    "heartbeats/answer": agents_data.answer,
    "membership": membership.choices,
    "transcript": agents_data.conversation,
    "past": past_data.past,
}


def application(runs: Runs, access: PageAccess) -> Guard:
    curves, lineages = curve_data.Curves(), LineageCache()
    routes = [
        *(Route(path, _asset(asset)) for path, asset in assets().items()),
        Route("/api/session", _session(runs, access)),
        Route("/api/runs", lambda _: as_json(runs_data.listing(runs))),
        Route("/api/compare", lambda request: as_json(runs_data.compared(runs, request.query_params.getlist("run")))),
        Route("/api/runs/{run}/live", _live(runs)),
        Route("/api/runs/{run}/requests", _post(runs, steering.request), methods=["POST"]),
        Route("/api/runs/{run}/resume", _post(runs, resuming.resume), methods=["POST"]),
        Route("/api/runs/{run}/preview", _post(runs, preview.preview), methods=["POST"]),
        Route("/api/runs/{run}/curve", _read(runs, curves.get)),
        Route("/api/runs/{run}/lineage", _read(runs, lineages.get)),
        *(Route(f"/api/runs/{{run}}/{path}", _read(runs, answer)) for path, answer in READS.items()),
    ]
    mistakes = dict.fromkeys((CoralError, StoreError, WorkspaceError, HeartbeatError), _cannot)
    handlers: Any = {**mistakes, HTTPException: _no_such, OSError: _unreadable}
    return Guard(Starlette(routes=routes, exception_handlers=handlers), access, open_paths())


def _asset(asset: Asset) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        tag = f'"{asset.digest}"'
        headers = {"etag": tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        return Response(asset.content, headers={**headers, "content-type": asset.media_type})

    return answer


def _session(runs: Runs, access: PageAccess) -> Callable[[Request], Response]:
    """Answer the page's first request: which run it shows, and the value of the header that it sends with each
    change."""

    def answer(_: Request) -> Response:
        return as_json({"version": __version__, "run": runs.first.root.name, "change": access.change})

    return answer


def _read(runs: Runs, read: Answer) -> Callable[[Request], Response]:
    def answered(request: Request) -> Response:
        asked = {**request.query_params, **{name: str(value) for name, value in request.path_params.items()}}
        with opened(runs.readable(asked["run"])) as view:
            answer = read(view, asked)
            return answer if isinstance(answer, Response) else as_json(answer)

    return answered


def _post(runs: Runs, act: Callable[[RunView, Any], object]) -> Callable[[Request], Any]:
    """Answer a POST, which needs the header of a change: a request to the supervisor, whose answer is waited for as
    long as a command would wait, or the rendering of a prompt, which takes time."""

    async def answer(request: Request) -> Response:
        try:
            given = parsed(await request.body())
        except (ValueError, RecursionError):
            return refusal(HTTPStatus.BAD_REQUEST, "that is no JSON")

        def send() -> object:
            with opened(runs.readable(request.path_params["run"])) as view:
                return act(view, given)

        return as_json(await run_in_threadpool(send))

    return answer


def parsed(body: bytes) -> object:
    """Return the JSON value in a body. ValueError if it is no JSON; also for NaN and 1e999, which cannot be written as
    JSON again."""
    given = json.loads(body)
    json.dumps(given, allow_nan=False)
    return given


def _live(runs: Runs) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        feed = await run_in_threadpool(runs.feed, request.path_params["run"])  # it may look through a folder of runs

        async def events() -> Any:
            async for kind, data in feed.messages():
                yield {"event": kind, "data": data}

        # The server ends its feeds when it stops; until then the response is not cut off.
        return EventSourceResponse(
            events(), ping=PING_SECONDS, ping_message_factory=_ping, shutdown_grace_period=GRACE_SECONDS
        )

    return answer


def _ping() -> ServerSentEvent:
    """Return a ping as an event with data: scripts of a page see neither comments nor events without data."""
    return ServerSentEvent("0", event="ping")


def as_json(data: object) -> Response:
    return Response(to_json(data), media_type="application/json")


async def _cannot(_: Request, error: Exception) -> Response:
    return refusal(HTTPStatus.NOT_FOUND, str(error), hint_of(error) or "")


async def _no_such(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return refusal(HTTPStatus(error.status_code), error.detail)


async def _unreadable(_: Request, error: Exception) -> Response:
    return refusal(HTTPStatus.GONE, f"the run cannot be read: {error}", "was its folder moved or removed?")
