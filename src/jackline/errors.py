"""All errors of jackline: each has an exit code, says what to do next, and knows whether a retry can help.

The docstring of a class is the pattern of its message. This module imports nothing of jackline.
"""

from __future__ import annotations

import errno
from typing import ClassVar


class JacklineError(Exception):
    """{detail}"""

    exit_code: ClassVar[int] = 1
    permanent: ClassVar[bool] = True

    def __init__(self, detail: object = "", **facts: object) -> None:
        """Fill the docstring's pattern with `detail` and the named facts."""
        self.detail = str(detail)
        self.facts = facts
        pattern = (type(self).__doc__ or "{detail}").strip()
        super().__init__(pattern.format(detail=self.detail, **facts))


class UsageError(JacklineError):
    """{detail}"""

    exit_code = 2


class NotFound(UsageError):
    """no {what} matches '{detail}'; see `{hint}`"""


class NoHome(UsageError):
    """there is no home at {detail} yet; `jackline run` creates it, --home or JACKLINE_HOME selects another"""


class Ambiguous(UsageError):
    """'{detail}' matches {count} {what}s or more ({some}, …); type more of its beginning or end"""


class Conflict(UsageError):
    """run {detail} already exists with another request; choose another --run-id, or resume it"""


class Refused(UsageError):
    """{detail}"""


class Overtaken(Refused):
    """run {detail} was ended by another process in the meantime: it is {state}"""


class NoItem(NotFound):
    """no work item has the id '{detail}'; see `jackline work list`"""

    exit_code = 1


class ItemConflict(Conflict):
    """work item {detail} already exists with another kind or payload; choose another --id"""

    exit_code = 1


class ItemRefused(Refused):
    """{detail}"""

    exit_code = 1


class NoEvent(NotFound):
    """no event has the id '{detail}'; see `jackline events tail`"""

    exit_code = 1


class NoCase(NotFound):
    """no {what} matches '{detail}'; see `{hint}`"""

    exit_code = 1


class CaseRefused(Refused):
    """{detail}"""

    exit_code = 1


class NotVerified(CaseRefused):
    """{detail}"""

    exit_code = 16


class WorktreeRefused(Refused):
    """{detail}"""

    exit_code = 1


class SessionTaken(Refused):
    """session {detail} belongs to run {owner}, which has not ended; resume that run, or cancel it first"""


class DayBudgetSpent(Refused):
    """{detail}"""

    def __init__(self, detail: str, wake_at: int | None = None) -> None:
        """`wake_at` is when the next day starts, or a moment later if the budget is only reserved."""
        super().__init__(detail)
        self.wake_at = wake_at


class ConfigError(UsageError):
    """{detail}"""


class PolicyError(UsageError):
    """{detail}"""


class ScriptError(UsageError):
    """{detail}"""


class PackageBroken(JacklineError):
    """this installation of jackline is incomplete: {detail} {why}; install it again"""

    exit_code = 3


class AgentUnavailable(JacklineError):
    """agent '{detail}' cannot be used: {why}"""

    exit_code = 13


class NotLoggedIn(AgentUnavailable):
    """agent '{detail}' cannot be used: {why}"""


class Ungated(AgentUnavailable):
    """the gate cannot hold agent '{detail}': {why}; install another version of it, or choose another agent"""

    exit_code = 18


class Busy(JacklineError):
    """run {detail} is being worked on by {owner}; wait for it, follow it with `jackline logs -f {detail}`, or cancel it"""

    permanent = False


class WorkspaceBusy(JacklineError):
    """run {detail} (#{number}) works in {folder}; wait for it with `jackline logs -f {detail}`, or share the folder with --share-workspace"""

    permanent = False


class NotStartable(JacklineError):
    """run {detail} does not start now: {why}"""

    permanent = False


class Fenced(JacklineError):
    """run {detail} now belongs to another attempt; this one writes nothing more"""

    permanent = True


class CancelWanted(JacklineError):
    """run {detail} is being cancelled, so it cannot wait"""

    permanent = False


class QuestionsAnswered(JacklineError):
    """run {detail} has no open question, so it does not wait for an answer"""

    permanent = False


class ReportNotWritten(JacklineError):
    """{detail} cannot be written ({why}); fix that, then run `jackline {command}`"""


class ChannelDown(JacklineError):
    """{detail}"""

    permanent = False


class MessageRefused(JacklineError):
    """{detail}"""


class MessageNotNeeded(JacklineError):
    """{detail}"""


class StoreError(JacklineError):
    """{detail}"""


class StoreUnavailable(StoreError):
    """the database cannot be reached: {detail}; nothing was lost, try again when it is available"""

    permanent = False


class StoreFull(StoreError):
    """the disk is full ({detail}); free some space, then resume; nothing was lost"""

    permanent = False


class StoreReadOnly(StoreError):
    """the database cannot be written ({detail}); check the permissions of the home folder, or of the user of the server"""


class StoreCorrupt(StoreError):
    """{detail} is damaged or not a jackline database; it was left untouched; restore a backup, or use another home"""


class SchemaTooNew(StoreError):
    """the database has schema {detail}, but this jackline supports only {known}; upgrade jackline"""


class SchemaTooOld(StoreError):
    """the database has schema {detail}, but this jackline needs {known}; run `jackline db migrate`"""


class SchemaMissing(SchemaTooOld):
    """the database has no schema yet, but this jackline needs {known}; run `jackline db migrate`"""


class MigrationChanged(StoreError):
    """migration {detail} was changed after it was applied; reinstall the jackline version that created this database"""


def disk_error(error: OSError, place: str) -> StoreError:
    """Convert an error of the file system into one that says what to do."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return StoreFull(place)
    return StoreError(f"{place} cannot be written ({error.strerror}); check the disk and the permissions of the home")
