"""What the helpers borrow from the scripted player: the gate, the lines, the name of a session's file. Nothing else."""

from __future__ import annotations

from ..playing.gate import Gate  # noqa: TID252 - loaded by its path, this program knows no package jackline
from ..playing.lines import Stop, failed, tell, write  # noqa: TID252 - as above
from ..playing.session import path_of  # noqa: TID252 - as above

__all__ = ["Gate", "Stop", "failed", "path_of", "tell", "write"]
