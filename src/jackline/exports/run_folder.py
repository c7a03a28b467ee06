"""Writes all files of a run's folder. It reads the store; files are its only output.

All of them can be written again, byte for byte the same, except the raw output that the engine writes.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from jackline import extensions
from jackline.domain import resume_prompt as packets
from jackline.domain.records import Run
from jackline.domain.task import detect_job_format
from jackline.exports import manifest, raw, record_json, resume_page, summary, transcript
from jackline.files import (
    link_file,
    make_private_folder,
    remove_file,
    replace_file,
    sweep_folder,
    write_file,
    write_pieces,
    write_symlink,
    write_volatile,
)

if TYPE_CHECKING:
    from jackline.store.store import Store

TRANSCRIPT = "transcript.jsonl"
METADATA = "metadata.json"
SUMMARY = "summary.txt"
RAW_ALL = "transcript.log"
RAW_STDOUT = "stdout.log"
JOB = "job"
CONTENTS = "contents"
_MAX_NAME_BYTES = 120  # a file system's own limit is 255
_UNSAFE_IN_NAMES = re.compile(r"[^\w.@-]|^\.")


def export_run(store: Store, run: Run, home: str, database: str = "") -> str:
    """Write all files of the run and return its folder; NotWritten names a file that cannot be written.

    `database` is the variable with the database address, if there is one.
    """
    home = os.path.abspath(home)
    folder = os.path.join(home, "runs", run.id)
    make_private_folder(folder)
    sweep_folder(folder)
    if run.spec.job:
        write_file(os.path.join(folder, f"{JOB}.{detect_job_format(run.spec.job)}"), _encode(run.spec.job))
    write_file(os.path.join(folder, manifest.FILE), manifest.load_run_manifest(store, run).to_json().encode())
    path = os.path.join(folder, TRANSCRIPT)
    write_pieces(path, transcript.iterate_lines(store, run, path))
    for name, records in (file for files in extensions.call_hook("run_files", store, run) for file in files):
        write_pieces(os.path.join(folder, name), map(record_json.encode_json, records))
    _write_summary(store, run, folder, home, database)
    _write_contents(store, run, folder)
    _write_raw(os.path.join(folder, RAW_STDOUT), raw.list_raw_files(home, run.id, "stdout"))
    _write_raw(os.path.join(folder, RAW_ALL), raw.list_raw_files(home, run.id, "all"))
    # The predecessor had the folder there; the link is relative, so that a home can be moved.
    links = os.path.join(home, "logs", make_path_component(run.spec.task), make_path_component(run.spec.agent))
    make_private_folder(links)
    write_symlink(os.path.join("..", "..", "..", "runs", run.id), os.path.join(links, run.id))
    return folder


def write_manifest(store: Store, run: Run, folder: str) -> None:
    """Write the manifest alone, while the run works. It does not wait for the disk: `export_run` writes it again."""
    write_volatile(os.path.join(folder, manifest.FILE), manifest.load_run_manifest(store, run).to_json().encode())


def make_path_component(name: str) -> str:
    """Convert a name to one safe component of a path."""
    safe = _UNSAFE_IN_NAMES.sub("_", name).encode("utf-8", "replace")[:_MAX_NAME_BYTES].decode("utf-8", "ignore")
    return safe or "_"


def _write_summary(store: Store, run: Run, folder: str, home: str, database: str) -> None:
    record = summary.load_summary(store, run)
    write_file(os.path.join(folder, METADATA), record_json.encode_json(record.to_dict(), indent=2))
    write_file(os.path.join(folder, SUMMARY), _encode("\n".join(summary.render_summary(record)) + "\n"))
    page = os.path.join(folder, resume_page.FILE)
    if resume_page.needs_resume_page(record):
        write_file(page, _encode(_render_resume_page(store, run, record, home, database)))
    else:
        remove_file(page)


def _render_resume_page(store: Store, run: Run, record: summary.Summary, home: str, database: str) -> str:
    calls, forced = store.calls.list_all(run.id), store.calls.list_forced(run.id)
    turns = store.records.list_turns(run.id)
    refused = packets.find_failed_check(store.records.list_checks(run.id), turns)
    interrupted = packets.find_interrupted_calls(calls, turns, forced)
    sections = extensions.call_hook("resume_sections", record.open_cases)
    packet = packets.build_resume_prompt(
        calls,
        store.calls.list_receipts(run.id),
        record.commits,
        forced,
        packets.build_heading([one for one in store.amendments.list_messages(run.id) if one.turn is None]),
        refused=refused,
        sections=(packets.build_interrupted_section(interrupted), *sections),
    )
    return resume_page.render_resume_page(
        record, calls, home, strict=run.spec.strict, packet=packet, forced=forced, database=database
    )


def _write_contents(store: Store, run: Run, folder: str) -> None:
    """Write the large inputs and outputs of calls, named by their digests."""
    digests = store.blobs.list_digests(run.id)
    contents = os.path.join(folder, CONTENTS)
    if digests:
        make_private_folder(contents)
        sweep_folder(contents)
    for digest in digests:
        path = os.path.join(contents, f"{digest}.txt")
        if not _has_digest(path, digest):  # contents never change: write only missing and damaged ones
            write_file(path, _encode(store.blobs.get(run.id, digest) or ""))


def _has_digest(path: str, digest: str) -> bool:
    from hashlib import file_digest

    try:
        with open(path, "rb") as file:
            return file_digest(file, "sha256").hexdigest() == digest
    except FileNotFoundError:
        return False


def _write_raw(path: str, sources: list[str]) -> None:
    """Concatenate the sources; a single one is hard-linked, because it may be large."""
    filled = [source for source in sources if os.path.exists(source) and os.path.getsize(source)]
    if len(filled) == 1 and link_file(filled[0], path):
        return
    with replace_file(path) as descriptor:
        raw.copy_files(filled, descriptor)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")
