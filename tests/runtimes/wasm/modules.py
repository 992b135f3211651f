"""Small WebAssembly modules, written as text or byte by byte."""

import json

import wasmtime

WASI = {
    "fd_read": "i32 i32 i32 i32",
    "fd_write": "i32 i32 i32 i32",
    "fd_prestat_get": "i32 i32",
    "path_open": "i32 i32 i32 i32 i32 i64 i64 i32 i32",
    "sock_accept": "i32 i32 i32",
    "environ_sizes_get": "i32 i32",
    "args_sizes_get": "i32 i32",
}


def text(*fields: str) -> bytes:
    """A module of these fields."""
    return bytes(wasmtime.wat2wasm(f"(module {' '.join(fields)})"))


def wasi(*names: str) -> str:
    """Imports of WASI functions that answer with an error number."""
    return " ".join(
        f'(import "wasi_snapshot_preview1" "{name}" (func ${name} (param {WASI[name]}) (result i32)))' for name in names
    )


def says(words: str | bytes, then: str = "", *, also: str = "") -> bytes:
    """A module that writes these words and then does one thing more."""
    said = words.encode() if isinstance(words, str) else words
    data = "".join(f"\\{byte:02x}" for byte in said)
    return text(
        wasi("fd_write"),
        also,
        '(memory (export "memory") 2)',
        f'(data (i32.const 64) "{data}")',
        '(func (export "run")',
        f"(i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const {len(said)}))",
        "(drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))",
        f"{then})",
    )


def replies(**fields: object) -> bytes:
    """A module with this reply."""
    return says(json.dumps({"contract_version": "v1", **fields}))


def probe(imports: tuple[str, ...], call: str) -> bytes:
    """A module whose output is ten more than the number that an expression gives."""
    return text(
        wasi("fd_write", *imports),
        '(memory (export "memory") 1)',
        r'(data (i32.const 64) "{\"contract_version\":\"v1\",\"status\":\"ok\",\"output\":00}")',
        '(func (export "run") (local $n i32)',
        f"(local.set $n {call})",
        # Ten more than the number, so that the two digits never begin with a zero, which would not be JSON.
        "(i32.store8 (i32.const 112) (i32.add (i32.const 49) (i32.div_u (local.get $n) (i32.const 10))))",
        "(i32.store8 (i32.const 113) (i32.add (i32.const 48) (i32.rem_u (local.get $n) (i32.const 10))))",
        "(i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const 51))",
        "(drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))",
    )


def number(value: int) -> bytes:
    """A whole number as the binary format writes it: seven bits a byte, the lowest first."""
    out = bytearray()
    while True:
        value, low = value >> 7, value & 127
        out.append(low | (128 if value else 0))
        if not value:
            return bytes(out)


def section(kind: int, count: int, content: bytes) -> bytes:
    body = number(count) + content
    return bytes([kind]) + number(len(body)) + body


HEAD = b"\0asm\1\0\0\0"
NULLARY = section(1, 1, b"\x60\0\0")  # the type of functions from nothing to nothing


def many_imports(count: int) -> bytes:
    """A module that wants the same nameless function over and over."""
    return HEAD + NULLARY + section(2, count, b"\0\0\0\0" * count)


def slow_to_compile(instructions: int) -> bytes:
    """One function with very many blocks, which costs a compiler dearly and an engine nothing."""
    body = b"\0" + b"\x41\x01\x04\x40\x0b" * instructions + b"\x0b"  # no locals; (if (i32.const 1)) again and again
    code = section(10, 1, number(len(body)) + body)
    return HEAD + NULLARY + section(3, 1, b"\0") + section(7, 1, b"\x03run\0\0") + code
