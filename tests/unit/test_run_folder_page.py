"""docs/run-folder.md names every file and every field that is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from jackline.domain.states import RunState, WaitReason
from jackline.exports import manifest, resume_page, run_folder
from jackline.exports.manifest import Manifest, manifest_state
from jackline.exports.summary import Summary
from jackline.exports.transcript import EntryType, TranscriptEntry

PAGE = (Path(__file__).parents[2] / "docs" / "run-folder.md").read_text()
FILES = (
    manifest.FILE, run_folder.TRANSCRIPT, run_folder.METADATA, run_folder.SUMMARY, run_folder.RAW_ALL,
    run_folder.RAW_STDOUT,
    resume_page.FILE,
)  # fmt: skip


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_named(name: str) -> None:
    assert f"| `{name}` |" in PAGE


@pytest.mark.parametrize(
    ("title", "record"),
    [("manifest.json", Manifest), ("transcript.jsonl", TranscriptEntry), ("metadata.json", Summary)],
)
def test_every_field_is_explained(title: str, record: type[Manifest | TranscriptEntry | Summary]) -> None:
    missing = [name for name in record._fields if f"`{name}`" not in section(title)]
    assert missing == []


def test_every_type_of_entry_is_explained() -> None:
    assert [kind for kind in EntryType if f"| `{kind}` |" not in section("transcript.jsonl")] == []


@pytest.mark.parametrize("reason", WaitReason)
def test_the_table_of_states_says_what_the_code_does(reason: WaitReason) -> None:
    rows = [line for line in section("manifest.json").splitlines() if f"`{reason}`" in line]
    assert [row.split("|")[2].strip(" `") for row in rows] == [manifest_state(RunState.WAITING, reason)]
