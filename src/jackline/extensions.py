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
    ),
    # (home): what needs a person, as entries of `app.inbox`
    "inbox_entries": ("jackline.features.work.questions:list_inbox_entries",),
    # (home, entry of the inbox, text): store a person's answer to a question; the run that it lets continue, or None
    "answer_question": ("jackline.features.work.questions:answer_question",),
    # (store, run id): the ids of the open cases of a run
    "open_cases": ("jackline.features.cases.location:list_open_ids",),
    # (statements of a transaction, run id): the open questions of a run's agent to a person
    "open_questions": ("jackline.features.work.run_questions:list_open_texts",),
    # (store, run id): the answers to such questions that the agent has not got
    "unread_answers": ("jackline.features.work.run_questions:list_unread_answers",),
    # (store, run id): a section of the resume prompt with the answers to the questions of a run's agent
    "question_answers": ("jackline.features.work.run_questions:build_answers_section",),
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
