"""A manifest is checked field by field; what is wrong is told with its path."""

from typing import Any

import pytest

from registry.fields import ManifestError
from registry.manifestshape import parse
from tests.factories.registry import manifest, numbers, tool


def refusal(document: Any) -> ManifestError:
    with pytest.raises(ManifestError) as refused:
        parse(document)
    return refused.value


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"rntime": {}}, "spec.tools[0].rntime"),
        ({"name": "pаy"}, "spec.tools[0].name"),
        ({"name": "A" * 62}, "spec.tools[0].name"),
        ({"name": "Add\n"}, "spec.tools[0].name"),
        ({"name": 5}, "spec.tools[0].name"),
        ({"title": "x" * 201}, "spec.tools[0].title"),
        ({"description": "\0"}, "spec.tools[0].description"),
        ({"risk": "huge"}, "spec.tools[0].risk"),
        ({"capabilities": ["Data.Read"]}, "spec.tools[0].capabilities[0]"),
        ({"capabilities": ["admin"]}, "spec.tools[0].capabilities[0]"),
        ({"capabilities": ["data.read", "data.read"]}, "spec.tools[0].capabilities"),
        ({"capabilities": "data.read"}, "spec.tools[0].capabilities"),
        ({"idempotency": "maybe"}, "spec.tools[0].idempotency"),
        ({"input": {"type": "array"}}, "spec.tools[0].input.type"),
        ({"input": numbers(x={"pattern": "(?=a)"})}, "spec.tools[0].input.properties.x.pattern"),
        ({"input": numbers(x={"$ref": "http://127.0.0.1/"})}, "spec.tools[0].input.properties.x.$ref"),
        ({"output": {"type": "nothing"}}, "spec.tools[0].output.type"),
        ({"output": {"$schema": []}}, "spec.tools[0].output.$schema"),
        ({"input": {"type": "object", "$schema": {}}}, "spec.tools[0].input.$schema"),
        ({"output": True}, "spec.tools[0].output"),
        ({"output": False}, "spec.tools[0].output"),
        ({"nonInferrable": ["zz"]}, "spec.tools[0].nonInferrable[0]"),
        ({"annotations": ["x"]}, "spec.tools[0].annotations"),
        ({"annotations": {"x": {}}}, "spec.tools[0].annotations.x"),
        ({"requirements": {"user_id": True}}, "spec.tools[0].requirements.user_id"),
        ({"requirements": {"userId": "yes"}}, "spec.tools[0].requirements.userId"),
        ({"requirements": {"secrets": [{"name": "x"}]}}, "spec.tools[0].requirements.secrets[0].name"),
        ({"requirements": {"secrets": [{"id": "x"}, {"id": "x"}]}}, "spec.tools[0].requirements.secrets"),
        ({"requirements": {"authorization": [{}]}}, "spec.tools[0].requirements.authorization[0].id"),
        ({"runtime": None}, "spec.tools[0].runtime"),
        ({"runtime": {"type": "magic"}}, "spec.tools[0].runtime.type"),
        ({"runtime": {"type": "http"}}, "spec.tools[0].runtime.endpoint"),
        ({"runtime": {"type": "session", "endpoint": "http://a/"}}, "spec.tools[0].runtime.endpoint"),
        ({"runtime": {"type": "session", "timeout": "30"}}, "spec.tools[0].runtime.timeout"),
        ({"runtime": {"type": "session", "timeout": "0s"}}, "spec.tools[0].runtime.timeout"),
        ({"runtime": {"type": "session", "timeout": "2h"}}, "spec.tools[0].runtime.timeout"),
        ({"runtime": {"type": "session", "timeout": "999999999h"}}, "spec.tools[0].runtime.timeout"),
        ({"runtime": {"type": "session", "retry": {"backoff": "999999999h"}}}, "spec.tools[0].runtime.retry.backoff"),
        ({"runtime": {"type": "session", "retry": {"maxBackoff": "25h"}}}, "spec.tools[0].runtime.retry.maxBackoff"),
        ({"runtime": {"type": "session", "timeout": 30}}, "spec.tools[0].runtime.timeout"),
        ({"runtime": {"type": "session", "retry": {"attempts": 2}}}, "spec.tools[0].runtime.retry.attempts"),
        ({"runtime": {"type": "session", "retry": {"maxAttempts": 0}}}, "spec.tools[0].runtime.retry.maxAttempts"),
        ({"runtime": {"type": "session", "retry": {"jitter": "some"}}}, "spec.tools[0].runtime.retry.jitter"),
        ({"runtime": {"type": "session", "dispatch": "inline", "timeout": "6s"}}, "spec.tools[0].runtime.timeout"),
        ({"risk": "high", "runtime": {"type": "session", "dispatch": "inline"}}, "spec.tools[0].runtime.dispatch"),
        ({"runtime": {"type": "mcp", "endpoint": "http://a/"}}, "spec.tools[0].runtime.tool"),
        ({"runtime": {"type": "grpc", "endpoint": "http://a/"}}, "spec.tools[0].runtime.endpoint"),
        ({"runtime": {"type": "container", "image": "alpine:latest"}}, "spec.tools[0].runtime.image"),
        ({"runtime": {"type": "wasm"}}, "spec.tools[0].runtime.module"),
        ({"runtime": {"type": "wasm", "module": "../x.wasm"}}, "spec.tools[0].runtime.module"),
        ({"runtime": {"type": "python", "entrypoint": "os.system"}}, "spec.tools[0].runtime.entrypoint"),
        ({"auth": {"profile": "magic", "secretRef": "x"}}, "spec.tools[0].auth.profile"),
        ({"auth": {"profile": "bearer"}}, "spec.tools[0].auth.secretRef"),
        ({"auth": {"profile": "api_key_header", "secretRef": "x"}}, "spec.tools[0].auth.headerName"),
        (
            {"auth": {"profile": "api_key_header", "secretRef": "x", "headerName": "a\r\nb"}},
            "spec.tools[0].auth.headerName",
        ),
        ({"auth": {"profile": "basic", "secretRef": "x", "scopes": ["a"]}}, "spec.tools[0].auth.scopes"),
        ({"auth": {"profile": "oauth2_client_credentials", "secretRef": "x"}}, "spec.tools[0].auth.tokenUrl"),
    ],
    ids=lambda value: value if isinstance(value, str) else ascii(value)[:60],
)
def test_what_is_wrong_is_told_with_its_path(change: dict[str, Any], path: str) -> None:
    assert refusal(manifest("Calculator", "1.0.0", change)).path == path


def test_who_writes_true_for_an_output_is_told_what_to_write() -> None:
    reason = refusal(manifest("Calculator", "1.0.0", {"output": True})).reason
    assert "{} for anything" in reason
    assert "null for no output" in reason


@pytest.mark.parametrize(
    "endpoint",
    [
        "ftp://a/",
        "a",
        "http://",
        "http://user:pass@a/",
        "http://a/#x",
        "http://a b/",
        "http://a/\r\nX: y",
        "http://a:99999/",
        "file:///etc/passwd",
    ],
)
def test_an_endpoint_is_a_plain_http_address(endpoint: str) -> None:
    change = {"runtime": {"type": "http", "endpoint": endpoint}}
    assert refusal(manifest("Calculator", "1.0.0", change)).path == "spec.tools[0].runtime.endpoint"


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({}, "apiVersion"),
        (manifest() | {"apiVersion": "v2"}, "apiVersion"),
        (manifest() | {"kind": "Policy"}, "kind"),
        (manifest() | {"extra": 1}, "extra"),
        (manifest() | {"spec": {"tools": []}}, "spec.tools"),
        (manifest() | {"spec": {"tools": [5]}}, "spec.tools[0]"),
        (manifest("Calculator", "1.0"), "metadata.version"),
        (manifest("Calculator", "1.0.0-rc"), "metadata.version"),
        (manifest("Calculator", "01.0.0"), "metadata.version"),
        (manifest("9Lives", "1.0.0"), "metadata.name"),
        (manifest("Calculator", "1.0.0", {"name": "Add"}, {"name": "ADD"}), "spec.tools[1].name"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_document_that_is_no_manifest_is_refused(document: Any, path: str) -> None:
    assert refusal(document).path == path


def test_the_longest_durations_are_read_back_as_they_are_kept() -> None:
    longest = {"type": "session", "timeout": "1h", "retry": {"backoff": "86399999ms", "maxBackoff": "24h"}}
    parsed = parse(manifest("Calculator", "1.0.0", {"runtime": longest}))
    assert parse(parsed.document()) == parsed
    assert parsed.tools[0].runtime["retry"]["maxBackoff"] == "86400s"


def test_each_runtime_type_takes_what_it_needs() -> None:
    runtimes = [
        {"type": "http", "endpoint": "https://a.example/x?y=1"},
        {"type": "external", "endpoint": "http://127.0.0.1:8080/"},
        {"type": "webhook-callback", "endpoint": "https://a.example/"},
        {"type": "grpc", "endpoint": "grpcs://a.example:443"},
        {"type": "grpc", "endpoint": "[::1]:50051"},
        {"type": "mcp", "endpoint": "https://a.example/mcp", "tool": "upstream_name"},
        {"type": "container", "image": f"reg.example/a/b@sha256:{'0' * 64}", "command": ["x"], "cpus": 0.5},
        {"type": "session"},
    ]
    tools = [tool(f"Tool{number}", runtime=runtime) for number, runtime in enumerate(runtimes)]
    parsed = parse(manifest("Everything", "1.0.0", *tools))
    assert parse(parsed.document()) == parsed
