"""The small validator of payloads says what the full one says, and refuses what it would not check."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jackline.domain.json_schema import TYPES, SchemaRefused, first_problem, judge, may_take_long, refuse_schema

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.0, 1.0, 1.5, -2.0]), st.text("ab1", max_size=3)
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
def test_it_agrees_with_the_full_validator(schema: Any, value: Any) -> None:
    refuse_schema(schema)
    assert (first_problem(schema, value) is None) is jsonschema.Draft202012Validator(schema).is_valid(value)


@given(SCHEMAS, VALUES, st.sampled_from(sorted(set(jsonschema.Draft202012Validator.VALIDATORS) | {"$defs", "format"})))
def test_what_it_would_not_check_is_refused(schema: Any, value: Any, keyword: str) -> None:
    assume(keyword not in {*PLAIN, "properties", "additionalProperties", "items", "anyOf", "oneOf", "allOf"})
    with pytest.raises(SchemaRefused, match=f"uses '\\{keyword}'" if keyword[0] == "$" else f"uses '{keyword}'"):
        refuse_schema({"anyOf": [schema, {"properties": {"x": {keyword: value}}}]})


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ([], "$ is no schema"),
        ("string", "$ is no schema"),
        (None, "$ is no schema"),
        ({"type": "text"}, "$.type has to be one of null, boolean"),
        ({"type": 3}, "$.type has to be a name"),
        ({"type": [["string"]]}, "$.type has to be a name"),
        ({"type": []}, "$.type has to be a name"),
        ({"required": "a"}, "$.required has to be a list of names"),
        ({"required": [1]}, "$.required has to be a list of names"),
        ({"properties": []}, "$.properties has to be an object"),
        ({"properties": {"a": 1}}, "$.properties.a is no schema"),
        ({"items": [True]}, "$.items is no schema"),
        ({"anyOf": []}, "$.anyOf has to be a list of schemas"),
        ({"oneOf": {}}, "$.oneOf has to be a list of schemas"),
        ({"allOf": [{"not": {}}]}, "$.allOf[0] uses 'not', which is not checked here: known are type, required"),
        ({"enum": "a"}, "$.enum has to be a list of values"),
        ({"minimum": True}, "$.minimum has to be a number"),
        ({"minLength": -1}, "$.minLength has to be a whole number from 0"),
        ({"maxItems": 1.5}, "$.maxItems has to be a whole number from 0"),
        ({"pattern": "("}, "$.pattern has to be a regular expression"),
        ({"pattern": 1}, "$.pattern has to be a regular expression"),
    ],
)
def test_a_schema_that_is_none_is_refused(schema: Any, said: str) -> None:
    with pytest.raises(SchemaRefused) as refused:
        refuse_schema(schema)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        (False, 1, "$ is not allowed"),
        ({"type": "string"}, 1, "$ has to be of type string"),
        ({"type": ["string", "null"]}, True, "$ has to be of type string or null"),
        ({"required": ["to"]}, {}, "$ has no 'to', which is required"),
        ({"properties": {"to": {"items": {"minLength": 2}}}}, {"to": ["ab", "c"]}, "$.to[1] has to have at least 2"),
        ({"additionalProperties": False}, {"x": 1}, "$.x is not allowed"),
        ({"enum": [1, "a"]}, True, "$ has to be one of [1, 'a']"),
        ({"const": "x" * 99}, "y", "$ has to be 'xxx"),
        ({"minimum": 3}, 2, "$ has to be at least 3"),
        ({"maximum": 3}, 4, "$ has to be at most 3"),
        ({"maxItems": 1}, [1, 2], "$ has to have at most 1 items"),
        ({"pattern": "^a"}, "b", "$ has to match '^a'"),
        ({"anyOf": [False, False]}, 1, "$ fits none of the 2 schemas of anyOf"),
        ({"oneOf": [True, True]}, 1, "$ fits 2 of the 2 schemas of oneOf"),
    ],
)
def test_a_problem_says_where_it_is(schema: Any, value: Any, said: str) -> None:
    problem = first_problem(schema, value)
    assert problem is not None
    assert problem.startswith(said)


@pytest.mark.parametrize(
    ("schema", "value", "unusable", "problem"),
    [
        ('{"type": "string"}', '"a"', "", ""),
        ('{"type": "string"}', "1", "", "$ has to be of type string"),
        ('{"minimum": NaN}', "1", "is no JSON: NaN is no number", ""),
        ('{"minimum": ', "1", "is no JSON: Expecting value", ""),
        ('{"not": {}}', "1", "cannot be used: $ uses 'not'", ""),
        ('{"items": ' * 2_000 + "true" + "}" * 2_000, "1", "is nested too deeply", ""),
    ],
)
def test_texts_are_compared(schema: str, value: str, unusable: str, problem: str) -> None:
    verdict = judge(schema, value)
    assert verdict.unusable.startswith(unusable)
    assert verdict.problem.startswith(problem)
    assert (bool(verdict.unusable), bool(verdict.problem)) == (bool(unusable), bool(problem))


def test_what_is_wrong_is_said_in_a_line() -> None:
    assert len(judge('{"additionalProperties": false}', '{"%s": 1}' % ("x" * 100_000)).problem) == 500
    assert len(judge('{"%s": 1}' % ("x" * 100_000), "1").unusable) == 500


@pytest.mark.parametrize(
    ("schema", "value", "long"),
    [
        ('{"type": "string"}', '"a"', False),
        ('{"pattern": "a"}', '"a"', True),
        (r'{"p\u0061ttern": "a"}', '"a"', True),
        ('{"enum": ["%s"]}' % ("x" * 10_000), '["%s"]' % ("x" * 10_000), True),
    ],
)
def test_what_nobody_can_bound_is_known_before(schema: str, value: str, long: bool) -> None:
    assert may_take_long(schema, value) is long
