"""Skipped tests: where a tool or a right is missing on a person's machine a test may skip, on CI it fails."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

import pytest

NOT_POSSIBLE = "not possible: "  # how the reason begins of what no machine of this kind can do, on CI too

_PR_CAPBSET_DROP = 24
_CAPABILITIES = (1, 2)  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, with which root ignores permissions


def refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure if this is CI, unless no machine of this kind could run the test."""
    if os.environ.get("CI") != "true" or not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not reason.removeprefix("Skipped: ").startswith(NOT_POSSIBLE):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} must not be skipped on CI (CI=true): {reason}"


def obey_permissions() -> None:
    """Make the program that this process starts next obey permissions, even as root. For `preexec_fn`."""
    if os.geteuid() == 0:
        prctl: Callable[..., int] = ctypes.CDLL(None).prctl
        for capability in _CAPABILITIES:
            if prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
                os._exit(126)
