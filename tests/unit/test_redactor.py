"""What is redacted, what is not, and that doing it twice changes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.secrets.masking import SecretMask
from jackline.secrets.redactor import REDACTED, Redactor, find_secret_values
from tests.support.secrets import HARMLESS, NAMED, PEM, PEM_LINES, TELEGRAM, TOKENS

plain = Redactor()
TOKENS_GONE = [f"https://hooks.slack.com/{REDACTED}" if "hook" in kind else REDACTED for kind in TOKENS]
AROUND = (
    "{}",
    "before {} after",
    "x={}",
    '"{}"',
    "({})",
    "\n{}\n",
    "https://h/{}/x",
    "\x1b[32m{}\x1b[0m",
    "é{}é",
    "a_{}",
)


@pytest.mark.parametrize("around", AROUND)
def test_a_token_is_known_by_its_shape_wherever_it_stands(around: str) -> None:
    clean = {kind: plain.redact(around.format(token)) for kind, token in TOKENS.items()}
    assert [kind for kind, text in clean.items() if TOKENS[kind] in text or REDACTED not in text] == []


@pytest.mark.parametrize("kind", TOKENS)
def test_a_token_is_found_in_json_behind_an_escape(kind: str) -> None:
    text = json.dumps({"text": f"first\n{TOKENS[kind]}\tlast"})
    for written in (text, json.dumps(text)):
        assert TOKENS[kind] not in plain.redact(written)
    assert json.loads(plain.redact(text))["text"].startswith("first\n")


def test_of_a_bot_the_number_stays_and_the_secret_goes() -> None:
    assert plain.redact(f"bot{TELEGRAM}/getMe") == f"bot110201543{REDACTED}/getMe"


@pytest.mark.parametrize(("text", "secret"), NAMED)
def test_a_secret_is_known_by_its_name(text: str, secret: str) -> None:
    assert secret not in plain.redact(text)
    assert secret not in plain.redact(json.dumps({"text": f"line\n{text}\nline"}))


def test_of_a_url_only_the_password_goes() -> None:
    assert plain.redact("postgres://ada:hunter2@db/x") == f"postgres://ada:{REDACTED}@db/x"


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text: str) -> None:
    assert plain.redact(text) == text
    assert plain.redact(json.dumps(text)) == json.dumps(text)


def test_a_private_key_goes_whole() -> None:
    assert plain.redact(f"a\n{PEM}b") == (
        f"a\n-----BEGIN RSA {'PRIVATE'} KEY-----\n{REDACTED}\n-----END RSA {'PRIVATE'} KEY-----\nb"
    )


@pytest.mark.parametrize("lines", [2, 3, 5])
@pytest.mark.parametrize("prefix", ["", "  ", "+", "12: ", "> "])
def test_a_private_key_without_its_end_goes_too(lines: int, prefix: str) -> None:
    cut = "".join(f"{prefix}{line}\n" for line in PEM.splitlines()[:lines])
    redacted = plain.redact(f"{cut}that was all of it\n{PEM_LINES[0]}\n")
    assert not [line for line in PEM_LINES[: lines - 1] if line in redacted.split("that was all")[0]]
    assert redacted.endswith(f"that was all of it\n{PEM_LINES[0]}\n")


@pytest.mark.parametrize("text", [PEM, PEM.split("-----END")[0]])
def test_a_private_key_in_json_goes_and_the_json_stays(text: str) -> None:
    written = plain.redact(json.dumps({"text": f"see:\n{text}", "after": 1}))
    assert not [line for line in PEM_LINES if line in written]
    assert json.loads(written)["after"] == 1


def test_a_private_key_that_is_only_talked_about_hides_nothing() -> None:
    text = f"it begins with -----BEGIN {'PRIVATE'} KEY----- and ends\nthe next line stays\n"
    assert plain.redact(text) == text


# --- known values ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", ["plainvalue99", 'with "quotes" and \\', "spaces and/slashes?&=", "ümläute-größer", "two\nlines-of-it"]
)
def test_a_known_value_is_found_in_every_spelling(value: str) -> None:
    redactor = Redactor([value])
    from urllib.parse import quote, quote_plus

    spellings = [json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], json.dumps(json.dumps(value))]
    spellings += [quote(line, safe="") for line in value.splitlines()] + [
        quote_plus(line) for line in value.splitlines()
    ]
    for text in (value, *spellings):
        redacted = redactor.redact(f"<{text}>")
        assert not [line for line in value.splitlines() if len(line) >= 8 and line in redacted]
        assert REDACTED in redacted or len(text) < 8


def test_values_that_overlap_are_both_gone() -> None:
    assert Redactor(["abcdefgh", "efghijkl"]).redact("-abcdefghijkl-") == f"-{REDACTED}-"


def test_variables_with_secret_names_are_known() -> None:
    environ = {
        "OPENAI_API_KEY": "first-value-1", "GH_TOKEN": "second-value-2", "APP_SECRET": "third-value-3",
        "PGPASSWORD": "fourth-value-4", "MY_CREDENTIALS": "fifth-value-5",
        "DATABASE_URL": "postgres://ada:sixth-value-6@db/x", "AWS_SECRET_ACCESS_KEY": "/" + "aB3d" * 9 + "abc",
    }  # fmt: skip
    assert set(find_secret_values(environ)) == {
        "first-value-1", "second-value-2", "third-value-3", "fourth-value-4", "fifth-value-5", "sixth-value-6",
        "/" + "aB3d" * 9 + "abc",
    }  # fmt: skip


def test_variables_that_hold_no_secret_are_left_alone() -> None:
    environ = {
        "GOOGLE_APPLICATION_CREDENTIALS": "/home/ada/key.json", "SSH_AUTH_SOCK": "/run/agent", "USE_TOKEN": "true",
        "API_KEY": "short", "DB_PASSWORD": "postgres", "PATH": "/usr/bin:/bin", "KEYBOARD": "us-international",
        "EDITOR": "some-editor", "PUBLIC_KEY": "ssh-ed25519 AAAA", "HOME": "/home/ada", "TOKENIZERS": "false",
        "SECRET_KEY": "[redacted]", "PROXY": "http://proxy.example.org:8080",
    }  # fmt: skip
    assert find_secret_values(environ) == ()


# --- nested data -------------------------------------------------------------------------------------------


def test_values_under_secret_names_are_gone_whatever_they_look_like() -> None:
    data = {"password": "a", "nested": [{"apiKey": "b"}, {"Authorization": "Basic c"}], "set-cookie": "d", "pwd": "/x"}
    assert plain.redact_value(data) == {
        "password": REDACTED,
        "nested": [{"apiKey": REDACTED}, {"Authorization": REDACTED}],
        "set-cookie": REDACTED,
        "pwd": "/x",
    }


def test_lists_and_objects_under_a_secret_name_are_looked_into() -> None:
    token = TOKENS["openai"]
    data = {
        "secret": ["abcd", {"a": token, "b": 1}],
        "credentials": {"user": "ada", "password": "x-y"},
        "token": "$TOKEN",
    }
    assert plain.redact_value(data) == {
        "secret": [REDACTED, {"a": REDACTED, "b": 1}],
        "credentials": {"user": "ada", "password": REDACTED},
        "token": "$TOKEN",
    }


def test_secrets_on_lines_of_their_own_stay_lines() -> None:
    assert plain.redact("\n".join(TOKENS.values())) == "\n".join(TOKENS_GONE)


def test_the_word_behind_a_secret_flag_is_gone() -> None:
    argv = ["agent", "--api-key", "abc", "--model", "m", "--token=abcd1234", "--password", "--verbose", "-p", "text"]
    assert plain.redact_value(argv) == [
        "agent", "--api-key", REDACTED, "--model", "m", f"--token={REDACTED}", "--password", "--verbose", "-p", "text",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("argv", "kept"),
    [
        (["curl", "-u", "ada:hunter22", "x"], ["curl", "-u", f"ada:{REDACTED}", "x"]),
        (["/usr/bin/curl", "-sS", "--user", "ada:hunter22"], ["/usr/bin/curl", "-sS", "--user", f"ada:{REDACTED}"]),
        (["sshpass", "-p", "hunter22", "ssh", "-p", "22"], ["sshpass", "-p", REDACTED, "ssh", "-p", "22"]),
        (["docker", "login", "-p", "hunter22"], ["docker", "login", "-p", REDACTED]),
        (["docker", "run", "-u", "ada:staff"], ["docker", "run", "-u", "ada:staff"]),
        (["curl"], ["curl"]),
    ],
)
def test_what_a_program_s_own_flag_tells_is_gone(argv: list[str], kept: list[str]) -> None:
    assert plain.redact_value(argv) == kept
    assert plain.redact_value(tuple(argv)) == kept


def test_a_variable_of_a_list_is_known_by_its_name() -> None:
    told = {"env": [{"name": "DB_PASSWORD", "value": "x y"}, {"name": "DB_HOST", "value": "x y"}, {"value": 3}]}
    assert plain.redact_value(told)["env"] == [{"name": "DB_PASSWORD", "value": REDACTED}, *told["env"][1:]]
    assert plain.redact_value({"auth": "YWRhOmh1bnRlcjI=", "oauth": "none"}) == {"auth": REDACTED, "oauth": "none"}


@pytest.mark.parametrize(
    "piece",
    ["password=", "sk-" + "ant-", "-ey" + "J", "authorization:", "curl -u a:b,", 'token","value":"', "cookie:a=b;"],
)
def test_what_repeats_for_ever_is_read_once(piece: str) -> None:
    """Where each of so many beginnings is followed to the end, this test does not come to its own."""
    text = piece * (200_000 // len(piece))
    assert len(plain.redact(text)) <= 2 * len(text)
    mask = SecretMask()
    assert len(mask.feed(text.encode()) + mask.end()) == len(text)


def test_a_value_is_gone_to_its_end_however_long_it_is() -> None:
    long = "q8w7e6r5" * 1_000
    assert plain.redact(f"DB_PASSWORD={long} and") == f"DB_PASSWORD={REDACTED} and"
    assert plain.redact(f"Authorization: Bearer {long}") == f"Authorization: Bearer {REDACTED}"


def test_numbers_and_words_of_our_own_stay() -> None:
    data = {"token": 3, "key": ["to"], "tokens_input": 12, "offset": 4096, "ok": True, "none": None, "ratio": 0.5}
    assert plain.redact_value(data) == data
    assert plain.redact_json(json.dumps(data)) == json.dumps(data)
    assert plain.redact_value({"password": 12345678}) == {"password": REDACTED}


def test_json_stays_json() -> None:
    text = json.dumps({"command": f"echo {TOKENS['openai']}", "password": 12345678, "secret": "y"})
    assert json.loads(plain.redact_json(text)) == {
        "command": f"echo {REDACTED}",
        "password": REDACTED,
        "secret": REDACTED,
    }
    assert plain.redact_json("no json, DB_PASSWORD=hunter22") == f"no json, DB_PASSWORD={REDACTED}"


# --- properties --------------------------------------------------------------------------------------------

secret = st.sampled_from([*TOKENS.values(), TELEGRAM, PEM, *(text for text, _ in NAMED)])
pieces = st.lists(
    st.one_of(st.text(max_size=12), secret, st.sampled_from(["\n", " ", '"', "=", ":", "\\n", "--token "]))
)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=10), secret),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(["a", "password", "token", "argv", "key"]), inner, max_size=4),
    ),
    max_leaves=8,
)


@given(pieces)
def test_twice_is_as_once(parts: list[str]) -> None:
    once = Redactor(["known-value-1"]).redact("".join(parts))
    assert Redactor(["known-value-1"]).redact(once) == once


@given(pieces, st.text(min_size=8, max_size=30).filter(lambda text: text.strip() == text and "[redacted]" not in text))
def test_a_known_value_never_comes_through(parts: list[str], value: str) -> None:
    if not find_secret_values({"X_SECRET": value}):
        return
    redacted = Redactor([value]).redact(value.join(["", *parts]))
    assert not [line for line in value.splitlines() if len(line.strip()) >= 8 and line.strip() in redacted]


@given(json_values)
def test_nested_data_keeps_its_shape_and_twice_is_as_once(value: Any) -> None:
    once = plain.redact_value(value)
    assert plain.redact_value(once) == once
    assert json.loads(plain.redact_json(json.dumps(value))) == once


@given(st.text())
def test_no_text_is_too_strange(text: str) -> None:
    plain.redact(text)
    plain.redact_json(text)
