"""The title and the description of a pull request, and the feedback on it for a prompt. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jackline.domain.pull_request import CHECK
from jackline.domain.quoted_text import quote_text, remove_quotations
from jackline.domain.states import Proof
from jackline.formatting import format_line, make_printable, make_readable, shorten_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.domain.pull_request import Feedback
    from jackline.domain.records import Run, Turn
    from jackline.domain.review_records import Verdict

_TITLE = 72
_MOST_BODY = 8_000
_MOST_SUMMARY = 200
_MENTION = re.compile(r"(?<![\w`/])@(?=\w)")
_HEADING = re.compile(r"^[#>*\s-]+")
_SHORT = 12
_MOST_DETAIL = 1_000
_MOST_FEEDBACK = 12_000  # characters of one text


def build_title(prompt: str, branch: str) -> str:
    """The first line of the task; the branch if it has none."""
    lines = (_HEADING.sub("", make_printable(line)).strip() for line in remove_quotations(prompt).splitlines())
    return shorten_text(_remove_mentions(next(filter(None, lines), branch)), _TITLE)


def build_body(run: Run, turns: Sequence[Turn], verdicts: Sequence[Verdict]) -> str:
    """The agent's last message, which proof passed on which content, and what the reviewers said about it."""
    worked = [turn.last_message for turn in turns if turn.role == "work" and turn.last_message.strip()]
    message = _remove_mentions(make_readable(worked[-1] if worked else run.spec.prompt).strip())
    cut = message if len(message) <= _MOST_BODY else f"{message[:_MOST_BODY].rstrip()} …"
    return "\n".join([cut, "", "---", *_describe_proof(run), *map(_describe_verdict, verdicts), ""])


def _describe_proof(run: Run) -> list[str]:
    tree = f" on tree `{run.status.tree[:_SHORT]}`" if run.status.tree else ""
    made = f"jackline run `{run.id}`"
    if run.status.proof is not Proof.PROVED:
        return [f"- No proof command was configured ({made})."]
    command = make_printable(run.spec.proof).replace("`", "'")
    return [f"- Proof `{shorten_text(command, _MOST_SUMMARY)}` passed{tree} ({made})."]


def _describe_verdict(verdict: Verdict) -> str:
    summary = _remove_mentions(shorten_text(make_printable(verdict.summary), _MOST_SUMMARY))
    said = f": {summary}" if summary else ""
    return f"- Review by {verdict.agent}, round {verdict.review_round}: {verdict.outcome}{said}"


def _remove_mentions(text: str) -> str:
    """Take the `@` before a name: an agent's text must not notify people."""
    return _MENTION.sub("", text)


def build_feedback_section(url: str, items: Sequence[Feedback], detail: str) -> str:
    """What the checks and the people at a pull request say, for the prompt of the agent that works on it.

    Names of checks are quoted, too: they are chosen by anyone who can add a check. `detail` is what the host saw.
    """
    parts = [f"The pull request {url} has not been accepted yet. Make the necessary changes; jackline pushes them."]
    parts += [f"Summary:\n{quote_text(format_line(detail, _MOST_DETAIL))}"] if detail else []
    for one in items:
        if one.source == CHECK:
            text = f"Name of the check: {format_line(one.author)}\n\n{make_readable(one.text[-_MOST_FEEDBACK:])}"
            parts.append(f"A check failed:\n{quote_text(text, 'a check')}")
        else:
            parts.append(f"A comment:\n{quote_text(make_readable(one.text[:_MOST_FEEDBACK]), one.author)}")
    return "\n\n".join(parts)
