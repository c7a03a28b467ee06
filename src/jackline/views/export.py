"""Write every projection of a run into its folder. Reads the store; files are its only output.

All of it can be lost and written again, byte for byte the same, but for the raw transcripts of the engine.
"""

from __future__ import annotations

import hashlib
import os
import re
from typing import TYPE_CHECKING

from jackline.domain import packet as packets
from jackline.domain.job import language
from jackline.domain.learning import resume_section
from jackline.domain.records import Run
from jackline.files import (
    link_file,
    make_private_folder,
    remove_file,
    replace_file,
    sweep_folder,
    write_file,
    write_pieces,
    write_symlink,
)
from jackline.views import manifest, raw, record_json, resume, summary, transcript

if TYPE_CHECKING:
    from jackline.store.contract import Store

TRANSCRIPT = "transcript.jsonl"
METADATA = "metadata.json"
SUMMARY = "summary.txt"
RAW_ALL = "transcript.log"
RAW_STDOUT = "stdout.log"
JOB = "job"
CONTENTS = "contents"
_LONGEST_NAME = 120  # bytes; a file system's own limit is 255
_NOT_IN_NAMES = re.compile(r"[^\w.-]|^\.")


def export(store: Store, run: Run, home: str, database: str = "") -> str:
    """Write all files of the run; gives back its folder. NotWritten names the file that could not be.

    `database` is the variable that names the store, if one does.
    """
    home = os.path.abspath(home)
    folder = os.path.join(home, "runs", run.id)
    make_private_folder(folder)
    sweep_folder(folder)
    _write_job(run, folder)
    _write_shapes(store, run, folder)
    _write_summary(store, run, folder, home, database)
    _write_contents(store, run, folder)
    _write_raw(os.path.join(folder, RAW_STDOUT), raw.files(home, run.id, "stdout"))
    _write_raw(os.path.join(folder, RAW_ALL), raw.files(home, run.id, "all"))
    _link_log(run, home)
    return folder


def component(name: str) -> str:
    """A name as one component of a path, whatever is in it."""
    safe = _NOT_IN_NAMES.sub("_", name).encode("utf-8", "replace")[:_LONGEST_NAME].decode("utf-8", "ignore")
    return safe or "_"


def _write_job(run: Run, folder: str) -> None:
    """The job file that asked for the run, as it was then."""
    text = run.spec.job
    if text:
        write_file(os.path.join(folder, f"{JOB}.{language(text)}"), _encoded(text))


def _write_shapes(store: Store, run: Run, folder: str) -> None:
    """The two files in the shape of the predecessor."""
    text = manifest.manifest_of(store, run).to_json()
    write_file(os.path.join(folder, manifest.FILE), text.encode())
    path = os.path.join(folder, TRANSCRIPT)
    write_pieces(path, transcript.lines_of(store, run, path))


def _write_summary(store: Store, run: Run, folder: str, home: str, database: str) -> None:
    told = summary.summary_of(store, run)
    write_file(os.path.join(folder, METADATA), record_json.encode_json(told.to_dict(), indent=2))
    write_file(os.path.join(folder, SUMMARY), _encoded("\n".join(summary.lines(told)) + "\n"))
    page = os.path.join(folder, resume.FILE)
    if resume.is_wanted(told):
        write_file(page, _encoded(_resume_page(store, run, told, home, database)))
    else:
        remove_file(page)


def _resume_page(store: Store, run: Run, told: summary.Summary, home: str, database: str) -> str:
    calls, forced = store.calls(run.id), store.forced(run.id)
    refused = packets.refusal(store.checks(run.id), store.turns(run.id))
    sections = (resume_section(told.open_cases),)
    packet = packets.packet(calls, store.receipts(run.id), told.commits, forced, refused=refused, sections=sections)
    strict = run.spec.strict
    return resume.page(told, calls, home, strict=strict, packet=packet, forced=forced, database=database)


def _write_contents(store: Store, run: Run, folder: str) -> None:
    """Large inputs and outputs of calls, by the digests that the ledger and the events name."""
    digests = store.digests(run.id)
    place = os.path.join(folder, CONTENTS)
    if digests:
        make_private_folder(place)
        sweep_folder(place)
    for digest in digests:
        path = os.path.join(place, f"{digest}.txt")
        if not _holds(path, digest):  # a content never changes: only what is missing or damaged is written
            write_file(path, _encoded(store.content(run.id, digest) or ""))


def _holds(path: str, digest: str) -> bool:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == digest
    except FileNotFoundError:
        return False


def _write_raw(path: str, sources: list[str]) -> None:
    """The sources one after the other. A single one gets a second name: no gigabyte need be there twice."""
    filled = [source for source in sources if _size(source)]
    if len(filled) == 1 and link_file(filled[0], path):
        return
    with replace_file(path) as descriptor:
        raw.copy(filled, descriptor)


def _link_log(run: Run, home: str) -> None:
    """The same folder where the predecessor had it; relative, so that a home can be moved."""
    folder = os.path.join(home, "logs", component(run.spec.task), component(run.spec.agent))
    make_private_folder(folder)
    write_symlink(os.path.join("..", "..", "..", "runs", run.id), os.path.join(folder, run.id))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")
