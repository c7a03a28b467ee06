"""Where features extend the core: each hook names functions as "module:function", imported when the hook is called.

The core calls hooks and imports no feature. A new feature adds its function to a hook here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

HOOKS: dict[str, tuple[str, ...]] = {
    # (home): something that a report shows has changed
    "home_changed": ("jackline.features.reports.dashboard:update",),
    # (home, *, seldom): a context manager; while it is open, a thread makes the updates
    "background_updates": ("jackline.features.reports.dashboard:update_in_background",),
    # (home): the places of a feature in it, each with a description and the files that jackline wrote
    "home_leftovers": (
        "jackline.features.reports.dashboard:list_leftovers",
        "jackline.features.reports.retro:list_leftovers",
        "jackline.features.importers.importer:list_leftovers",
        "jackline.features.service.presence:list_leftovers",
    ),
    # (home): what needs a person, as entries of `app.inbox`
    "inbox_entries": (
        "jackline.features.work.inbox_questions:list_inbox_entries",
        "jackline.features.service.service_store:list_inbox_entries",
    ),
    # (config, environment, agent, session): the folders in which sessions with this id were started, as far as known
    "session_folders": ("jackline.features.sessions.session_search:list_session_folders",),
    # (home): the runs that a service could not start, each with the reason
    "start_failures": ("jackline.features.service.service_store:explain_start_failures",),
    # (home, entry of the inbox, text): store a person's answer to a question; the run that it lets continue, or None
    "answer_question": ("jackline.features.work.inbox_questions:answer_question",),
    # (store, run id): the ids of the open cases of a run
    "open_cases": ("jackline.features.cases.location:list_open_ids",),
    # (statements of a transaction, run id): the open questions of a run's agent to a person
    "open_questions": ("jackline.features.work.run_questions:list_open_texts",),
    # (store, run id): the answers to such questions that the agent has not got
    "unread_answers": ("jackline.features.work.run_questions:list_unread_answers",),
    # (store, run id): a section of the resume prompt with the answers to the questions of a run's agent
    "question_answers": ("jackline.features.work.run_questions:build_answers_section",),
    # (store, run id, number of a turn, its role, its seat): a section to add to the prompt of that turn; may be empty
    "turn_messages": ("jackline.features.bridge.bridge_access:add_messages",),
    # (store, run): more files for the run's folder, each a name and its lines as JSON objects
    "run_files": ("jackline.features.bridge.bridge_access:list_run_files",),
    # (store, run): what `jackline show` adds to its facts, as titles and texts
    "run_facts": ("jackline.features.bridge.bridge_access:list_run_facts",),
    # (home): what a feature checks of the installation, as findings of `app.doctor`
    "doctor_findings": (
        "jackline.features.notify.channel_settings:check_channels",
        "jackline.features.service.presence:check_service",
    ),
    # (home): what a feature does inside a running service, as a list of `app.service_tasks.ServiceTask`
    "service_tasks": (
        "jackline.features.notify.service_task:list_service_tasks",
        "jackline.features.replies.reply_listener:list_service_tasks",
        "jackline.features.triggers.trigger_task:list_service_tasks",
        "jackline.features.schedules.firing:list_service_tasks",
        "jackline.features.pull_requests.poll_task:list_service_tasks",
    ),
    # (home): processes of the home wrote something that wakes its services
    "wake_services": ("jackline.features.service.wake_signal:wake_services",),
    # (home): a running service of this home that takes new work, or None
    "living_service": ("jackline.features.service.presence:find_living_service",),
    # (home): an attempt has begun at a run with an address to ping; it must not wait
    "run_started": ("jackline.features.notify.ping:send_in_background",),
    # (home): a command that works on runs has done its work; called only if the home has channels
    "work_done": ("jackline.features.notify.after_work:deliver_after_work",),
    # (home, message, channel): a message of features.notify with what a feature adds for a channel, such as buttons
    "channel_message": ("jackline.features.replies.reply_offer:add_reply_codes",),
    # (ids of open cases): a section of the resume prompt, its title and its items
    "resume_sections": ("jackline.features.cases.learning:build_resume_section",),
}


def call_hook(name: str, *args: object, **options: object) -> list[Any]:
    """Call every function of a hook; their results."""
    from importlib import import_module

    found = (function.partition(":") for function in HOOKS[name])
    return [getattr(import_module(module), function)(*args, **options) for module, _, function in found]


def open_hook(name: str, *args: object, **options: object) -> AbstractContextManager[object]:
    """Enter the context managers of a hook together."""
    from contextlib import ExitStack

    stack = ExitStack()
    try:
        for manager in call_hook(name, *args, **options):
            stack.enter_context(manager)
    except BaseException:
        stack.close()
        raise
    return stack
