"""A bare repository from which the host pushes: the objects of the workspace, and none of its settings.

An agent may have written hooks, helpers and addresses into the workspace's repository. Here only the settings of the
person apply.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from jackline.files import make_private_folder, write_volatile
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from jackline.engine.git import Git

_CONFIG = """[core]
\trepositoryformatversion = {version}
\tbare = true
{extensions}[remote "{remote}"]
\turl = {url}
"""


class PushRepository(NamedTuple):
    """Where it is, and the commit that its HEAD names."""

    path: str
    commit: str

    @property
    def env(self) -> dict[str, str]:
        """The variables that bind git to it."""
        return {"GIT_DIR": self.path, "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh"}

    def remove(self) -> None:
        """Remove it."""
        shutil.rmtree(self.path, ignore_errors=True)


def make_push_repository(path: str, git: Git, remote: str, url: str, commit: str) -> PushRepository | None:
    """Create it again for one commit and one remote; None if git cannot tell where the objects are."""
    listed = git.run(
        "rev-parse", "--path-format=absolute", "--git-path", "objects", "--git-path", "shallow",
        "--show-object-format",
    )  # fmt: skip
    lines = (listed or "").splitlines()
    if len(lines) != len(("objects", "shallow", "format")) or "\n" in url:
        return None
    objects, shallow, object_format = lines
    repository = PushRepository(path, commit)
    repository.remove()
    make_private_folder(path)
    for folder in ("objects/info", "refs"):
        os.makedirs(os.path.join(path, folder))
    is_sha1 = object_format == "sha1"
    config = _CONFIG.format(
        version=0 if is_sha1 else 1,
        extensions="" if is_sha1 else f"[extensions]\n\tobjectformat = {object_format}\n",
        remote=remote,
        url='"{}"'.format(url.replace("\\", "\\\\").replace('"', '\\"')),
    )
    for name, text in (("config", config), ("HEAD", f"{commit}\n"), ("objects/info/alternates", f"{objects}\n")):
        write_volatile(os.path.join(path, name), text.encode())
    if os.path.isfile(shallow):
        shutil.copyfile(shallow, os.path.join(path, "shallow"))
    return repository
