"""The resume packet tells commits as facts."""

from __future__ import annotations

from jackline.domain.packet import packet


def test_commits_are_told_as_facts() -> None:
    told = packet((), (), ("abc one", "def two"))
    assert "Commits that you made already:\n- abc one\n- def two" in told
    assert "Commits" not in packet((), ())
