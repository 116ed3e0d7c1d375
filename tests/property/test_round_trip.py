"""Every document survives being written and read: as a value and as bytes, by schema and model both."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moeplan.errors import InputError
from moeplan.wire.documents import DOCUMENTS, dump_document, identify, load_document, require_canonical
from moeplan.wire.schemas import check_schema, head_of
from tests.property.documents import documents

_SETTINGS = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@pytest.mark.parametrize("cls", DOCUMENTS, ids=lambda cls: cls.__name__)
@_SETTINGS
@given(data=st.data())
def test_round_trip(cls: type, data: st.DataObject) -> None:
    document: object = data.draw(documents(cls))
    written = dump_document(document)
    again: object = load_document(written, cls)
    assert again == document
    assert dump_document(again) == written
    assert identify(again) == identify(document)
    require_canonical(written, again)
    other = json.dumps(_reversed(json.loads(written)), indent=data.draw(st.integers(0, 3))).encode()
    relaid: object = load_document(other, cls)
    assert relaid == document
    with pytest.raises(InputError) as caught:
        require_canonical(other, relaid)
    assert caught.value.issues[0].code == "not_canonical"


@pytest.mark.parametrize("cls", DOCUMENTS, ids=lambda cls: cls.__name__)
@_SETTINGS
@given(data=st.data())
def test_one_value_put_in_another_place_is_judged_alike_by_schema_and_model(cls: type, data: st.DataObject) -> None:
    """Swap one value for a value of any kind: what the model takes, the schema takes; neither crashes."""
    value = json.loads(dump_document(data.draw(documents(cls))))
    holder, key = data.draw(st.sampled_from(list(_places(value))))
    holder[key] = data.draw(
        st.sampled_from([None, True, 0, -1, 2**53, 1.5, "", "x", "\x1b[2J", "\u202e", [], {}, [{}]])
    )
    try:
        load_document(json.dumps(value).encode(), cls)
    except InputError as error:
        assert all(str(issue).isprintable() for issue in error.issues)  # noqa: PT017
    else:
        check_schema(value, *head_of(cls))


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reversed(item) for key, item in reversed(value.items())}
    return [_reversed(item) for item in value] if isinstance(value, list) else value


def _places(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield value, key
        yield from _places(item)
