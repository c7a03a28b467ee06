"""The local files that the words of an effect name: since version 3 of the policy, its key covers their content. Pure.

Without it, `cp f /etc/x` after an edit of `f` would give the stored result of the first copy. Files that the command
itself changes do not count: they differ afterwards, and the same effect would look like another one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jackline.policy import builtin, file_effects, path_args

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jackline.policy.command_line import CommandLine
    from jackline.policy.rules import Rule
    from jackline.shell.model import ShellCommand, Word

SOURCES = "sources"  # the field
_INPUT = f"file:{SOURCES}"
_TREE = "git.tree"
_CLOUD = "cloud.change"
# Any word may name a file.
_SENDING_RULES = frozenset(
    {
        builtin.OUTSIDE_WRITE.name, _CLOUD, "deploy.send", "gh.gist", "gh.secret", "gh.variable",
        "gh.ssh-key", "gh.gpg-key", "gh.other", "gh.repo.deploy-key", "glab.release", "glab.snippet", "glab.variable",
        "glab.ssh-key", "docker.secret", "docker.config", "docker.stack", "docker.service", "kubectl.cp",
        "kubectl.create", "kubectl.other", "ollama.create", "npm.publish", "pnpm.publish", "yarn.publish",
        "bun.publish", "package.publish",
    }
)  # fmt: skip
# Most words are people, packages or texts: only those with a folder or a suffix count.
_SOMETIMES_SENDING = frozenset({"mail.send", "message.send", "keys.change", "outside.install"})
_PATH = re.compile(r"@?[^\s@]*[./][^\s@]*")
# They send or install the working tree, whether they name it or not.
_TREE_WORDS = {_CLOUD: frozenset({"deploy", "submit", "up"})}
_BUILDERS = frozenset({"make", "ninja", "meson", "cmake"})
# The last operand is the destination.
_COPIES = frozenset({"cp", "mv", "copy", "sync", "rsync", "get", "download"})
# Of the programs of `cloud.change`; the others have two: `gcloud app deploy`.
_ONE_SUBCOMMAND = frozenset({"gsutil", "bq", "s3cmd", "s5cmd", "azcopy"})
_SCHEMES = ("fileb://", "file://")


def add_file_inputs(rule: Rule, line: CommandLine) -> Rule:
    """Return the rule of an effect with the files that its key has to cover."""
    if rule.layer != "built-in" or rule.name not in _SENDING_RULES | _SOMETIMES_SENDING:
        return rule
    words = {word.text for word in line.operands}
    sends_tree = bool(words & _TREE_WORDS.get(rule.name, frozenset())) or (
        rule.name == "outside.install" and line.program in _BUILDERS
    )
    more = (_INPUT, _TREE) if sends_tree else (_INPUT,)
    return rule._replace(key=(*rule.key, *(name for name in more if name not in rule.key)))


def list_sources(rule: Rule, line: CommandLine, fed_by: Sequence[ShellCommand] = ()) -> str:
    """List the words that may name files to send, one per line; a word that names none has no content.

    `fed_by` are the commands of a call whose output may be what this one sends.
    """
    skipped = max(0, len(rule.command) - 1)
    if rule.name == _CLOUD:
        skipped = 1 if line.program in _ONE_SUBCOMMAND else 2
    after = line.operand_indexes[skipped - 1] + 1 if 0 < skipped <= len(line.operand_indexes) else 0
    changed = {change.word.text for change in file_effects.find_changes(line) if not change.deletes}
    operands = path_args.find_operands(line)
    if len(operands) > 1 and not _COPIES.isdisjoint(word.text for word in operands[:-1]):
        changed.add(operands[-1].text)
    words = [*line.words[after:], *(word for command in fed_by for word in command.words[1:])]
    names = dict.fromkeys(name for word in words for name in _find_names(word) if name not in changed)
    has_other_words = rule.name in _SOMETIMES_SENDING
    return "\n".join(name for name in names if not has_other_words or _PATH.fullmatch(name))


def _find_names(word: Word) -> Iterator[str]:
    """Yield the word, or the value of a flag; and what follows the last `=`, as in `--from-file=name=path`."""
    text = word.text
    if text.startswith("-"):
        _, equals, text = text.partition("=")
        if not equals:
            return
    for name in dict.fromkeys((text, text.rpartition("=")[2])):
        path = next((name.removeprefix(scheme) for scheme in _SCHEMES if name.startswith(scheme)), name)
        if path and path != "-" and "://" not in path:
            yield path
