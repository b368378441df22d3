"""Opens or resumes a conversation with an agent by the Agent Client Protocol, and sends it one prompt.

What the agent reports is passed on unchanged. Every permission that it asks for is granted until its turn is cancelled:
for one time, or permanently if the agent offers nothing else, because a permanent permission may outlive the run.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acp import schema
from acp.core import Connection, RequestError
from acp.meta import AGENT_METHODS, CLIENT_METHODS, PROTOCOL_VERSION
from acp.utils import serialize_params

from coral import __version__
from coral.runtimes.acp.refusal import RefusalKind
from coral.runtimes.acp.tracking import CostMeter, StepUsage, ToolCalls, cut
from coral.runtimes.acp.wire import Wire
from coral.runtimes.json_object import JsonObject

ALLOWED = ("allow_once", "allow_always")
UNATTENDED = ("bypassPermissions", "agent-full-access", "full-access", "yolo")  # modes that ask for no permission
# Requests that only some agents make; they wait for an answer, and stop at an error.
VENDORS = ("cursor/",)
QUIET, LONGEST_REPLAY = 0.5, 10.0  # seconds of silence that end a replay; the longest replay
SHORT = 600  # characters: a shorter reply, without a tool call, may be an error
Say = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Choices:
    """The task's choices for the session; empty if it has none. `patience`: seconds for each request but the prompt."""

    model: str = ""
    mode: str = ""
    effort: str = ""
    auth: str = ""
    patience: float = 120.0


class Refused(Exception):  # noqa: N818 - an answer of the agent
    """The agent refused a request, or did not answer it. `during`: the step; `code`: of JSON-RPC; `kind`: a
    RefusalKind, or empty."""

    def __init__(self, during: str, message: str, code: int = 0, data: object = None, kind: str = "") -> None:
        super().__init__(message)
        self.during, self.code, self.data, self.kind = during, code, data, kind


class AgentSession:
    """A session with an agent, for one prompt. `say`: called for everything that happens, with keywords that JSON can
    hold; `state`: the folder in which the cost of the conversation is kept."""

    def __init__(self, writer: asyncio.StreamWriter, reader: asyncio.StreamReader, say: Say, state: Path) -> None:
        self._wire = Wire(writer, reader)
        self._connection = Connection(self._answer, self._wire)
        self._say = say
        self._tools = ToolCalls()
        self._cost = CostMeter(state)
        self._steps = StepUsage()
        self._session = ""
        self._prompted = self._cancelled = False
        self._loads = self._resumes = False
        self.during = "start"
        self._reply: str | None = ""  # None after a tool call, or when it is too long for an error

    async def run(self, cwd: str, session: str, prompt: str, choices: Choices) -> None:
        """Open or resume the session, and send the prompt. Raises Refused, and OSError if the agent is gone."""
        wait = choices.patience
        await self._greet(choices.auth, wait)
        found = await self._open(cwd, session, wait)
        self._say(type="session", session=self._session, resumed=bool(session))
        for category, wanted in (("model", choices.model), ("thought_level", choices.effort), ("mode", choices.mode)):
            if wanted:
                await self._choose(found, category, wanted, wait)
        if not choices.mode:
            await self._unattended(found, wait)
        if session and self._loads:
            await self._quiet(min(wait, LONGEST_REPLAY))
        self._cost.open(self._session, new=not session)
        self._prompted = True
        self._say(type="prompted")
        text = schema.TextContentBlock(type="text", text=prompt)
        request = schema.PromptRequest(session_id=self._session, prompt=[text])
        result = await self._ask("prompt", AGENT_METHODS["session_prompt"], serialize_params(request), None)
        self._say(
            type="result",
            stop=result.line("stopReason", limit=40),
            usage=cut(result.raw("usage")) or self._steps.sum,
            cost=self._cost.spent,
            reply=self._reply,
        )

    async def cancel(self) -> bool:
        """Ask the agent to end its turn, which it reports as the answer to the prompt. False if that is not possible,
        or if no turn has begun."""
        if not self._prompted:
            return False
        self._cancelled = True
        notice = schema.CancelNotification(session_id=self._session)
        try:
            await self._connection.send_notification(AGENT_METHODS["session_cancel"], serialize_params(notice))
        except OSError:
            return False
        return True

    async def close(self) -> None:
        await self._connection.close()

    # --- requests to the agent --------------------------------------------------------------------------------------

    async def _greet(self, auth: str, wait: float) -> None:
        hello = schema.InitializeRequest(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=schema.ClientCapabilities(),
            client_info=schema.Implementation(name="coral", version=__version__),
        )
        found = await self._ask("initialize", AGENT_METHODS["initialize"], serialize_params(hello), wait)
        self._loads = found.true("agentCapabilities", "loadSession")
        self._resumes = found.raw("agentCapabilities", "sessionCapabilities", "resume") is not None
        logins = [method.line("id", limit=60) for method in found.items("authMethods")]
        name, version = (found.line("agentInfo", field) for field in ("name", "version"))
        self._say(type="agent", name=name, version=version, logins=logins)
        if auth:
            login = schema.AuthenticateRequest(method_id=auth)
            await self._ask("authenticate", AGENT_METHODS["authenticate"], serialize_params(login), wait)

    async def _open(self, cwd: str, session: str, wait: float) -> JsonObject:
        if not session:
            new = schema.NewSessionRequest(cwd=cwd, mcp_servers=[])
            found = await self._ask("new", AGENT_METHODS["session_new"], serialize_params(new), wait)
            self._session = str(found.raw("sessionId") or "")
            if not self._session:
                raise Refused("new", "it gave no session")
            return found
        if not self._loads and not self._resumes:
            raise Refused("load", "it cannot go on with a conversation: say resumes: false in agents.options")
        self._session = session
        method = AGENT_METHODS["session_load" if self._loads else "session_resume"]
        load = schema.LoadSessionRequest(cwd=cwd, mcp_servers=[], session_id=session)
        return await self._ask("load", method, serialize_params(load), wait)

    async def _quiet(self, most: float) -> None:
        """Wait for silence: some agents replay the conversation after their answer, which is no part of this turn."""
        loop = asyncio.get_running_loop()
        latest, before = loop.time() + most, -1
        while before != self._wire.received and loop.time() < latest:
            before = self._wire.received
            await asyncio.sleep(QUIET)

    async def _choose(self, found: JsonObject, category: str, wanted: str, wait: float) -> None:
        """Choose a value that the session offers: as a configuration option, or as in older versions of the protocol.
        Raises Refused if it does not offer `wanted`."""
        offered: list[str] = []
        for option in found.items("configOptions"):
            if category in (option.raw("category"), option.raw("id")):
                offered += _values(option)
                if wanted in offered:
                    request = {"sessionId": self._session, "configId": option.raw("id"), "value": wanted}
                    await self._ask("choice", AGENT_METHODS["session_set_config_option"], request, wait)
                    return
        if category == "mode" and wanted in (modes := _modes(found)):
            await self._set_mode(wanted, wait)
            return
        if category == "model":
            models = [str(model.raw("modelId")) for model in found.items("models", "availableModels")]
            if wanted in models:
                request = {"sessionId": self._session, "modelId": wanted}
                await self._ask("choice", "session/set_model", request, wait)
                return
            offered += models
        elif category == "mode":
            offered += modes
        name = {"thought_level": "effort"}.get(category, category)
        text = f"it offers no {name} {wanted!r}; there is {', '.join(offered) or 'none to choose'}"
        raise Refused("choice", text, kind=RefusalKind.NOT_OFFERED)

    async def _unattended(self, found: JsonObject, wait: float) -> None:
        """Choose a mode that asks for no permission, if there is one: that is quicker than granting each."""
        mode = next((name for name in UNATTENDED if name in _modes(found)), "")
        if mode and mode != found.raw("modes", "currentModeId"):
            try:
                await self._set_mode(mode, wait)
            except Refused as refused:
                self._say(type="notice", message=f"it does not change to the mode {mode}: {refused}")

    async def _set_mode(self, mode: str, wait: float) -> None:
        request = schema.SetSessionModeRequest(session_id=self._session, mode_id=mode)
        await self._ask("choice", AGENT_METHODS["session_set_mode"], serialize_params(request), wait)

    async def _ask(self, during: str, method: str, params: Mapping[str, Any], wait: float | None) -> JsonObject:
        self.during = during
        try:
            return JsonObject(await asyncio.wait_for(self._connection.send_request(method, dict(params)), wait))
        except RequestError as error:
            raise Refused(during, str(error), error.code, error.data) from error
        except TimeoutError as error:
            text = f"it does not answer {method} within {wait:g} seconds"
            raise Refused(during, text, kind=RefusalKind.TIMEOUT) from error

    # --- messages of the agent -------------------------------------------------------------------------------------

    async def _answer(self, method: str, params: object, is_notification: bool) -> Mapping[str, Any] | None:
        event = JsonObject(params)
        if method == CLIENT_METHODS["session_update"]:
            self._update(event.inner("update"))
            return None
        if method == CLIENT_METHODS["session_request_permission"]:
            return {"outcome": self._permit(event)}
        self._say(type="other", method=str(method)[:80])
        if is_notification or str(method).startswith(VENDORS):
            return {}
        raise RequestError.method_not_found(method)

    def _update(self, update: JsonObject) -> None:
        """Report an update; before the prompt, an agent may replay the conversation."""
        kind = update.line("sessionUpdate", limit=60)
        if kind == "usage_update":
            self._cost.take(update.inner("cost"))
        if not self._prompted:
            return
        self._steps.take(update.inner("_meta", "usage"))
        if kind == "usage_update":
            if self._cost.spent is not None:
                self._say(type="usage", cost=self._cost.spent)
            return
        if kind == "agent_message_chunk" and self._reply is not None:
            self._reply += str(update.raw("content", "text") or "")
            self._reply = self._reply if len(self._reply) <= SHORT else None
        elif kind in ("tool_call", "tool_call_update"):
            self._reply, update = None, self._tools.merge(update)
        self._say(type="update", update=cut(update.raw()))

    def _permit(self, event: JsonObject) -> Mapping[str, str]:
        if self._cancelled:
            return {"outcome": "cancelled"}
        options = event.items("options")
        self._say(type="permission", title=event.line("toolCall", "title"))
        for kind in ALLOWED:
            for option in options:
                if option.raw("kind") == kind and isinstance(option.raw("optionId"), str):
                    return {"outcome": "selected", "optionId": str(option.raw("optionId"))}
        return {"outcome": "cancelled"}


def _modes(found: JsonObject) -> list[str]:
    return [str(mode.raw("id")) for mode in found.items("modes", "availableModes")]


def _values(option: JsonObject) -> list[str]:
    """Return the values of an option that can be chosen, whether they are in groups or not."""
    choices = [choice for group in option.items("options") for choice in (group, *group.items("options"))]
    return [value for choice in choices if isinstance(value := choice.raw("value"), str)]
