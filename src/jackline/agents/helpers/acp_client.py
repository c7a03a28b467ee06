"""One turn of an agent that speaks ACP: initialize, open the session, prompt, and serve the agent until the end.

Everything that the agent asks for (permission for a call, files) goes through the gate. The arguments are the agent's
command line; the rest of the input is the environment (JACKLINE_GATE, …).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from ..scripted.playback.agent_io import Stop, build_failure, build_lost_session, emit
from . import workspace_io
from .acp_rpc import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    NOT_FOUND,
    AgentGone,
    AgentProcess,
    Interrupted,
    RpcConnection,
    RpcError,
)
from .acp_updates import AcpUpdates
from .helper_turn import Heartbeat, HelperContext, as_count, build_http_failure, child_env, run_helper

PROTOCOL = 1
START_SECONDS = 120.0
QUIET_SECONDS = 0.3
AUTH_REQUIRED = -32000
TERMINATED = 143
# Writes go through us, so that the gate sees them. Reads do not: unlike an editor we have no unsaved files, and at
# least one agent treats our "not found" as a failure, and then cannot create a new file.
CAPABILITIES = {"fs": {"readTextFile": False, "writeTextFile": True}, "terminal": False}
ALLOWING = ("allow_once", "allow_always")
REJECTING = ("reject_once", "reject_always")
CANCELLED: Mapping[str, Any] = {"outcome": {"outcome": "cancelled"}}
_STATUSES = range(400, 600)  # some agents use the provider's HTTP status as the error code
_STOP_REASONS = {
    "max_tokens": ("context_too_long", "the model ran out of tokens"),
    "max_turn_requests": ("agent_error", "the agent reached its limit of requests in one turn"),
    "refusal": ("agent_error", "the model refused"),
    "cancelled": ("agent_error", "the turn was cancelled, and not by us"),
}
Params = dict[str, Any]


def main(arguments: Sequence[str]) -> int:
    return run_helper(partial(_run_turn, arguments))


def _run_turn(argv: Sequence[str], context: HelperContext, prompt: str) -> None:
    if not argv:
        raise build_failure("agent_error", "no agent command line given")
    process = AgentProcess(argv, context.workspace, child_env(context.environ))
    try:
        _Client(context, process).run_turn(prompt)
    except AgentGone:
        detail = f"the agent exited in the middle of its turn, with exit code {process.close()}"
        raise build_failure("crashed", detail) from None
    except Interrupted:
        raise SystemExit(TERMINATED) from None  # the supervisor sent the signal, and knows the reason
    finally:
        process.close()


class _Client:
    """Our side of the protocol."""

    def __init__(self, context: HelperContext, process: AgentProcess) -> None:
        self._context = context
        self._updates = AcpUpdates(context.gate, Heartbeat())
        self._requests = _AgentRequests(context, self._updates, self._cancel)
        self._rpc = RpcConnection(process, self._requests.serve, self._updates.handle, self._updates.settle)

    def _cancel(self) -> None:
        self._rpc.cancel()

    def run_turn(self, prompt: str) -> None:
        session, opened = self._open_session(self._initialize())
        emit("session", id=session)
        if self._context.model:
            self._choose_model(session, opened)
        self._updates.is_live = True
        try:
            ended = self._rpc.prompt(session, prompt)
        except RpcError as error:
            self._updates.flush()
            _raise_failure(error)
        self._updates.flush()
        self._finish(ended)

    def _initialize(self) -> Mapping[str, Any]:
        about = {"name": "jackline", "title": "jackline", "version": "1"}
        params = {"protocolVersion": PROTOCOL, "clientCapabilities": CAPABILITIES, "clientInfo": about}
        answer = self._request("initialize", params)
        if answer.get("protocolVersion") != PROTOCOL:
            version = answer.get("protocolVersion")
            raise build_failure("unavailable", f"the agent speaks version {version} of ACP, not {PROTOCOL}")
        capabilities = answer.get("agentCapabilities")
        return capabilities if isinstance(capabilities, dict) else {}

    def _open_session(self, capabilities: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        params: Params = {"cwd": self._context.workspace, "mcpServers": list(self._context.servers)}
        if not self._context.resumes:
            opened = self._request("session/new", params)
            return str(opened.get("sessionId")), opened
        if capabilities.get("loadSession") is not True:
            raise build_lost_session("this agent cannot load a session")
        opened = self._request("session/load", {**params, "sessionId": self._context.session}, _raise_lost)
        # The agent repeats the session's past, and some agents continue after they have answered.
        self._rpc.drain(QUIET_SECONDS)
        return self._context.session, opened

    def _choose_model(self, session: str, opened: Mapping[str, Any]) -> None:
        """Use whichever of the protocol's two methods the agent supports."""
        model = self._context.model
        params: Params = {"sessionId": session}
        options = opened.get("configOptions")
        choices = [one for one in options if isinstance(one, dict)] if isinstance(options, list) else []
        option = next((str(one.get("id")) for one in choices if "model" in (one.get("category"), one.get("id"))), "")
        if option:
            params |= {"configId": option, "value": model}
            self._request("session/set_config_option", params, self._raise_no_model)
        elif "models" in opened:
            self._request("session/set_model", {**params, "modelId": model}, self._raise_no_model)
        else:
            raise build_failure("agent_error", "this agent takes no model over ACP; name it in its own arguments")

    def _raise_no_model(self, error: RpcError) -> NoReturn:
        detail = f"the agent does not accept the model '{self._context.model}': {_describe(error)}"
        raise build_failure("model_not_found", detail)

    def _request(
        self, method: str, params: Mapping[str, object], on_error: Callable[[RpcError], NoReturn] | None = None
    ) -> Mapping[str, Any]:
        try:
            return self._rpc.request(method, params, START_SECONDS)
        except RpcError as error:
            if on_error is None or error.code == AUTH_REQUIRED:
                _raise_failure(error)
            on_error(error)

    def _finish(self, ended: Mapping[str, Any]) -> None:
        _emit_usage(ended)
        if self._requests.is_deferred:
            raise Stop(0, "end", reason="deferred")
        if self._rpc.is_cancelled:
            raise Interrupted
        reason = str(ended.get("stopReason"))
        if reason != "end_turn":
            name, detail = _STOP_REASONS.get(reason, ("agent_error", f"the agent stopped: {reason}"))
            raise build_failure(name, detail)
        emit("end", reason="done")


class _AgentRequests:
    """Answers the agent's requests; a call that needs approval ends the turn and sets `is_deferred`."""

    def __init__(self, context: HelperContext, updates: AcpUpdates, cancel: Callable[[], None]) -> None:
        self._context, self._updates, self._cancel = context, updates, cancel
        self._file_calls = 0
        self.is_deferred = False

    def serve(self, method: str, params: Params) -> Mapping[str, Any]:
        match method:
            case "session/request_permission":
                return self._request_permission(params)
            case "fs/read_text_file":
                path, first, count = str(params.get("path")), params.get("line"), params.get("limit")
                first = first if isinstance(first, int) and first > 0 else 1
                count = count if isinstance(count, int) and count > 0 else None
                read = partial(workspace_io.read_lines, self._context.workspace, path, first, count)
                return {"content": self._ask_and_run("read", {"path": path}, read)}
            case "fs/write_text_file":
                path, content = str(params.get("path")), str(params.get("content"))
                write = partial(workspace_io.write_text, self._context.workspace, path, content)
                self._ask_and_run("write", {"path": path, "content": content}, write)
                return {}
        raise RpcError(METHOD_NOT_FOUND, f"{method} is not supported here")

    def _request_permission(self, params: Params) -> Mapping[str, Any]:
        asked, options = params.get("toolCall"), params.get("options")
        if self.is_deferred or not isinstance(asked, dict):
            return CANCELLED
        call = self._updates.find_call(asked)
        self._updates.flush()
        answer = self._context.gate.prepare(call.tool, call.call_input, call.id)
        match answer["decision"]:
            case "allow":
                call.admitted = str(answer["call"])
                self._updates.report_start(call)
                return _choose_option(options, ALLOWING)
            case "ask":
                call.is_refused = True
                self._defer()
                return CANCELLED
            case "stored":
                emit("message", text=f"{call.tool} was done before and is not repeated: {answer.get('output')}")
            case _:  # the protocol carries no reason to the agent
                emit("message", text=f"{call.tool} was denied: {answer.get('reason')}")
        call.is_refused = True
        return _choose_option(options, REJECTING)

    def _defer(self) -> None:
        self.is_deferred = True
        self._cancel()

    def _ask_and_run(self, tool: str, given: Params, work: Callable[[], str | None]) -> str | None:
        """Do the work here, if the gate allows it; otherwise the model reads the reason."""
        self._file_calls += 1
        gate = self._context.gate
        answer = gate.prepare(tool, given, f"fs{self._file_calls}")
        if answer["decision"] == "ask":
            self._defer()
        if answer["decision"] != "allow":
            raise RpcError(INTERNAL_ERROR, f"denied: {answer.get('reason') or answer['decision']}")
        try:
            result = work()
        except (OSError, ValueError) as error:
            gate.finish(call=answer["call"], ok=False, output=str(error))
            # Agents check before they write: a file that does not exist yet must not look like a failure.
            missing = isinstance(error, FileNotFoundError)
            raise RpcError(NOT_FOUND if missing else INTERNAL_ERROR, str(error)) from None
        gate.finish(call=answer["call"], ok=True, output="")
        return result


def _choose_option(options: object, kinds: tuple[str, ...]) -> Mapping[str, Any]:
    """Prefer `once` to `always`: with `always` the agent would not ask again."""
    offered = [one for one in options if isinstance(one, dict)] if isinstance(options, list) else []
    for kind in kinds:
        for one in offered:
            if one.get("kind") == kind:
                return {"outcome": {"outcome": "selected", "optionId": one.get("optionId")}}
    return CANCELLED


def _raise_lost(error: RpcError) -> NoReturn:
    raise build_lost_session(f"the session cannot be loaded: {_describe(error)}")


def _raise_failure(error: RpcError) -> NoReturn:
    if error.code == AUTH_REQUIRED:
        raise build_failure("authentication", f"{_describe(error)}; start the agent once by hand to log in")
    if error.code in _STATUSES:
        raise build_http_failure(error.code, _describe(error))
    raise build_failure("agent_error", _describe(error))


def _describe(error: RpcError) -> str:
    """Its message, with the details that some agents put into its data."""
    data = error.data
    more = data.get("details") or data.get("message") if isinstance(data, dict) else data
    return f"{error.message}: {more}" if isinstance(more, str) and more else error.message


def _emit_usage(ended: Mapping[str, Any]) -> None:
    """Agents report usage in different fields; an agent that reports none is charged nothing."""
    usage = ended.get("usage")
    if isinstance(usage, dict):
        read = as_count(usage.get("cachedReadTokens"))
        given = as_count(usage.get("inputTokens")) + read + as_count(usage.get("cachedWriteTokens"))
        output = as_count(usage.get("outputTokens")) + as_count(usage.get("thoughtTokens"))
        emit("usage", input=given, output=output, cached=read)
        return
    meta = ended.get("_meta")
    quota = meta.get("quota") if isinstance(meta, dict) else None
    count = quota.get("token_count") if isinstance(quota, dict) else None
    if isinstance(count, dict):
        emit("usage", input=count.get("input_tokens"), output=count.get("output_tokens"), scope="turn")
