"""`jackline show`: shows a run in detail. It must not import the engine or the exports: it has to start fast."""

from __future__ import annotations

import os
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from jackline.cli import call_view, review_text, status_text
from jackline.cli.event_text import describe_left_files, load_event_data
from jackline.cli.output import Column, parse_columns
from jackline.cli.parser import NEWEST_HELP
from jackline.cli.run_choice import find_call, find_run
from jackline.cli.run_json import run_to_json, to_json_values
from jackline.clock import wall_ms
from jackline.domain.call_text import find_kept_refs, format_target
from jackline.domain.run_totals import completion, compute_run_cost, compute_turn_cost, describe_lost_sessions
from jackline.domain.states import Proof, RunState
from jackline.extensions import call_hook
from jackline.formatting import (
    format_age,
    format_count,
    format_elapsed,
    format_local,
    format_usd,
    make_printable,
    pluralize,
    shorten_path,
    shorten_text,
    wrap_text,
)
from jackline.named import stored_dict

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.domain.records import Run, Turn

_MAX_CALLS = 50
_LABEL = 11  # columns of a fact's name
_MAX_MESSAGE_CHARS = 2_000
_TREE_CHARS = 12
_TURN_COLUMNS = parse_columns("#> ROLE AGENT STARTED TOOK> EXIT> TOKENS> COST> OUTCOME~")
_LIMITS = (
    ("time", "wall_ms", format_elapsed),
    ("iterations", "iterations", str),
    ("steps", "steps", str),
    ("calls", "calls", str),
    ("tokens", "tokens", format_count),
    ("cost", "usd_micros", format_usd),
)
INSIDE_RUN = ("*",)


def configure(parser: CommandParser) -> None:
    parser.add_argument("run", metavar="RUN", nargs="?", help=NEWEST_HELP)
    parser.add_argument(
        "--call", metavar="CALL", help="show all of one call: its id, or the beginning or end of its id"
    )


def execute(args: Namespace, home: Home, out: Output) -> int:
    if args.call is not None:
        run, call = find_call(home, args.run, args.call)
        call_view.print_call(home, run, call, out)
        return 0
    run = find_run(home, args.run)
    if run.status.wake_at:
        run = home.store().wakeups.adjust_wake_time(run)
    if out.json:
        out.print_json(_to_json(home, run))
        return 0
    _print_header(home, run, out)
    for title, titles, rows in _build_tables(home, run, out):
        if rows:
            out.print_line(f"\n{out.colorize(title, 'bold')}")
            out.print_table(*(_drop_empty_columns(titles, rows) if out.stdout.is_terminal else (titles, rows)))
    _print_last_message(home, run, out)
    out.print_line()
    for line in status_text.list_next_steps(home, run, out):
        out.print_line(line)
    return 0


def _drop_empty_columns(
    columns: Sequence[Column], rows: Sequence[Sequence[str]]
) -> tuple[list[Column], list[list[str]]]:
    """Leave out the columns without a value: a narrow terminal has room for the others."""
    kept = [index for index in range(len(columns)) if any(row[index] not in {"", "-"} for row in rows)]
    return [columns[index] for index in kept], [[row[index] for index in kept] for row in rows]


def _to_json(home: Home, run: Run) -> dict[str, Any]:
    store = home.store()
    turns = store.records.list_turns(run.id)
    lists = {
        "attempts": store.records.list_attempts(run.id),
        "turns": turns,
        "calls": store.calls.list_all(run.id),
        "receipts": store.calls.list_receipts(run.id),
        "checks": store.records.list_checks(run.id),
        "notices": store.records.list_notices(run.id),
        "checkpoints": store.records.list_checkpoints(run.id),
        "iterations": store.reviews.list_iterations(run.id),
        "verdicts": store.reviews.list_verdicts(run.id),
        "findings": store.reviews.list_findings(run.id),
    }
    # Only a script has options. It is stored as it is played; the redactor is loaded for nothing else here.
    options = {name: store.redactor.redact(text) for name, text in run.spec.options.items()}
    return {
        **run_to_json(home, run),
        "chain_head": run.chain_head,
        "event_seq": run.event_seq,
        "owner": run.owner,
        "parent": run.parent,
        "forked_at": run.forked_at,
        "completion": stored_dict(store.calls.tally(run.id)),
        "spec": {**to_json_values(run.spec), "options": options},
        "life": to_json_values(run.status),
        "sessions": store.records.get_sessions(run.id),
        "lost_sessions": describe_lost_sessions(turns),
        "changes": to_json_values(store.records.get_changes(run.id)),
        "accepted": review_text.acceptance_to_json(store.reviews.find_acceptance(run.id)),
        **{name: to_json_values(records) for name, records in lists.items()},
    }


def _print_header(home: Home, run: Run, out: Output) -> None:
    status, spec, now = run.status, run.spec, wall_ms()
    turns = home.store().records.list_turns(run.id)
    state = status_text.format_state(run, out, home.explain_loss(run))
    times = (("created", run.created_at), ("started", run.started_at), ("ended", run.finished_at))
    facts = [
        ("state", state + (", cancel requested" if status.cancel_requested else "")),
        ("queue", _format_queue(home, run)),
        ("detail", make_printable(status.detail)),
        ("blocked", make_printable("; ".join(one.get(run.id, "") for one in call_hook("start_failures", home)))),
        ("wakes", format_local(status.wake_at, now) if status.wake_at else ""),
        ("agent", f"{run.agent}, task {spec.task}"),
        ("fallback", ", ".join(spec.fallback)),
        ("prompt", shorten_text(make_printable(spec.prompt), out.terminal_width() - 12)),
        ("proof", _describe_proof(run)),
        ("left out", _format_left_files(home, run)),
        ("review", review_text.format_reviews(home, run)),
        ("workspace", _shorten_path(spec.workspace, out)),
        ("worktree", f"branch {spec.worktree.branch}, from {spec.worktree.base[:12]}" if spec.worktree.name else ""),
        ("times", ", ".join(f"{name} {_format_time(at, now, out)}" for name, at in times if at is not None)),
        ("place", _format_place(run)),
        ("spent", _format_spending(run, turns)),
        ("calls", completion(home.store().calls.tally(run.id))),
        ("changes", _format_changes(home, run)),
        ("pull", status_text.find_pull_request_url(home, run)),
        ("kept", _format_kept_work(home, run)),
        (
            "sessions",
            ", ".join(f"{agent} {session}" for agent, session in home.store().records.get_sessions(run.id).items()),
        ),
        *(("lost", make_printable(line)) for line in describe_lost_sessions(turns)),
        *(fact for facts in call_hook("run_facts", home.store(), run) for fact in facts),
        ("folder", _shorten_path(home.folder(run.id), out)),
    ]
    out.print_line(out.colorize(f"run {run.id} (#{run.number})", "bold"))
    for name, text in facts:
        if text:
            is_plain = out.stdout.is_terminal and "\x1b" not in text  # a colored state is short
            lines = wrap_text(text, out.terminal_width() - _LABEL) if is_plain else [text]
            out.print_line("\n".join(f"{label:<10} {line}" for label, line in zip_longest([name], lines, fillvalue="")))


def _format_queue(home: Home, run: Run) -> str:
    """Return why a queued run has not started; empty if it is not in the queue."""
    if run.status.state is not RunState.QUEUED or run.status.attempt:
        return ""
    from jackline.cli.queue_text import READY, describe_waits

    found = describe_waits(home, home.store().queue.list_waits([run.id]))
    if not found:
        return ""
    ((wait, why),) = found
    parts = (why or READY, f"priority {wait.entry.priority}", f"batch {wait.entry.batch}" if wait.entry.batch else "")
    return make_printable(", ".join(part for part in parts if part))


def _format_kept_work(home: Home, run: Run) -> str:
    """The refs that hold the work which git commands discarded."""
    refs = [ref for call in home.store().calls.list_all(run.id) for ref in find_kept_refs(call)]
    return f"{', '.join(dict.fromkeys(refs))} (git restore --source=REF -- PATH)" if refs else ""


def _format_spending(run: Run, turns: Sequence[Turn]) -> str:
    """Return the spending, with the limit of each kind."""
    limits, spent, cost = run.spec.limits, run.status.spent, compute_run_cost(run, turns)
    parts = []
    for title, name, format_amount in _LIMITS:
        limit, value = getattr(limits, name), cost if name == "usd_micros" else getattr(spent, name)
        if value or limit is not None:
            amount = (
                format_usd(cost, spent.usd_estimated) if name == "usd_micros" else format_amount(getattr(spent, name))
            )
            parts.append(f"{title} {amount}" + ("" if limit is None else f" of {format_amount(limit)}"))
    return ", ".join(parts)


def _format_place(run: Run) -> str:
    names = ("attempt", "turn", "step", "iteration")
    return ", ".join(f"{name} {value}" for name in names if (value := getattr(run.status, name)))


def _describe_proof(run: Run) -> str:
    command = f": {make_printable(run.spec.proof)}" if run.spec.proof else ""
    tree = f"tree {run.status.tree[:12]}" if run.status.tree else "not bound to a tree"
    return f"{run.status.proof}{f', {tree}' if run.status.proof is Proof.PROVED else ''}{command}"


def _format_left_files(home: Home, run: Run) -> str:
    """The files that the tree of the last proof does not hold."""
    event = home.store().records.find_last_event(run.id, "check.tree") if run.spec.proof else None
    return make_printable(describe_left_files(load_event_data(event))) if event else ""


def _shorten_path(path: str, out: Output) -> str:
    if out.stdout.is_terminal:
        path = shorten_path(path, os.environ.get("HOME", ""), out.terminal_width() - _LABEL)
    return make_printable(path)


def _format_changes(home: Home, run: Run) -> str:
    changes = home.store().records.get_changes(run.id)
    if not changes.commits:
        return "no commit, which is required" if run.spec.requires_commit else ""
    files = pluralize(changes.files_changed, "file")
    return f"{pluralize(len(changes.commits), 'commit')}, {files}, +{changes.insertions} -{changes.deletions}"


def _build_tables(home: Home, run: Run, out: Output) -> Iterator[tuple[str, Sequence[Column], list[list[str]]]]:
    store, now = home.store(), wall_ms()
    attempts = [
        [
            str(one.token),
            *_format_span(one.started_at, one.ended_at, now),
            one.outcome or "-",
            one.host,
            str(one.pid),
        ]
        for one in store.records.list_attempts(run.id)
    ]
    yield "attempts", parse_columns("#> STARTED ENDED OUTCOME HOST PID"), attempts
    turns = store.records.list_turns(run.id)
    if out.stdout.is_terminal:
        yield "turns", _TURN_COLUMNS, [_format_turn(run, one, now) for one in turns]
    else:
        yield "turns", (), [_format_whole_turn(run, one, now) for one in turns]
    yield from _build_ledger_tables(home, run, out, now)
    checks = [
        [str(one.step), *_format_span(one.started_at, one.ended_at, now), _format_exit_code(one.exit_code), one.command]
        for one in store.records.list_checks(run.id)
    ]
    yield "checks", parse_columns("STEP> STARTED ENDED EXIT COMMAND~"), checks
    yield from _build_review_tables(home, run)
    commits = [list(one.partition(" ")[::2]) for one in store.records.get_changes(run.id).commits]
    yield "commits", parse_columns("COMMIT SUBJECT~"), commits
    notices = [
        [format_local(one.created_at, now), one.kind, format_local(one.delivered_at, now), one.title]
        for one in store.records.list_notices(run.id)
    ]
    yield "notices", parse_columns("AT KIND DELIVERED TITLE~"), notices


def _build_review_tables(home: Home, run: Run) -> Iterator[tuple[str, Sequence[Column], list[list[str]]]]:
    from jackline.domain.review import locate_finding

    reviews = home.store().reviews
    verdicts = [
        [str(one.review_round), one.agent, one.outcome, str(one.resolved or ""), one.tree[:_TREE_CHARS], one.summary]
        for one in reviews.list_verdicts(run.id)
    ]
    yield "verdicts", parse_columns("ROUND> BY VERDICT RESOLVED> TREE SUMMARY~"), verdicts
    findings = [
        [one.id, one.state, one.severity, str(one.review_round), one.agent, locate_finding(one), one.text]
        for one in reviews.list_findings(run.id)
    ]
    yield "findings", parse_columns("ID STATE SEVERITY ROUND> BY WHERE TEXT~"), findings


def _format_turn(run: Run, turn: Turn, now: int) -> list[str]:
    """Return the row of a turn that fits 60 columns; almost every turn is work, so only another role is named."""
    took = "" if turn.ended_at is None else format_elapsed(turn.ended_at - turn.started_at)
    return [
        str(turn.number),
        "" if turn.role == "work" else turn.role,
        turn.agent,
        format_local(turn.started_at, now),
        took,
        _format_exit_code(turn.exit_code),
        format_count(turn.spent.tokens),
        format_usd(compute_turn_cost(run.spec, turn), turn.spent.usd_estimated),
        ": ".join(part for part in (turn.failure, turn.detail) if part),
    ]


def _format_whole_turn(run: Run, turn: Turn, now: int) -> list[str]:
    return [
        str(turn.number),
        turn.role,
        turn.agent,
        *_format_span(turn.started_at, turn.ended_at, now),
        _format_exit_code(turn.exit_code),
        turn.failure or "-",
        format_count(turn.spent.tokens),
        format_usd(compute_turn_cost(run.spec, turn), turn.spent.usd_estimated),
        turn.detail,
    ]


def _build_ledger_tables(
    home: Home, run: Run, out: Output, now: int
) -> Iterator[tuple[str, Sequence[Column], list[list[str]]]]:
    calls = home.store().calls.list_all(run.id)
    more = f" (the last {_MAX_CALLS} of {len(calls)}; all with --json)" if len(calls) > _MAX_CALLS else ""
    yield f"calls{more}", *call_view.build_call_table(calls, _MAX_CALLS, run.spec.workspace, out)
    receipts = [
        [
            one.call_id,
            one.rule,
            one.origin,
            format_local(one.at, now),
            one.external_id or "-",
            format_target(one.target) or "-",
        ]
        for one in home.store().calls.list_receipts(run.id)
    ]
    yield "receipts", parse_columns("CALL RULE FROM AT EXTERNAL TARGET~"), receipts


def _print_last_message(home: Home, run: Run, out: Output) -> None:
    from jackline.domain.run_totals import find_last_message

    message = find_last_message(home.store().records.list_turns(run.id))
    if message:
        out.print_line(f"\n{out.colorize('last message', 'bold')}")
        status_text.print_message(message[:_MAX_MESSAGE_CHARS], out)


def _format_span(started: int, ended: int | None, now: int) -> tuple[str, str]:
    return format_local(started, now), format_local(ended, now)


def _format_time(at: int, now: int, out: Output) -> str:
    """Return a time, for a person with its age."""
    return f"{format_local(at, now)} ({format_age(at, now)})" if out.stdout.is_terminal else format_local(at, now)


def _format_exit_code(code: int | None) -> str:
    return "-" if code is None else str(code)
