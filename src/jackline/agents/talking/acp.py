"""One turn of an agent that speaks ACP: shake hands, open its session, prompt, listen to the end.

Its arguments are the agent's command line; the rest of what it knows is in its environment (JACKLINE_GATE, …).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from .borrowed import failed, tell
from .conversation import Conversation, Interrupted, Refusal
from .peer import Gone, Peer
from .permission import Permission
from .turn import Place, Pulse, carry_out, refused, surroundings
from .updates import Updates

PROTOCOL = 1
START_SECONDS = 120.0
QUIET_SECONDS = 0.3
AUTH_REQUIRED = -32000
TERMINATED = 143
# Writing through us, the gate sees it. For reading they need not ask: unlike an editor we have nothing unsaved, and at
# least one agent takes our "not found" for a failure, and then cannot make a new file.
CAPABILITIES = {"fs": {"readTextFile": False, "writeTextFile": True}, "terminal": False}
_STATUSES = range(400, 600)  # some agents give the provider's HTTP status as the code of the error
_STOPS = {
    "max_tokens": ("context_too_long", "the model ran out of tokens"),
    "max_turn_requests": ("agent_error", "the agent made as many requests as it may in one turn"),
    "refusal": ("agent_error", "the model refused"),
    "cancelled": ("agent_error", "the turn was cancelled, and not by us"),
}


def main(arguments: Sequence[str]) -> int:
    return carry_out(partial(_turn, arguments))


def _turn(argv: Sequence[str], place: Place, prompt: str) -> None:
    if not argv:
        raise failed("agent_error", "which agent? its command line is missing")
    peer = Peer(argv, place.workspace, surroundings(place.environ))
    try:
        _Client(place, peer).turn(prompt)
    except Gone:
        raise failed("crashed", f"the agent ended in the middle of its turn, with exit code {peer.close()}") from None
    except Interrupted:
        raise SystemExit(TERMINATED) from None  # whoever told us to end knows why
    finally:
        peer.close()


class _Client:
    """Our side of the protocol."""

    def __init__(self, place: Place, peer: Peer) -> None:
        self._place = place
        self._updates = Updates(place.gate, Pulse())
        self._permission = Permission(place, self._updates, self._cancel)
        self._talk = Conversation(peer, self._permission.serve, self._updates.hear, self._updates.settle)

    def _cancel(self) -> None:
        self._talk.cancel()

    def turn(self, prompt: str) -> None:
        able = self._shake_hands()
        session, opened = self._open(able)
        tell("session", id=session)
        if self._place.model:
            self._choose_model(session, opened)
        self._updates.is_live = True
        try:
            ended = self._talk.prompt(session, prompt)
        except Refusal as refusal:
            self._updates.flush()
            _complain(refusal)
        self._updates.flush()
        self._end(ended)

    def _shake_hands(self) -> Mapping[str, Any]:
        about = {"name": "jackline", "title": "jackline", "version": "1"}
        params = {"protocolVersion": PROTOCOL, "clientCapabilities": CAPABILITIES, "clientInfo": about}
        answer = self._ask("initialize", params)
        if answer.get("protocolVersion") != PROTOCOL:
            version = answer.get("protocolVersion")
            raise failed("unavailable", f"the agent speaks version {version} of ACP, not {PROTOCOL}")
        able = answer.get("agentCapabilities")
        return able if isinstance(able, dict) else {}

    def _open(self, able: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        params: dict[str, Any] = {"cwd": self._place.workspace, "mcpServers": list(self._place.servers)}
        if not self._place.resumes:
            opened = self._ask("session/new", params)
            return str(opened.get("sessionId")), opened
        if able.get("loadSession") is not True:
            raise failed("agent_error", "this agent cannot load a session again", session_lost=True)
        opened = self._ask("session/load", {**params, "sessionId": self._place.session}, _lost)
        # It tells the session's past; some agents go on with that after they have answered.
        self._talk.drain(QUIET_SECONDS)
        return self._place.session, opened

    def _choose_model(self, session: str, opened: Mapping[str, Any]) -> None:
        """By whichever of the protocol's two ways the agent knows."""
        model = self._place.model
        params: dict[str, Any] = {"sessionId": session}
        option = _model_option(opened)
        if option:
            self._ask("session/set_config_option", {**params, "configId": option, "value": model}, self._no_model)
        elif "models" in opened:
            self._ask("session/set_model", {**params, "modelId": model}, self._no_model)
        else:
            raise failed("agent_error", "this agent takes no model over ACP: name it among its own arguments")

    def _no_model(self, refusal: Refusal) -> NoReturn:
        raise failed("model_not_found", f"the agent does not take the model '{self._place.model}': {_words(refusal)}")

    def _ask(
        self, method: str, params: Mapping[str, object], otherwise: Callable[[Refusal], NoReturn] | None = None
    ) -> Mapping[str, Any]:
        try:
            return self._talk.ask(method, params, START_SECONDS)
        except Refusal as refusal:
            if otherwise is None or refusal.code == AUTH_REQUIRED:
                _complain(refusal)
            otherwise(refusal)

    def _end(self, ended: Mapping[str, Any]) -> None:
        _tell_usage(ended)
        if self._permission.is_deferred:
            raise self._permission.deferred()
        if self._talk.is_cancelled:
            raise Interrupted
        reason = str(ended.get("stopReason"))
        if reason != "end_turn":
            word, detail = _STOPS.get(reason, ("agent_error", f"the agent stopped: {reason}"))
            raise failed(word, detail)
        tell("end", reason="done")


def _lost(refusal: Refusal) -> NoReturn:
    raise failed("agent_error", f"the session cannot be loaded: {_words(refusal)}", session_lost=True)


def _complain(refusal: Refusal) -> NoReturn:
    if refusal.code == AUTH_REQUIRED:
        raise failed("authentication", f"{_words(refusal)}: log in by starting the agent once by hand")
    if refusal.code in _STATUSES:
        raise refused(refusal.code, _words(refusal))
    raise failed("agent_error", _words(refusal))


def _words(refusal: Refusal) -> str:
    """Its message; where that says nothing, what stands beside it."""
    data = refusal.data
    more = data.get("details") or data.get("message") if isinstance(data, dict) else data
    return f"{refusal.message}: {more}" if isinstance(more, str) and more else refusal.message


def _model_option(opened: Mapping[str, Any]) -> str:
    options = opened.get("configOptions")
    for one in options if isinstance(options, list) else []:
        if isinstance(one, dict) and "model" in (one.get("category"), one.get("id")):
            return str(one.get("id"))
    return ""


def _tell_usage(ended: Mapping[str, Any]) -> None:
    """Agents tell it in different places; one that tells nothing is charged nothing."""
    usage = ended.get("usage")
    if isinstance(usage, dict):
        read = _count(usage.get("cachedReadTokens"))
        given = _count(usage.get("inputTokens")) + read + _count(usage.get("cachedWriteTokens"))
        output = _count(usage.get("outputTokens")) + _count(usage.get("thoughtTokens"))
        tell("usage", input=given, output=output, cached=read)
        return
    meta = ended.get("_meta")
    quota = meta.get("quota") if isinstance(meta, dict) else None
    count = quota.get("token_count") if isinstance(quota, dict) else None
    if isinstance(count, dict):
        tell("usage", input=count.get("input_tokens"), output=count.get("output_tokens"), scope="turn")


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
