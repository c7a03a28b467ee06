"""Dummy secrets of every kind that jackline knows; none of them opens anything. Written in pieces, so that no scanner
of repositories takes this file for a leak."""

from __future__ import annotations

_LETTERS = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hJ3kL5mN7pQ9rS1tU3v"


def _token(prefix: str, size: int) -> str:
    return prefix + (_LETTERS * 4)[:size]


TOKENS = {
    "anthropic": _token("sk-" + "ant-api03-", 80),
    "openai project": _token("sk-" + "proj-", 60),
    "openai": _token("sk" + "-", 48),
    "openrouter": "sk-" + "or-v1-" + "0a1b2c3d" * 8,
    "google": _token("AI" + "za", 35),
    "google oauth": _token("ya29" + ".", 60),
    "xai": _token("xai" + "-", 60),
    "groq": _token("gsk" + "_", 52),
    "hugging face": _token("hf" + "_", 34),
    "replicate": _token("r8" + "_", 37),
    **{f"github {one}": _token(f"gh{one}" + "_", 36) for one in "pousr"},
    "github fine": _token("github" + "_pat_", 22) + "_" + _LETTERS[:59],
    "gitlab": _token("glpat" + "-", 20),
    "slack bot": "xox" + "b-123456789012-123456789012-" + _LETTERS[:24],
    "slack user": "xox" + "p-123456789012-123456789012-" + _LETTERS[:24],
    "aws id": "AK" + "IAIOSFODNN7EXAMPLE",
    "aws session id": "AS" + "IAIOSFODNN7EXAMPLE",
    "stripe": _token("sk" + "_live_", 24),
    "stripe restricted": _token("rk" + "_live_", 24),
    "npm": _token("npm" + "_", 36),
    "pypi": _token("pypi" + "-AgEIcHlwaS5vcmc", 80),
    "jwt": "ey" + "JhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0." + _LETTERS[:43],
    "sendgrid": "SG" + "." + _LETTERS[:22] + "." + _LETTERS[:43],
    "twilio": "SK" + "0123456789abcdef" * 2,
    "slack hook": "https://hooks.slack.com/" + "services/T0123ABCD/B0123ABCD/" + _LETTERS[:24],
}
TELEGRAM = "110201543" + ":AA" + _LETTERS[:33]

_BODY = "\n".join(
    [("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" + _LETTERS)[at : at + 64] for at in (0, 5, 9, 13)] + ["q1w2e3=="]
)
PEM = f"-----BEGIN RSA {'PRIVATE'} KEY-----\n{_BODY}\n-----END RSA {'PRIVATE'} KEY-----\n"
PEM_LINES = tuple(_BODY.split("\n"))

# A text, and what of it must be gone.
NAMED = (
    ("DB_PASSWORD=hunter2hunter", "hunter2hunter"),
    ("export API_KEY='q8w7e6r5'", "q8w7e6r5"),
    ('{"password": "correct horse"}', "correct horse"),
    ('{"client_secret":"v3ry-private"}', "v3ry-private"),
    ("login --password hunter2 --user ada", "hunter2"),
    ("login --token=t0k3n-of-mine", "t0k3n-of-mine"),
    ("curl -H 'Authorization: Bearer abc.def-123456789'", "abc.def-123456789"),
    ("authorization: Basic YWRhOmh1bnRlcjI=", "YWRhOmh1bnRlcjI="),
    ('["agent", "--api-key", "q1w2e3r4t5", "-v"]', "q1w2e3r4t5"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("git clone https://ada:s3cr3t-word@example.org/x.git", "s3cr3t-word"),
    ("postgresql://jack:l1ne@db:5432/x", "l1ne"),
    ("Cookie: session=abcdef123; theme=dark", "abcdef123"),
    ("<password>hunter22</password>", "hunter22"),
    ("password: hunter2", "hunter2"),
    ("X-Api-Key: 12345678abc", "12345678abc"),
)

HARMLESS = (
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "550e8400-e29b-41d4-a716-446655440000",
    "01hxy3k5c4m8v9w0z1a2b3c4d5",
    "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
    "def login(user: str, password: str) -> Token:",
    "api_key = os.environ['API_KEY']",
    "client = Client(api_key=api_key, password=self.password)",
    '{"input_tokens": 512, "max_tokens": 4096, "token": 3}',
    '{"next_page_token": "abc12345", "public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5"}',
    "token = get_token()",
    "password=$PASSWORD --token ${TOKEN} --api-key <your-key>",
    "https://example.org:8080/path@2x.png",
    "the desk-lamp-with-a-very-long-name-indeed is a task-runner-of-some-kind-or-other",
    "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCaB3dE5fG\n-----END CERTIFICATE-----",
    "git push origin main && gh pr create --title 'Add the key' --body 'token counting'",
    "key: value, sort_key=name, CACHE_KEY=v1, keyboard=us",
    "401 Unauthorized: Missing bearer or basic authentication in header",
    "Invalid token: expired. Authorization: required",
    "sorted(by_token, 'somename'), ['token', 'password', 'secret']",
    "if token == 'lambda' or {'input_token': 'next_token'}: SERVER_AUTH = '1.3.6.1.5.5.7.3.1'",
    "PWD=/home/ada/work OLDPWD=/home/ada",
)
