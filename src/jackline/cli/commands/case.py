"""`jackline case`: the notebook of an investigation. `app.case` does the work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app.case import files, place, writing
from jackline.cli import case_hook
from jackline.cli import case_showing as showing
from jackline.cli.case_parsers import configure
from jackline.clock import wall_ms
from jackline.domain.case import EntryKind
from jackline.errors import UsageError
from jackline.formatting import make_printable

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.case.running import Ended
    from jackline.app.home import Home
    from jackline.cli.output import Output

__all__ = ["configure", "execute"]


def execute(args: Namespace, home: Home, out: Output) -> int:
    return _HANDLERS[args.action](args, home, out)


def _start(args: Namespace, home: Home, out: Output) -> int:
    from jackline.app.case.beginning import Opening, start

    request = _get_text(args, "the request")
    opening = Opening(request, args.intent, args.target, args.non_goal, args.risk, args.verify)
    showing.case(start(home, opening, skip_intake=args.skip_intake), home, out)
    return 0


def _status(args: Namespace, home: Home, out: Output) -> int:
    case = place.chosen(home, args.case)
    files.refresh(home, case.id)  # edited or removed files are written again
    store = home.store()
    found = [one for kind in (EntryKind.HYPOTHESIS, EntryKind.COMMAND) for one in store.entries(case.id, kind)]
    showing.status(case, found, wall_ms(), home, out)
    return 0


def _hypothesis(args: Namespace, home: Home, out: Output) -> int:
    match args.deed:
        case "add":
            text = _get_text(args, "the hypothesis")
            showing.entry(writing.add_hypothesis(home, text, case_id=args.case), home, out)
        case "resolve":
            entry = writing.resolve_hypothesis(home, args.entry, args.status, args.note, case_id=args.case)
            showing.entry(entry, home, out)
        case _:
            case = place.chosen(home, args.case)
            found = home.store().entries(case.id, EntryKind.HYPOTHESIS)
            showing.entries([one for one in found if args.status in {None, one.status}], out)
    return 0


def _evidence(args: Namespace, home: Home, out: Output) -> int:
    text = _get_text(args, "the evidence")
    showing.entry(writing.add_evidence(home, text, args.hypothesis, case_id=args.case), home, out)
    return 0


def _command(args: Namespace, home: Home, out: Output) -> int:
    if args.deed == "add":
        text = _get_text(args, "the command")
        showing.entry(writing.add_command(home, text, args.status, args.note, case_id=args.case), home, out)
        return 0
    return _run(args, home, out)


def _run(args: Namespace, home: Home, out: Output) -> int:
    from jackline.app.case.running import run

    if not args.arguments:
        raise UsageError("no command given: use `jackline case command run -- CMD …`")
    streams = {"stdout": out.out, "stderr": out.errors}

    def hear(source: str, data: bytes) -> None:
        if not out.json:
            streams[source].write_bytes(data)

    entry, ended = run(home, args.arguments, case_id=args.case, hear=hear)
    if out.json:
        showing.entry(entry, home, out)
    else:
        out.note(f"{entry.id} {entry.status}")
    return ended.exit_code


def _learning(args: Namespace, home: Home, out: Output) -> int:
    if args.deed == "review":
        return _review(args, home, out)
    kept = {"repo_action": args.repo_action, "path": args.path, "reason": args.reason, "case_id": args.case}
    if args.deed == "amend":
        entry = writing.amend_learning(home, args.entry, **kept)
    else:
        entry = writing.add_learning(home, args.summary, kind=args.kind, **kept)
    showing.entry(entry, home, out)
    return 0


def _review(args: Namespace, home: Home, out: Output) -> int:
    from jackline.app.case import reviewing

    case = place.chosen(home, args.case)
    learnings = reviewing.learnings_of(home, case)
    lacking = reviewing.unresolved(case, learnings)
    showing.review(learnings, lacking, out)
    return 1 if lacking and args.require_resolved else 0


def _handoff(args: Namespace, home: Home, out: Output) -> int:
    from jackline.app.case.handing_over import handoff
    from jackline.views import case_handoff

    found = handoff(home, case_id=args.case)
    if out.json:
        out.json_line(case_handoff.to_dict(found))
    else:
        out.line(case_handoff.text_of(found).rstrip("\n"))
    return 0


def _close(args: Namespace, home: Home, out: Output) -> int:
    from jackline.app.case.closing import Closeout, close

    if args.force is not None and not args.force.strip():
        raise UsageError('--force needs a reason: --force "why it is closed anyway"')

    def tell(command: str, ended: Ended | None) -> None:
        if ended is None:
            out.note(f"verifying: {make_printable(command)}")
        elif not ended.passed and not out.json:
            out.note(f"exit {ended.exit_code}")
            output = ended.stdout + ended.stderr
            out.errors.write_bytes(output if output.endswith(b"\n") or not output else output + b"\n")

    wanted = Closeout(args.summary, tuple(args.verification), tuple(args.risk), args.force or "")
    case = close(home, wanted, case_id=args.case, tell=tell)
    showing.case(case, home, out, f"{case.id} closed")
    return 0


def _reopen(args: Namespace, home: Home, out: Output) -> int:
    case = writing.reopen(home, args.id)
    showing.case(case, home, out, f"{case.id} open")
    return 0


def _switch(args: Namespace, home: Home, out: Output) -> int:
    case = writing.switch(home, args.id)
    showing.case(case, home, out, f"{case.id} active")
    return 0


def _list(args: Namespace, home: Home, out: Output) -> int:
    from jackline.cli.commands.list import next_page
    from jackline.domain.case import CaseQuery

    after = place.find(home, args.after) if args.after else None
    query = CaseQuery(
        repository=None if args.all_repos else place.here(home).repository,
        status=args.status,
        before=None if after is None else (after.created_at, after.id),
        limit=args.limit,
    )
    found = place.listed(home, query)
    showing.listed(found, wall_ms(), out, paths=args.all_repos)
    if len(found) == args.limit:
        out.note(f"there may be more: {next_page(out, found[-1].id)}")
    elif not found:
        out.note("no cases here")
    return 0


def _files(args: Namespace, home: Home, out: Output) -> int:
    folder = files.rewrite(home, place.chosen(home, args.case).id)
    if out.json:
        out.json_line({"folder": folder})
    else:
        out.line(folder)
    return 0


def _get_text(args: Namespace, what: str) -> str:
    """The text argument; one that begins with a dash comes after `--`."""
    given = [*([] if args.text is None else [args.text]), *args.arguments]
    if len(given) != 1:
        raise UsageError(f"{what} must be one argument: quote it" if given else f"{what} is missing: give it in quotes")
    return str(given[0])


_HANDLERS = {
    "start": _start,
    "status": _status,
    "hypothesis": _hypothesis,
    "evidence": _evidence,
    "command": _command,
    "learning": _learning,
    "handoff": _handoff,
    "close": _close,
    "reopen": _reopen,
    "list": _list,
    "switch": _switch,
    "files": _files,
    "hook": case_hook.execute,
}
