"""Payloads are checked as a complete validator checks them, and a schema with an unchecked keyword is refused."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jackline.features.work.item_schemas import TYPES, check_in_process, check_payload, may_take_long

NAMES = st.sampled_from(["a", "b", "c", "a-b", "{a}", '"', "'", "\\", "\n", "ä", "{data}", "name", "variable"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.0, 1.0, 1.5, -2.0]),
    st.text("ab1\"'\\{}\n", max_size=3),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
SMALL = st.integers(0, 3)
PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
    "required": st.lists(NAMES, max_size=2, unique=True),
    "enum": st.lists(VALUES, min_size=1, max_size=3),
    "const": VALUES,
    "minimum": st.integers(-3, 3),
    "maximum": st.sampled_from([-1.5, 0, 2]),
    "minLength": SMALL,
    "maxLength": SMALL,
    "pattern": st.sampled_from(["^a", "b$", "a|1", "^[ab]+$", ""]),
    "minItems": SMALL,
    "maxItems": SMALL,
    "title": st.just("said"),
}


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    nested: dict[str, st.SearchStrategy[Any]] = {
        "properties": st.dictionaries(NAMES, inner, max_size=3),
        "additionalProperties": inner,
        "items": inner,
        "anyOf": several,
        "oneOf": several,
        "allOf": several,
    }
    return st.fixed_dictionaries({}, optional={**PLAIN, **nested})


SCHEMAS = st.recursive(st.booleans() | st.fixed_dictionaries({}, optional=PLAIN), _nested, max_leaves=6)


@given(SCHEMAS, VALUES)
def test_it_agrees_with_a_complete_validator(schema: Any, value: Any) -> None:
    """Names and texts with quotes, braces and backslashes must not become part of the generated code."""
    found = check_payload(json.dumps(schema), json.dumps(value))
    assume("are required but not allowed" not in found.unusable)  # no object can fit such a schema
    assert found.unusable == ""
    assert (found.problem == "") is jsonschema.Draft202012Validator(schema).is_valid(value)


@given(SCHEMAS, VALUES, st.sampled_from(sorted(set(jsonschema.Draft202012Validator.VALIDATORS) | {"$defs", "format"})))
def test_an_unchecked_keyword_is_refused(schema: Any, value: Any, keyword: str) -> None:
    assume(keyword not in {*PLAIN, "properties", "additionalProperties", "items", "anyOf", "oneOf", "allOf"})
    found = check_payload(json.dumps({"anyOf": [schema, {"properties": {"x": {keyword: value}}}]}), "1")
    wanted = (
        f"cannot be used: $.anyOf[1].properties.x must not contain {{'{keyword}'}} properties (known keywords: type,"
    )
    assert found.unusable.startswith(wanted)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ([], "$ must be object or boolean"),
        ("string", "$ must be object or boolean"),
        (None, "$ must be object or boolean"),
        ({"type": "text"}, "$.type cannot be validated by any definition (known types: null, boolean,"),
        ({"type": 3}, "$.type cannot be validated"),
        ({"type": [["string"]]}, "$.type cannot be validated"),
        ({"type": []}, "$.type cannot be validated"),
        ({"required": "a"}, "$.required must be array"),
        ({"required": [1]}, "$.required[0] must be string"),
        ({"required": ["a", "a"]}, "required must contain unique elements"),
        ({"properties": []}, "$.properties must be object"),
        ({"properties": {"a": 1}}, "$.properties.a must be object or boolean"),
        ({"items": [True]}, "$.items must be object or boolean"),
        ({"anyOf": []}, "$.anyOf must contain at least 1 items"),
        ({"oneOf": {}}, "$.oneOf must be array"),
        ({"allOf": [{"not": {}}]}, "$.allOf[0] must not contain {'not'} properties (known keywords: type, required"),
        ({"enum": "a"}, "$.enum must be array"),
        ({"minimum": True}, "$.minimum must be number"),
        ({"minLength": -1}, "$.minLength must be bigger than or equal to 0"),
        ({"maxItems": 1.5}, "$.maxItems must be integer"),
        ({"pattern": "("}, "a pattern is not a regular expression: missing )"),
        ({"pattern": 1}, "$.pattern must be string"),
    ],
)
def test_an_invalid_schema_is_refused(schema: Any, message: str) -> None:
    assert check_payload(json.dumps(schema), "1").unusable.startswith(f"cannot be used: {message}")


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (False, 1, "$ must not be there"),
        ({"type": "string"}, 1, "$ must be string"),
        ({"type": ["string", "null"]}, True, "$ must be string or null"),
        ({"required": ["to"]}, {}, "$ must contain ['to'] properties"),
        ({"properties": {"to": {"items": {"minLength": 2}}}}, {"to": ["ab", "c"]}, "$.to[1] must be longer than"),
        ({"additionalProperties": False}, {"x": 1}, "$ must not contain {'x'} properties"),
        ({"additionalProperties": {"type": "null"}}, {"a\nb": 1}, "$.a b must be null"),
        ({"enum": [1, "a"]}, True, "$ must be one of [1, 'a']"),
        ({"const": "x"}, "y", "$ must be same as const definition: x"),
        ({"minimum": 3}, 2, "$ must be bigger than or equal to 3"),
        ({"maximum": 3}, 4, "$ must be smaller than or equal to 3"),
        ({"maxItems": 1}, [1, 2], "$ must contain less than or equal to 1 items"),
        ({"pattern": "^a"}, "b", "$ must match pattern ^a"),
        ({"anyOf": [False, False]}, 1, "$ cannot be validated by any definition"),
        ({"oneOf": [True, True]}, 1, "$ must be valid exactly by one definition (2 matches found)"),
    ],
)
def test_a_problem_names_the_path_of_the_value(schema: Any, value: Any, message: str) -> None:
    assert check_payload(json.dumps(schema), json.dumps(value)).problem.startswith(message)


@pytest.mark.parametrize(
    ("schema", "unusable"),
    [
        ('{"minimum": NaN}', "is not valid JSON: NaN is not a number"),
        ('{"minimum": ', "is not valid JSON: Expecting value"),
        ('{"items": ' * 30 + '{"type": "null"}' + "}" * 30, "cannot be used: it is nested too deeply"),
        ('{"items": ' * 2_000 + "true" + "}" * 2_000, "cannot be used: it is nested too deeply"),
    ],
)
def test_a_text_that_is_not_a_schema_is_refused(schema: str, unusable: str) -> None:
    assert check_payload(schema, "1").unusable.startswith(unusable)


def test_another_process_finds_the_same() -> None:
    assert check_in_process('{"pattern": "^a$"}', '"a"') == ("", "")
    assert check_in_process('{"pattern": "^a$"}', '"b"').problem == "$ must match pattern ^a$"


def test_a_problem_is_one_line_of_limited_length() -> None:
    assert len(check_payload('{"additionalProperties": false}', '{"%s": 1}' % ("x" * 100_000)).problem) == 500
    assert len(check_payload('{"%s": 1}' % ("x" * 100_000), "1").unusable) == 500


@pytest.mark.parametrize(
    ("schema", "value", "long"),
    [
        ('{"type": "string"}', '"a"', False),
        ('{"pattern": "a"}', '"a"', True),
        (r'{"p\u0061ttern": "a"}', '"a"', True),
        ('{"enum": ["%s"]}' % ("x" * 10_000), '["%s"]' % ("x" * 10_000), True),
        ('{"enum": ["%s"]}' % ("x" * 30_000), "1", True),
    ],
)
def test_an_unbounded_check_is_known_before(schema: str, value: str, long: bool) -> None:
    assert may_take_long(schema, value) is long
