"""An effect that sends a local file is keyed by its content, and not by files that the effect itself changes."""

from __future__ import annotations

import pytest

from jackline.policy.call_context import CallContext
from jackline.policy.classify import Classification, classify_call
from jackline.policy.rules import POLICY_VERSION

WHERE = CallContext("/home/dev/project", "/home/dev/project")


def classify(command: str, version: int = POLICY_VERSION) -> Classification:
    return classify_call((), "Bash", {"command": command}, WHERE._replace(version=version))


def find_sources(command: str) -> list[str]:
    (effect,) = classify(command).effects
    return str(effect.fields.get("sources", "")).split("\n") if "file:sources" in effect.host_inputs else []


@pytest.mark.parametrize(
    ("command", "sources"),
    [
        ("cp f /etc/x", ["f"]),
        ("cp a b /etc/", ["a", "b"]),
        ("install -m 755 tool /usr/local/bin/tool", ["755", "tool"]),
        ("dd if=f of=/etc/x", ["if=f", "f", "of=/etc/x"]),
        ("cat f > /etc/x", ["f"]),
        ("python gen.py > /etc/x", ["gen.py"]),
        ("gsutil cp f gs://bucket/f", ["f"]),
        ("gsutil cp gs://bucket/f f", []),
        ("gcloud app deploy app.yaml", ["app.yaml"]),
        ("aws lambda update-function-code --zip-file fileb://f.zip", ["f.zip"]),
        ("gh gist create notes.md", ["create", "notes.md"]),
        ("kubectl create configmap x --from-file=name=f", ["configmap", "x", "name=f", "f"]),
        ("docker secret create name f", ["create", "name", "f"]),
        ("surge dist", ["dist"]),
        ("mail -a report.pdf bob@example.org <<< hi", ["report.pdf"]),
        ("mail bob <<< hi", []),
        ("apt-get install jq", []),
        ("dpkg -i ./tool.deb", ["./tool.deb"]),
        ("gh pr merge 3", []),
    ],
)
def test_the_files_that_an_effect_may_send(command: str, sources: list[str]) -> None:
    assert find_sources(command) == sources


def test_what_is_piped_into_an_effect_comes_from_the_other_commands() -> None:
    found = classify("cat f | sudo tee /etc/x")
    assert "f" in str(found.fields["sources"]).split("\n")
    assert "file:sources" in found.host_inputs


@pytest.mark.parametrize("command", ["gcloud app deploy", "gcloud builds submit", "make install"])
def test_what_sends_the_working_tree_is_keyed_by_it(command: str) -> None:
    assert "git.tree" in classify(command).host_inputs


@pytest.mark.parametrize("command", ["cp f /etc/x", "gsutil cp f gs://b/f", "gh gist create f", "cat f > /etc/x"])
@pytest.mark.parametrize("version", [1, 2])
def test_a_run_that_began_earlier_keeps_its_keys(command: str, version: int) -> None:
    found = classify(command, version=version)
    assert "file:sources" not in found.rule.key
    assert "sources" not in found.fields
    assert all("file:sources" not in one.rule.key for one in found.effects)
