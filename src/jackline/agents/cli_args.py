"""Parts of command lines and environments that several adapters share. Pure: starts nothing and reads no file."""

from __future__ import annotations

import json
import os.path
import re
import sys
from typing import TYPE_CHECKING, Any

from jackline.agents.json_fields import strip_colours
from jackline.agents.outcomes import last_line
from jackline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from jackline.domain.adapter import Declaration, McpServer, TurnRequest

OWN_SESSION = "name the session with jackline's own --session"
HELPER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "helpers", "start.py")

_LOOSENING = frozenset({"--approval-mode", "--yolo", "-y", "--allowed-tools", "--policy", "--admin-policy"})
_SCRIPTS = (".js", ".mjs", ".cjs")
_ERROR_LINE = re.compile(r"^(?:Error|Unknown argument|Invalid ).*", re.MULTILINE)
_LONGEST_LINE = 500
_ASCII = 128
_NODE_STDIN_BYTES = 8 * 1024 * 1024  # gemini and qwen cut off the rest, one of them silently

# Node queues what a pipe does not accept at once, and `process.exit` discards the queue: the end of a long answer,
# and with it the terminal event, would be lost. The option is removed before anything else starts, so that no other
# program of the agent sees it. It is an environment variable because the binary may be a wrapper instead of node.
_BLOCKING_OUTPUT = (
    "delete process.env.NODE_OPTIONS;"
    "for(const stream of[process.stdout,process.stderr])stream._handle?.setBlocking?.(true);"
)
# Neither gemini nor qwen has a switch that leaves out a project's settings and still runs tools. So the files are not
# there for the CLI: every way to find or read them reports ENOENT. Other programs, such as its shell, see them.
_HIDING = """
import fs from "node:fs";import path from "node:path";import {syncBuiltinESMExports as sync} from "node:module";
import {fileURLToPath} from "node:url";
const [hidden,shown,unsafe]=LISTS,below=(one,top)=>one===top||one.startsWith(top+"/");
const isHidden=file=>{
if(file instanceof URL)file=fileURLToPath(file);else if(Buffer.isBuffer(file))file=file.toString();
if(typeof file!=="string")return false;
const whole=path.resolve(file);
return unsafe.includes(whole)||hidden.some(top=>below(whole,top))&&!shown.some(top=>below(whole,top))};
const missing=file=>Object.assign(new Error("ENOENT: no such file or directory, open '"+file+"'"),
{code:"ENOENT",errno:-2,syscall:"open",path:String(file)});
const names=["readFile","open","stat","lstat","access","readdir","opendir","realpath"];
for(const name of names){
const late=fs[name],now=fs[name+"Sync"],promised=fs.promises[name];
fs[name]=Object.assign(function(file,...more){
if(!isHidden(file))return late.call(this,file,...more);
process.nextTick(more.findLast(one=>typeof one==="function"),missing(file))},late);
fs[name+"Sync"]=Object.assign(function(file,...more){
if(!isHidden(file))return now.call(this,file,...more);
if(more[0]?.throwIfNoEntry===false)return undefined;
throw missing(file)},now);
fs.promises[name]=async function(file,...more){
if(isHidden(file))throw missing(file);
return promised.call(this,file,...more)}}
const exists=fs.existsSync;fs.existsSync=file=>!isHidden(file)&&exists(file);sync();
"""


def drop_options(arguments: tuple[str, ...], names: Collection[str]) -> tuple[str, ...]:
    """The arguments without these options and their values, which would end a read-only mode."""
    kept: list[str] = []
    is_dropping = False
    for argument in arguments:
        if argument.startswith("-") and argument != "-":
            name = argument.partition("=")[0]
            is_dropping = name in names or (not name.startswith("--") and name[:2] in names)
        if not is_dropping:
            kept.append(argument)
    return tuple(kept)


def list_node_arguments(request: TurnRequest) -> tuple[str, ...]:
    """The user's arguments for gemini or qwen, without those that would let a turn that only reads do more."""
    return drop_options(request.arguments, _LOOSENING) if request.only_reads else request.arguments


def node_env(request: TurnRequest, declaration: Declaration) -> dict[str, str]:
    """The variables of a JavaScript CLI: its output blocks, and it finds no settings of an untrusted project."""
    program = _BLOCKING_OUTPUT
    if request.untrusted is not None:
        files = declaration.project_files
        lists = [
            [os.path.join(folder, name) for folder in request.untrusted.folders for name in names]
            for names in (files.settings, files.texts)
        ]
        program = _HIDING.replace("LISTS", json.dumps([*lists, list(request.untrusted.left_out)])) + program
    # Escaped by hand: every agent loads this module, and urllib.parse would take half a megabyte.
    escaped = "".join(chr(one) if chr(one).isalnum() and one < _ASCII else f"%{one:02X}" for one in program.encode())
    return {"NODE_OPTIONS": f"--import=data:text/javascript,{escaped}"}


def model_flag(request: TurnRequest) -> str:
    """The model as one argument: as a separate one, a name that starts with "-" would be read as a flag."""
    return f"--model={request.model}"


def encode_prompt(request: TurnRequest) -> bytes:
    """The prompt for standard input, of any length: an argument is limited to 128 KB."""
    return request.prompt.encode("utf-8", "replace")


def reject_arguments(agent: str, arguments: tuple[str, ...], rejected: Mapping[str, str]) -> None:
    """Raise UsageError for an extra argument that jackline has to choose itself; `rejected` gives the reasons."""
    for argument in arguments:
        flag = argument.partition("=")[0]
        if flag in rejected:
            raise UsageError(f"{agent} does not accept {flag} here: {rejected[flag]}; remove it")


def mcp_servers(server: McpServer | None) -> dict[str, Any]:
    """A server by its name, in the JSON that most CLIs use; empty if there is none."""
    if server is None:
        return {}
    program, *arguments = server.argv
    return {server.name: {"command": program, "args": arguments, "env": dict(server.env)}}


def node_argv(binary: str, launchers: Mapping[str, str], *options: str) -> tuple[str, ...]:
    """The start of the command line of a JavaScript CLI: node, then the program.

    `launchers` maps the file name of a package's launcher to that of the program beside it: a launcher would stay in
    between, and killing it would leave the agent running. A binary that is not a script is a wrapper, and stays.
    """
    if not binary.endswith(_SCRIPTS):
        return (binary,)
    folder, name = os.path.split(binary)
    return ("node", *options, os.path.join(folder, launchers.get(name, name)))


def encode_node_prompt(agent: str, request: TurnRequest) -> bytes:
    """The prompt for standard input; UsageError if the CLI would read only its beginning."""
    data = encode_prompt(request)
    if len(data) > _NODE_STDIN_BYTES:
        raise UsageError(f"{agent} reads at most 8 MiB of prompt, not {len(data)} bytes; put the rest into a file")
    return data


def find_error_line(tail: str) -> str:
    """The line of a JavaScript CLI's stderr with the error: a stack trace or a help page may follow it."""
    plain = strip_colours(tail)
    found = _ERROR_LINE.search(plain)
    return found[0].strip()[:_LONGEST_LINE] if found else last_line(plain)


def helper_argv(request: TurnRequest, program: str, *words: str) -> tuple[str, ...]:
    """The command line of one of jackline's helper programs, without site packages, which could interfere."""
    return (request.binary or sys.executable, "-IS", HELPER, program, *words)


def helper_env(request: TurnRequest) -> dict[str, str]:
    """What a program that prints event lines needs to reach the gate, keep a session and identify its turn."""
    return {
        "JACKLINE_GATE": request.gate,
        "JACKLINE_GATE_TOKEN": request.token,
        "JACKLINE_RUN_ID": request.run_id,
        "JACKLINE_ATTEMPT": str(request.attempt),
        "JACKLINE_TURN": str(request.turn),
        "JACKLINE_SESSION": request.session or "",
        "JACKLINE_RESUME": "1" if request.resume else "0",
        "JACKLINE_AGENT_FOLDER": request.folder,
        "JACKLINE_WORKSPACE": request.workspace,
        "JACKLINE_MODEL": request.model,
        "JACKLINE_EFFORT": request.effort,
    }
