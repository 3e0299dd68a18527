"""Texts become documents: what a scalar is, how lists are unpacked, what is refused."""

from decimal import Decimal
from pathlib import Path

import pytest

from muster.client.manifest_documents import Document, DocumentError, Source, documents, sources


def _value(text: str) -> object:
    (document,) = documents(Source("text", f"value: {text}"))
    assert isinstance(document.content, dict)
    return document.content["value"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("2026-01-31", "2026-01-31", id="a day stays text"),
        pytest.param("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z", id="a time stays text"),
        pytest.param("12:30:45", "12:30:45", id="no number to the base of sixty"),
        pytest.param("yes", "yes", id="yes is text"),
        pytest.param("off", "off", id="off is text"),
        pytest.param("true", True, id="true"),
        pytest.param("~", None, id="null"),
        pytest.param("010", 10, id="no octal number"),
        pytest.param("0.1", Decimal("0.1"), id="an exact fraction"),
        pytest.param("1e3", Decimal("1e3"), id="an exponent without a point"),
        pytest.param("100m", "100m", id="a quantity with a unit"),
    ],
)
def test_a_scalar_is_what_the_core_schema_of_yaml_says(text: str, expected: object) -> None:
    assert _value(text) == expected
    assert type(_value(text)) is type(expected)


def test_numbers_of_json_keep_every_digit() -> None:
    (document,) = documents(Source("text", '{"value": 0.1000000000000000000001}'))

    assert document.content == {"value": Decimal("0.1000000000000000000001")}


def test_several_documents_say_where_each_stands() -> None:
    found = list(documents(Source("f.yaml", "kind: A\n---\n---\nkind: B\n")))

    assert found == [
        Document({"kind": "A"}, "f.yaml, document 1"),
        Document({"kind": "B"}, "f.yaml, document 2"),
    ]


def test_the_items_of_a_list_of_lists_come_one_by_one() -> None:
    inner = {"kind": "List", "items": [{"kind": "Node"}, {"kind": "Pod"}]}
    (first, second) = documents(Source("f", str({"kind": "List", "items": [inner]})))

    assert (first.content, second.content) == ({"kind": "Node"}, {"kind": "Pod"})
    assert second.origin == "f, item 1, item 2"


def test_the_items_of_a_typed_list_get_its_kind() -> None:
    (item,) = documents(Source("f", "apiVersion: v1\nkind: PodList\nitems: [{metadata: {name: p}}]"))

    assert item.content == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: [", id="yaml that breaks off"),
        pytest.param("a: 1\na: 2", id="a key twice in yaml"),
        pytest.param('{"a": 1, "a": 2}', id="a key twice in json"),
        pytest.param("!!python/object:os.system {}", id="a python object"),
        pytest.param("!!timestamp x", id="a tag of another schema"),
        pytest.param("!!bool maybe", id="a text that is no truth value"),
        pytest.param("!!int x", id="a text that is no whole number"),
        pytest.param("!!float x", id="a text that is no number"),
        pytest.param("9" * 5_000, id="a number of many digits"),
        pytest.param(f"[{'9' * 5_000}]", id="a number of many digits in json"),
        pytest.param(f"1e{'9' * 30}", id="an exponent of many digits"),
        pytest.param(f"[1e{'9' * 30}]", id="an exponent of many digits in json"),
        pytest.param("[" * 100_000, id="lists without end in json"),
        pytest.param('{"a":' * 100_000, id="mappings without end in json"),
        pytest.param("- " * 100_000, id="lists without end in yaml"),
        pytest.param(f"a: {'[' * 600}{']' * 600}", id="600 lists in each other"),
        pytest.param(
            f"a: {'{kind: List, items: [' * 400}{']}' * 400}", id="400 lists of objects in each other"
        ),
        pytest.param("&a [*a]", id="a list that holds itself"),
        pytest.param("&a {kind: List, items: [*a]}", id="a list of objects that holds itself"),
    ],
)
def test_a_text_that_cannot_be_understood_is_refused_with_its_name(text: str) -> None:
    with pytest.raises(DocumentError, match=r"broken\.yaml"):
        list(documents(Source("broken.yaml", text)))


def _doubled(first: str, times: int) -> str:
    """A text in which each line has the one above twice."""
    return "\n".join([f"a0: &a0 {first}", *(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, times))])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(_doubled("[]", 30), id="many values"),
        pytest.param(_doubled("x" * 100_000, 12), id="long texts"),
        pytest.param(f"{_doubled('[]', 20)}\n---\n" * 10, id="many documents"),
        pytest.param(_doubled("{x: 1}", 30).replace("[", "{!!merge <<: [").replace("]", "]}"), id="merges"),
    ],
)
def test_aliases_that_stand_for_more_than_can_be_held_are_refused(text: str) -> None:
    with pytest.raises(DocumentError, match=r"broken\.yaml.* its aliases stand for too much"):
        list(documents(Source("broken.yaml", text)))


def test_an_alias_is_what_it_stands_for() -> None:
    found = list(
        documents(
            Source("f", "kind: List\nitems: [&a {kind: Pod, spec: &s {b: 1}}, {kind: Pod, spec: *s}, *a]")
        )
    )

    assert [each.content for each in found] == [{"kind": "Pod", "spec": {"b": 1}}] * 3


def test_a_key_that_is_there_twice_is_found_among_many() -> None:
    pairs = ", ".join(f'"{min(number, 99_999)}": 0' for number in range(100_001))

    with pytest.raises(DocumentError, match="the key '99999' is there twice"):
        list(documents(Source("f.json", f"{{{pairs}}}")))


@pytest.mark.parametrize("name", ["-", "latin.yaml"])
def test_a_text_that_is_not_utf_8_is_refused_with_its_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(b"a: \xe9")
    with Path(name).open(encoding="utf-8") as file:
        monkeypatch.setattr("sys.stdin", file)

        with pytest.raises(
            DocumentError, match=r"(standard input|latin\.yaml) is not UTF-8 text: .* at byte 3"
        ):
            list(sources([name]))


def test_a_folder_gives_its_manifests_by_path_and_nothing_else(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.json", "inner/c.yml", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")

    assert [each.text for each in sources([str(tmp_path)])] == ["a.json", "b.yaml", "inner/c.yml"]
