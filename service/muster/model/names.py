"""The syntax of names, label keys and label values: Kubernetes' rules as functions from text to fault.

Each `..._fault` returns what is wrong with the text in words that complete "... must ...", or None if it is right.
An empty text is wrong wherever something must be named; whether a field may be left empty is for its reader to say.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

LONGEST_LABEL = 63
LONGEST_SUBDOMAIN = 253
LONGEST_PORT_NAME = 15
MOST_ANNOTATION_BYTES = 256 * 1024
DEFAULT_NAMESPACE = "default"
NUL = "\0"
"""What no text may hold that a caller chooses: PostgreSQL's cannot."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")


def dns_label_fault(text: str) -> str | None:
    """What keeps the text from being a DNS-1123 label."""
    if len(text) > LONGEST_LABEL:
        return f"be at most {LONGEST_LABEL} characters long"
    if _LABEL.fullmatch(text) is None:
        return "be a DNS label: lower-case letters, digits and '-', a letter or digit at both ends"
    return None


def dns_subdomain_fault(text: str) -> str | None:
    """What keeps the text from being a DNS-1123 subdomain."""
    if len(text) > LONGEST_SUBDOMAIN:
        return f"be at most {LONGEST_SUBDOMAIN} characters long"
    if _SUBDOMAIN.fullmatch(text) is None:
        return (
            "be a DNS subdomain: lower-case letters, digits, '-' and '.', a letter or digit around each '.'"
        )
    return None


def are_dns_subdomains(texts: Collection[str]) -> bool:
    """Whether each is a DNS-1123 subdomain."""
    return max(map(len, texts), default=0) <= LONGEST_SUBDOMAIN and all(map(_SUBDOMAIN.fullmatch, texts))


def label_key_fault(text: str) -> str | None:
    """What keeps the text from being a label key: a name of 63 characters, after a DNS subdomain and '/' if qualified."""
    prefix, slash, name = text.rpartition("/")
    if slash:
        fault = dns_subdomain_fault(prefix)
        if fault is not None:
            return f"have a prefix that would {fault}"
    if len(name) > LONGEST_LABEL:
        return f"have a name of at most {LONGEST_LABEL} characters"
    if _QUALIFIED.fullmatch(name) is None:
        return "have a name of letters, digits, '-', '_' and '.', with a letter or digit at both ends"
    return None


def label_value_fault(text: str) -> str | None:
    """What keeps the text from being a label value; the empty text is one."""
    if not text:
        return None
    if len(text) > LONGEST_LABEL:
        return f"be at most {LONGEST_LABEL} characters long"
    if _QUALIFIED.fullmatch(text) is None:
        return "be empty or consist of letters, digits, '-', '_' and '.', with a letter or digit at both ends"
    return None


def path_segment_fault(text: str) -> str | None:
    """What keeps the text from being one segment of a URL path."""
    if text in ("", ".", ".."):
        return "be a path segment: neither empty nor '.' nor '..'"
    if "/" in text or "%" in text:
        return "be a path segment: without '/' and '%'"
    return None


def port_name_fault(text: str) -> str | None:
    """What keeps the text from being the name of a service (RFC 6335)."""
    if len(text) > LONGEST_PORT_NAME:
        return f"be at most {LONGEST_PORT_NAME} characters long"
    if _PORT_NAME.fullmatch(text) is None:
        return "be a port name: lower-case letters, digits and single '-' between them, a letter among them"
    return None


def annotations_size(annotations: Mapping[str, str]) -> int:
    """The bytes of all keys and values, which together may be MOST_ANNOTATION_BYTES."""
    return sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
