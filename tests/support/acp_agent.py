"""A real agent of the Agent Client Protocol, written with the SDK's own side of it, that does what its script says.

`acp_agent.py FOLDER SCRIPT`: its conversations are files in the folder; the script is a JSON object: `turns`, a list of
lists of steps, one list for each prompt of a conversation (the last one again and again), and what it is and offers.
"""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import acp
from acp import schema


class Agent:
    def __init__(self, folder: Path, script: dict[str, Any]) -> None:
        self._folder = folder
        self._script = script
        self._shell: asyncio.subprocess.Process | None = None
        self._cancelled = asyncio.Event()
        self._client: Any = None
        self._tools = 0

    def on_connect(self, conn: Any) -> None:
        self._client = conn

    # --- the protocol ---------------------------------------------------------------------------------------------

    async def initialize(self, protocol_version: int, **kwargs: Any) -> acp.InitializeResponse:
        for line in self._script.get("noise", ()):
            print(line, flush=True)
        if self._script.get("mute"):
            await asyncio.sleep(3600)
        return acp.InitializeResponse(
            protocol_version=protocol_version,
            agent_capabilities=schema.AgentCapabilities(load_session=self._script.get("loads", True)),
            agent_info=schema.Implementation(name="scripted", version="1.2"),
            auth_methods=[schema.AuthMethodAgent(id="a-login", name="Log in")],
        )

    async def authenticate(self, method_id: str, **kwargs: Any) -> acp.AuthenticateResponse:
        self._note("authenticated", method_id)
        if method_id != "a-login":
            raise acp.RequestError.invalid_params({"details": "no such method"})
        return acp.AuthenticateResponse()

    async def new_session(self, cwd: str, **kwargs: Any) -> acp.NewSessionResponse:
        self._fail("new")
        id = f"s-{uuid.uuid4()}"
        self._save(id, [])
        self._note("new", cwd)
        return acp.NewSessionResponse(session_id=id, **self._offers())

    async def load_session(self, cwd: str, session_id: str, **kwargs: Any) -> acp.LoadSessionResponse:
        self._note("load", session_id)
        if self._script.get("leaves_at_load"):
            os._exit(0)
        if not self._path(session_id).exists():
            raise acp.RequestError.resource_not_found(session_id)
        for entry in self._load(session_id):
            await self._update(session_id, acp.update_user_message_text(entry["prompt"]))
            await self._update(session_id, acp.update_agent_message_text(entry["said"]))
        await self._tell_cost(session_id)
        return acp.LoadSessionResponse(**self._offers())

    async def set_session_mode(self, mode_id: str, session_id: str, **kwargs: Any) -> acp.SetSessionModeResponse:
        self._note("mode", mode_id)
        self._fail("mode")
        return acp.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **kwargs: Any
    ) -> acp.SetSessionConfigOptionResponse:
        self._note(config_id, str(value))
        return acp.SetSessionConfigOptionResponse(config_options=[])

    async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> acp.PromptResponse:
        self._cancelled.clear()
        before, text = self._load(session_id), "".join(block.text for block in prompt)
        entry = {"prompt": text, "said": "", "ended": "", "pid": os.getpid()}
        self._save(session_id, [*before, entry])
        turns = self._script["turns"]
        reason, usage = "end_turn", None
        for step in turns[min(len(before), len(turns) - 1)]:
            ((name, value),) = step.items()
            if name == "end":
                reason = value
            elif name == "use":
                usage = schema.Usage(**value)
            else:
                await getattr(self, f"_do_{name}")(session_id, value, entry, len(before) + 1)
            if self._cancelled.is_set():
                reason = "cancelled"
                break
        entry["ended"] = reason
        self._save(session_id, [*before, entry])
        return acp.PromptResponse(stop_reason=reason, usage=usage)

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        self._note("cancel", session_id)
        if self._script.get("deaf"):
            await self._update(session_id, acp.update_agent_message_text("Not yet."))
            return
        self._cancelled.set()
        self._end_shell()

    def _end_shell(self) -> None:
        if self._shell is not None and self._shell.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._shell.pid, signal.SIGTERM)

    # --- the steps ------------------------------------------------------------------------------------------------

    async def _do_say(self, session: str, text: str, entry: dict[str, Any], number: int) -> None:
        entry["said"] += text
        for word in text.split(" "):
            await self._update(session, acp.update_agent_message_text(f"{word} "))

    async def _do_think(self, session: str, text: str, entry: dict[str, Any], number: int) -> None:
        await self._update(session, acp.update_agent_thought_text(text))

    async def _do_run(self, session: str, command: str, entry: dict[str, Any], number: int) -> None:
        """A shell, after permission, in a session of its own as the real ones do."""
        command, id = command.replace("{n}", str(number)), self._tool()
        call = acp.start_tool_call(id, "Shell", kind="execute", status="pending")
        await self._update(session, call)
        if not await self._may(session, id, command):
            await self._update(session, acp.update_tool_call(id, status="failed"))
            return
        raw = {"command": command}
        await self._update(session, acp.update_tool_call(id, status="in_progress", raw_input=raw))
        self._shell = await asyncio.create_subprocess_shell(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
        if self._cancelled.is_set():  # while the shell was being started
            self._end_shell()
        said, _ = await self._shell.communicate()
        content = [acp.tool_content(acp.text_block(said.decode("utf-8", "replace")))]
        status = "completed" if self._shell.returncode == 0 else "failed"
        await self._update(session, acp.update_tool_call(id, status=status, content=content))

    async def _do_edit(self, session: str, value: list[str], entry: dict[str, Any], number: int) -> None:
        path, text = value[0], value[1].replace("{n}", str(number))
        Path(path).write_text(text)
        call = acp.start_edit_tool_call(self._tool(), f"Write {path}", path, text)
        await self._update(session, call.model_copy(update={"status": "completed"}))

    async def _do_cost(self, session: str, amount: float, entry: dict[str, Any], number: int) -> None:
        kept = self._folder / "cost"
        kept.write_text(str(float(kept.read_text() if kept.exists() else "0") + amount))
        await self._tell_cost(session)

    async def _do_raw(self, session: str, update: dict[str, Any], entry: dict[str, Any], number: int) -> None:
        """An update as no SDK would send it."""
        await self._client._conn.send_notification("session/update", {"sessionId": session, "update": update})

    async def _do_ask(self, session: str, method: str, entry: dict[str, Any], number: int) -> None:
        """A request of this one vendor's own."""
        try:
            entry["said"] += json.dumps(await self._client._conn.send_request(method, {}))
        except acp.RequestError as error:
            entry["said"] += f"error {error.code}"

    async def _do_fail(self, session: str, error: dict[str, Any], entry: dict[str, Any], number: int) -> None:
        raise acp.RequestError(error.get("code", -32603), error["message"], error.get("data"))

    async def _do_wait(self, session: str, name: str, entry: dict[str, Any], number: int) -> None:
        """Until it is cancelled; a file by that name says that it waits."""
        (self._folder / name).touch()
        await self._cancelled.wait()

    async def _do_exit(self, session: str, code: int, entry: dict[str, Any], number: int) -> None:
        print("it went wrong here", file=sys.stderr, flush=True)
        os._exit(code)

    # --- help -----------------------------------------------------------------------------------------------------

    async def _may(self, session: str, id: str, title: str) -> bool:
        if not self._script.get("asks", True):
            return True
        options = [
            schema.PermissionOption(option_id=f"o-{kind}", name=kind, kind=kind)
            for kind in ("reject_once", "allow_always", "allow_once")
        ]
        call = schema.ToolCallUpdate(tool_call_id=id, title=title)
        answer = await self._client.request_permission(session_id=session, tool_call=call, options=options)
        chosen = getattr(answer.outcome, "option_id", "")
        self._note("permitted", chosen)
        return bool(chosen)

    async def _tell_cost(self, session: str) -> None:
        kept = self._folder / "cost"
        if kept.exists() and not self._script.get("silent_cost_at_load"):
            cost = schema.Cost(amount=float(kept.read_text()), currency="USD")
            await self._update(session, schema.UsageUpdate(session_update="usage_update", used=10, size=100, cost=cost))

    def _offers(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if modes := self._script.get("modes"):
            listed = [schema.SessionMode(id=mode, name=mode) for mode in modes]
            found["modes"] = schema.SessionModeState(current_mode_id=modes[0], available_modes=listed)
        options = []
        for category, values in self._script.get("choices", {}).items():
            listed_values = [schema.SessionConfigSelectOption(value=value, name=value) for value in values]
            options.append(
                schema.SessionConfigOptionSelect(
                    id=f"c-{category}",
                    name=category,
                    category=category,
                    type="select",
                    current_value=values[0],
                    options=listed_values,
                )
            )
        return {**found, **({"config_options": options} if options else {})}

    def _fail(self, where: str) -> None:
        error = self._script.get("errors", {}).get(where)
        if error:
            raise acp.RequestError(error.get("code", -32603), error["message"], error.get("data"))

    def _tool(self) -> str:
        self._tools += 1
        return f"t{self._tools}"

    async def _update(self, session: str, update: Any) -> None:
        await self._client.session_update(session_id=session, update=update)

    def _path(self, session: str) -> Path:
        return self._folder / f"{session}.json"

    def _load(self, session: str) -> list[dict[str, Any]]:
        return list(json.loads(self._path(session).read_text()))

    def _save(self, session: str, entries: list[dict[str, Any]]) -> None:
        transaction = self._path(session).with_suffix(".partial")
        transaction.write_text(json.dumps(entries))
        transaction.replace(self._path(session))

    def _note(self, what: str, value: str) -> None:
        with (self._folder / "notes.jsonl").open("a") as file:
            file.write(json.dumps([what, value]) + "\n")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, lambda *_: os._exit(77))  # an interrupt is not for the agent: a test would see this
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(acp.run_agent(Agent(folder, json.loads(sys.argv[2]))))
