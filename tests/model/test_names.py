from collections.abc import Callable

import pytest

from muster.model.names import (
    annotations_size,
    dns_label_fault,
    dns_subdomain_fault,
    label_key_fault,
    label_value_fault,
    path_segment_fault,
    port_name_fault,
)


@pytest.mark.parametrize(
    ("syntax", "text"),
    [
        pytest.param(dns_label_fault, "a", id="label of one letter"),
        pytest.param(dns_label_fault, "0-a", id="label that begins with a digit"),
        pytest.param(dns_label_fault, "a" * 63, id="longest label"),
        pytest.param(dns_subdomain_fault, "node-1.example.com", id="subdomain with dots"),
        pytest.param(dns_subdomain_fault, ".".join(["a" * 63] * 3), id="subdomain of long parts"),
        pytest.param(dns_subdomain_fault, "a" * 253, id="longest subdomain"),
        pytest.param(label_key_fault, "app", id="plain key"),
        pytest.param(label_key_fault, "example.com/App_1.x", id="qualified key"),
        pytest.param(label_key_fault, "a" * 253 + "/" + "b" * 63, id="longest key"),
        pytest.param(label_value_fault, "", id="empty value"),
        pytest.param(label_value_fault, "A_b.c-1", id="value with all its characters"),
        pytest.param(label_value_fault, "a" * 63, id="longest value"),
        pytest.param(path_segment_fault, "Deployment:x", id="segment"),
        pytest.param(port_name_fault, "http-2", id="port name"),
    ],
)
def test_right_names_have_no_fault(syntax: Callable[[str], str | None], text: str) -> None:
    assert syntax(text) is None


@pytest.mark.parametrize(
    ("syntax", "text"),
    [
        pytest.param(dns_label_fault, "", id="empty label"),
        pytest.param(dns_label_fault, "a" * 64, id="label too long"),
        pytest.param(dns_label_fault, "a.b", id="label with a dot"),
        pytest.param(dns_label_fault, "A", id="label in capitals"),
        pytest.param(dns_label_fault, "-a", id="label that begins with a hyphen"),
        pytest.param(dns_label_fault, "a-", id="label that ends in a hyphen"),
        pytest.param(dns_label_fault, "a\n", id="label with a line end"),
        pytest.param(dns_label_fault, "ä", id="label of another alphabet"),
        pytest.param(dns_subdomain_fault, "", id="empty subdomain"),
        pytest.param(dns_subdomain_fault, "a" * 254, id="subdomain too long"),
        pytest.param(dns_subdomain_fault, "a..b", id="subdomain with an empty part"),
        pytest.param(dns_subdomain_fault, "a.-b", id="subdomain with a wrong part"),
        pytest.param(dns_subdomain_fault, "a.b\n", id="subdomain with a line end"),
        pytest.param(label_key_fault, "", id="empty key"),
        pytest.param(label_key_fault, "/a", id="key with an empty prefix"),
        pytest.param(label_key_fault, "a/", id="key with an empty name"),
        pytest.param(label_key_fault, "a/b/c", id="key with two slashes"),
        pytest.param(label_key_fault, "Example.com/a", id="key with a prefix in capitals"),
        pytest.param(label_key_fault, "a" * 64, id="key too long"),
        pytest.param(label_key_fault, "foo-", id="key that ends in a hyphen"),
        pytest.param(label_value_fault, "a" * 64, id="value too long"),
        pytest.param(label_value_fault, "a b", id="value with a space"),
        pytest.param(label_value_fault, "_", id="value without a letter"),
        pytest.param(path_segment_fault, "", id="empty segment"),
        pytest.param(path_segment_fault, "..", id="segment that leads up"),
        pytest.param(path_segment_fault, "a/b", id="segment with a slash"),
        pytest.param(path_segment_fault, "a%2f", id="segment with an escape"),
        pytest.param(port_name_fault, "80", id="port name without a letter"),
        pytest.param(port_name_fault, "a--b", id="port name with two hyphens"),
        pytest.param(port_name_fault, "a" * 16, id="port name too long"),
    ],
)
def test_wrong_names_have_a_fault(syntax: Callable[[str], str | None], text: str) -> None:
    assert syntax(text)


def test_annotations_are_measured_in_bytes_of_keys_and_values() -> None:
    assert annotations_size({"a": "bc", "d": "é"}) == 6
