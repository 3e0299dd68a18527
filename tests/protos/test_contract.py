"""The protos say what the contract says, and Kubernetes manifests fit them word for word."""

import re
from collections.abc import Iterator

import pytest
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor, MethodDescriptor
from google.protobuf.message import Message

from muster.v1 import cluster_service_pb2, scheduler_service_pb2
from muster.v1.composite_pod_group_pb2 import CompositePodGroup
from muster.v1.disruption_budget_pb2 import PodDisruptionBudget
from muster.v1.node_pb2 import Node
from muster.v1.object_pb2 import Object
from muster.v1.pod_group_pb2 import PodGroup
from muster.v1.pod_pb2 import ContainerPort, Pod
from muster.v1.priority_class_pb2 import PriorityClass
from muster.v1.workload_pb2 import Workload
from tests.protos.contract import ENUMS, MESSAGES, ONEOFS, PRESENCE_AWARE, RPCS
from tests.protos.manifests import MANIFESTS

SERVICES = (cluster_service_pb2.DESCRIPTOR, scheduler_service_pb2.DESCRIPTOR)
KINDS = {
    kind.DESCRIPTOR.name: kind
    for kind in (
        CompositePodGroup,
        Node,
        Pod,
        PodDisruptionBudget,
        PodGroup,
        PriorityClass,
        Workload,
    )
}


def _files(file: FileDescriptor) -> Iterator[FileDescriptor]:
    yield file
    for imported in file.dependencies:
        yield from _files(imported)


FILES = {file.name: file for service in SERVICES for file in _files(service)}
OWN_FILES = [file for file in FILES.values() if file.package == "muster.v1"]


def _message(name: str) -> Descriptor:
    (found,) = (file.message_types_by_name[name] for file in OWN_FILES if name in file.message_types_by_name)
    return found


def _type_of(message: Descriptor, field: str) -> Descriptor:
    """The message that the field holds; the entry message if it is a map."""
    held = message.fields_by_name[field].message_type
    assert held is not None
    return held


def _missing(message: Descriptor, words: list[str]) -> Iterator[str]:
    """Consumes the words of one brace level and yields the fields of it that the message lacks."""
    field = ""
    while words:
        word = words.pop(0)
        if word == "}":
            return
        if word == "{":
            yield from _missing(_type_of(message, field), words)
        elif word in message.fields_by_name:
            field = word
        else:
            yield f"{message.name}.{word}"


def _signature(method: MethodDescriptor) -> str:
    request = "stream " * method.client_streaming + method.input_type.name
    response = "stream " * method.server_streaming + method.output_type.name
    return f"{request} -> {response}"


def _with_numbers_as_text(value: object) -> object:
    """JSON has 64-bit numbers as text where Kubernetes has numbers."""
    match value:
        case dict():
            return {key: _with_numbers_as_text(item) for key, item in value.items()}
        case list():
            return [_with_numbers_as_text(item) for item in value]
        case bool():
            return value
        case int():
            return str(value)
        case _:
            return value


def _nested(field: FieldDescriptor) -> Descriptor | None:
    """The message of Muster's own that the field holds, if it holds one."""
    message = field.message_type
    own = message is not None and message.file.package == "muster.v1" and not message.GetOptions().map_entry
    return message if own else None


def _collect_fields(message: Descriptor, known: set[str]) -> None:
    for field in message.fields:
        if field.full_name not in known:
            known.add(field.full_name)
            if nested := _nested(field):
                _collect_fields(nested, known)


def _collect_values(message: Message, used: set[str]) -> None:
    for field, value in message.ListFields():
        used.add(field.full_name)
        if _nested(field):
            for item in value if field.is_repeated else [value]:
                _collect_values(item, used)


@pytest.mark.parametrize("name", RPCS)
def test_a_service_has_exactly_the_rpcs_of_the_contract(name: str) -> None:
    (service,) = (file.services_by_name[name] for file in SERVICES if name in file.services_by_name)

    assert {method.name: _signature(method) for method in service.methods} == RPCS[name]


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_has_every_field_of_the_contract(name: str) -> None:
    words = re.findall(r"\w+|[{}]", MESSAGES[name])

    assert list(_missing(_message(name), words)) == []


@pytest.mark.parametrize("name", ENUMS)
def test_an_enum_has_the_values_of_the_contract_behind_its_prefix(name: str) -> None:
    (enum,) = (file.enum_types_by_name[name] for file in OWN_FILES if name in file.enum_types_by_name)
    prefix, values = ENUMS[name]

    assert [value.name for value in enum.values] == [
        f"{prefix}_{value}" for value in ["UNSPECIFIED", *values.split()]
    ]


@pytest.mark.parametrize("name", ONEOFS)
def test_a_union_of_musters_own_is_a_oneof(name: str) -> None:
    union, members = ONEOFS[name]

    assert [field.name for field in _message(name).oneofs_by_name[union].fields] == members.split()


@pytest.mark.parametrize(
    ("message", "members"),
    [
        pytest.param("PodGroupSchedulingPolicy", "basic gang", id="policy"),
        pytest.param("CompositePodGroupSchedulingPolicy", "basic gang", id="composite-policy"),
        pytest.param("DisruptionMode", "single all", id="disruption-mode"),
    ],
)
def test_a_union_of_kubernetes_keeps_every_member_that_was_sent(message: str, members: str) -> None:
    fields = _message(message).fields_by_name

    assert [fields[member].containing_oneof for member in members.split()] == [None, None]


@pytest.mark.parametrize("name", PRESENCE_AWARE)
def test_unset_is_told_from_zero_where_they_differ(name: str) -> None:
    fields = _message(name).fields_by_name

    assert [field for field in PRESENCE_AWARE[name].split() if not fields[field].has_presence] == []


def test_every_request_about_a_cluster_has_it_as_its_first_field() -> None:
    requests = {
        method.input_type.name: [field.name for field in method.input_type.fields if field.number == 1]
        for file in SERVICES
        for service in file.services_by_name.values()
        for method in service.methods
    }
    elsewhere = {name: first for name, first in requests.items() if first != ["cluster"]}

    assert elsewhere == {"GetServerInfoRequest": [], "ListClustersRequest": ["page_size"]}


def test_quantities_and_int_or_strings_are_text_on_the_wire() -> None:
    quantities = [
        _type_of(_message("NodeStatus"), "capacity").fields_by_name["value"],
        _type_of(_message("ResourceRequirements"), "requests").fields_by_name["value"],
        _message("PodDisruptionBudgetSpec").fields_by_name["min_available"],
        _message("PodDisruptionBudgetSpec").fields_by_name["max_unavailable"],
    ]

    assert {field.type for field in quantities} == {FieldDescriptor.TYPE_STRING}


def test_the_protos_import_nothing_but_each_other_and_googles_well_known_types() -> None:
    foreign = [name for name in FILES if not name.startswith(("google/protobuf/", "muster/v1/"))]

    assert foreign == []


def test_an_address_of_a_node_has_the_acronym_of_kubernetes_in_json() -> None:
    assert json_format.MessageToDict(ContainerPort(host_ip="10.0.0.1")) == {"hostIP": "10.0.0.1"}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_of_kubernetes_fits_and_comes_back_word_for_word(name: str) -> None:
    kind, manifest = MANIFESTS[name]

    message = json_format.ParseDict(manifest, KINDS[kind]())

    assert _with_numbers_as_text(json_format.MessageToDict(message)) == _with_numbers_as_text(manifest)


def test_the_manifests_use_every_field_of_every_kind() -> None:
    known: set[str] = set()
    used: set[str] = set()
    for kind, manifest in MANIFESTS.values():
        _collect_fields(KINDS[kind].DESCRIPTOR, known)
        _collect_values(json_format.ParseDict(manifest, KINDS[kind]()), used)

    assert known - used == set()


def test_every_kind_of_object_has_a_manifest() -> None:
    kinds = {_type_of(Object.DESCRIPTOR, field.name).name for field in Object.DESCRIPTOR.fields}

    assert {kind for kind, _ in MANIFESTS.values()} == kinds - {"PodBatch"}
