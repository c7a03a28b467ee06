"""The server itself: every failure becomes one line that a model can read, and no traceback leaves the process."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError, UnexpectedResourceError
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, GetPromptResult, InputRequiredResult, TextContent
from pydantic import ValidationError

from jackline.app import diagnostics
from jackline.errors import JacklineError, NotFound
from jackline.mcp import wire
from jackline.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcp.server.lowlevel.helper_types import ReadResourceContents
    from mcp_types import ToolAnnotations
    from pydantic.networks import AnyUrl

    from jackline.mcp.desk import Desk

    Function = TypeVar("Function", bound=Callable[..., Any])

_INSTRUCTIONS = """\
jackline keeps the state of this work outside of your context: it outlives compaction, crashes and your turn.
Open a case (case_start) for an investigation with more than one hypothesis, and write hypotheses, evidence, commands
and learnings down as you go. Queue units of work with work_enqueue. Ask a person with ask_human when only a person can
decide; an answer may take hours, so go on with something else, and look again with ask_human_result."""


class Server(MCPServer[Any]):
    """The SDK's server, with jackline's way to fail."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(
            "jackline",
            title="jackline",
            instructions=_INSTRUCTIONS,
            version=__version__,
            log_level="ERROR",
            subscriptions=False,  # nobody here says when something changes
        )
        self._desk = desk

    async def run_stdio_async(self) -> None:
        """Serve until standard input ends."""
        lines = anyio.wrap_file(wire.standard_input())
        low = self._lowlevel_server
        async with stdio_server(lines) as (read, write):
            await low.run(read, write, low.create_initialization_options())

    def offer(self, kind: ToolAnnotations) -> Callable[[Function], Function]:
        """Register a tool; its docstring is what a model reads, its annotations are the schemas."""

        def register(function: Function) -> Function:
            words = inspect.cleandoc(function.__doc__ or "")
            self.add_tool(function, description=words, annotations=kind, structured_output=True)
            tool = self._tool_manager.get_tool(function.__name__)
            if tool is not None:
                tool.parameters = {**_untitled(tool.parameters), "additionalProperties": False}
            return function

        return register

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """The result as structured content, and the same as compact JSON; a failure as one line."""
        try:
            self._refuse_unknown(name, arguments)
            result = await super().call_tool(name, arguments, context)
        except ToolError as error:
            return _failed(self._words(error))
        if isinstance(result, CallToolResult) and result.structured_content is not None:
            result.content = [TextContent(text=json.dumps(result.structured_content, ensure_ascii=False))]
        return result

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[Any, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """The content; what is not there, or cannot be read, is said in one line."""
        try:
            return await super().read_resource(uri, context)
        except UnexpectedResourceError as error:
            kind = ResourceNotFoundError if isinstance(_cause(error), NotFound) else ResourceError
            raise kind(self._words(error)) from None

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """The prompt; what is wrong with the arguments is said in one line."""
        try:
            return await super().get_prompt(name, arguments, context)
        except ValueError as error:
            raise MCPError(code=INVALID_PARAMS, message=_one_line(_wrong(error) or str(error))) from None

    def _refuse_unknown(self, name: str, arguments: dict[str, Any]) -> None:
        """ToolError for a name that the tool does not take: a mistyped one must not be passed over in silence."""
        tool = self._tool_manager.get_tool(name)
        if tool is None:
            raise ToolError(f"there is no tool '{name}'")
        known = tool.parameters.get("properties", {})
        unknown = [one for one in arguments if one not in known]
        if unknown:
            takes = ", ".join(known) or "nothing"
            raise ToolError(f"{name} takes no '{unknown[0]}': it takes {takes}")

    def _words(self, error: ToolError | ResourceError) -> str:
        cause = _cause(error)
        if isinstance(cause, JacklineError):
            return str(cause)
        if isinstance(cause, ValidationError):
            return _wrong(cause)
        if isinstance(cause, Exception):
            return f"unexpected {type(cause).__name__}: {cause}; {self._note(cause)}"
        return str(error)

    def _note(self, error: Exception) -> str:
        """Where the traceback is."""
        try:
            with self._desk.open() as home:
                home.make()
            return f"see {diagnostics.note_unexpected(self._desk.path, error)}"
        except (OSError, JacklineError) as second:
            return f"and the log cannot be written: {second}"


def _cause(error: BaseException) -> BaseException | None:
    """What was raised first: the SDK wraps it once or twice."""
    cause = error.__cause__
    while isinstance(cause, ToolError | ResourceError) and cause.__cause__ is not None:
        cause = cause.__cause__
    return None if isinstance(cause, ToolError | ResourceError) else cause


def _wrong(error: BaseException | None) -> str:
    """What does not fit the schema, behind whatever the SDK wrapped it in; empty if it is something else."""
    while error is not None and not isinstance(error, ValidationError):
        error = error.__cause__
    return "; ".join(f"{_place(one['loc'])}: {one['msg']}" for one in error.errors()) if error else ""


def _place(steps: tuple[int | str, ...]) -> str:
    return ".".join(map(str, steps)) or "the arguments"


def _untitled(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without the titles that only repeat its names: a model reads every word of it, in every turn."""
    kept = {name: value for name, value in schema.items() if name != "title"}
    properties = kept.get("properties", {})
    bare = {name: {key: value for key, value in one.items() if key != "title"} for name, one in properties.items()}
    return {**kept, "properties": bare}


def _failed(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=_one_line(text))], is_error=True)


def _one_line(text: str) -> str:
    return " ".join(text.split())
