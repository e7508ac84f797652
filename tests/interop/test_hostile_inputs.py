"""Inputs that say much in few bytes: each is refused, or read, in memory that its size bounds."""

from __future__ import annotations

import gzip
import json
import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from duolog.agents.external.json_rpc import read_message
from duolog.agents.external.lines import read_reply
from duolog.engine.errors import InvalidInput, TooLarge
from duolog.interop.acp.connection import Connection, Opening
from duolog.interop.acp.session import AgentSession
from duolog.interop.acp.wire import EDITOR
from duolog.interop.importers import json_files
from duolog.interop.importers.inspect_logs import InspectImporter
from duolog.interop.importers.preview import preview_foreign
from duolog.interop.importers.protocol import Foreign, Reading
from duolog.interop.importers.registry import find_importer
from measured import measure

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the system tells the peak of a process"),
]

MIB = 2**20
HEADER = json.dumps({"eval": {"task": "t", "model": "m", "run_id": "r"}, "version": 2})
PROTOBUF, JSON = "application/x-protobuf", "application/json"


def field(tag: int, data: bytes) -> bytes:
    """A field of a protobuf message that has a length."""
    size, written = len(data), bytearray([tag])
    while size > 127:
        written.append(size & 127 | 128)
        size >>= 7
    return bytes([*written, size]) + data


def spans(count: int) -> bytes:
    """A request with spans that are empty."""
    return field(0x0A, field(0x12, b"\x12\x00" * count))


def attributes(count: int) -> bytes:
    """A request with one span, whose attributes are empty."""
    named = field(0x0A, b"a" * 16) + field(0x12, b"b" * 8)
    return field(0x0A, field(0x12, field(0x12, named + b"\x4a\x00" * count)))


def nested(levels: int, beside: int) -> bytes:
    """A request with one attribute that nests, next to empty values."""
    value = b"\x0a\x00" * beside
    for _ in range(levels):
        value = field(0x2A, field(0x0A, value))
    named = field(0x0A, b"a" * 16) + field(0x12, b"b" * 8)
    return field(0x0A, field(0x12, field(0x12, named + field(0x4A, field(0x12, value)))))


def objects(count: int) -> bytes:
    """A request in JSON with spans that are empty."""
    held = b"{}," * (count - 1) + b"{}"
    return b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + held + b"]}]}]}"


REQUESTS: dict[str, tuple[Callable[[], bytes], str, bool, str]] = {
    "packed spans": (lambda: spans(8_000_000), PROTOBUF, True, "413: .* become"),
    "packed attributes": (lambda: attributes(8_000_000), PROTOBUF, True, "413: .* become"),
    "spans": (lambda: spans(8_000_000), PROTOBUF, False, "413: .*more than 1,048,576 values"),
    "attributes": (lambda: attributes(8_000_000), PROTOBUF, False, "413: .*1,048,576 values"),
    "levels": (lambda: nested(60, 4_000_000), PROTOBUF, False, "413: .*deeper than 100 levels"),
    "objects": (lambda: objects(5_000_000), JSON, False, "413: .*more than 1,048,576 values"),
    "as many spans as may be": (lambda: spans(1_000_000), PROTOBUF, False, "0 spans, 1000000 rej"),
    "as many objects as may be": (lambda: objects(520_000), JSON, False, "0 spans, 520000 rej"),
    "text with commas": (
        lambda: b'{"resourceSpans":[],"x":"' + b",{[" * 5_000_000 + b'"}',
        JSON,
        False,
        "0 spans, 0 rejected",
    ),
}


@pytest.mark.parametrize("case", REQUESTS)
def test_a_request_to_export_traces_takes_memory_by_its_size(case: str, tmp_path: Path) -> None:
    make, media, packed, said = REQUESTS[case]
    source = tmp_path / "body"
    source.write_bytes(gzip.compress(make(), 1) if packed else make())
    found = measure("traces", source, media, *(["gzip"] if packed else []))
    assert re.match(said, found.said), found.said
    assert found.grew < 3 * source.stat().st_size + 256 * MIB


def archive(path: Path, *samples: bytes, packed: bool = True) -> Path:
    """A log of Inspect whose samples are written as they are."""
    method = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", method, compresslevel=1) as file:
        file.writestr("header.json", HEADER)
        for number, data in enumerate(samples, start=1):
            file.writestr(f"samples/{number}_epoch_1.json", data)
    return path


def sample(inside: bytes) -> bytes:
    return b'{"id":1,"epoch":1,"messages":[],"metadata":{"a":' + inside + b"}}"


def lying(path: Path) -> Path:
    """An archive whose directory says less than a member becomes."""
    archive(path, sample(b'"' + b"a" * 200_000_000 + b'"'))
    data = bytearray(path.read_bytes())
    place = data.rindex(b"PK\x01\x02")
    data[place + 24 : place + 28] = (1000).to_bytes(4, "little")
    path.write_bytes(data)
    return path


def sharing(path: Path) -> Path:
    """An archive whose members lie in the same place."""
    archive(path, sample(b'"' + b"ab" * 400_000 + b'"'))
    with zipfile.ZipFile(path, "a") as file:
        info = file.getinfo("samples/1_epoch_1.json")
        for number in range(2, 2000):
            other = zipfile.ZipInfo(f"samples/{number}_epoch_1.json")
            for name in ("header_offset", "compress_size", "file_size", "CRC", "compress_type"):
                setattr(other, name, getattr(info, name))
            file.filelist.append(other)
        file._didModify = True  # type: ignore[attr-defined]  # else its directory is not written
    return path


def empty_objects(count: int) -> bytes:
    return b"[" + b"{}," * (count - 1) + b"{}]"


ARCHIVES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "objects": (lambda path: archive(path, sample(empty_objects(10_000_000))), "TooLarge|.*become"),
    "one long sample": (lambda path: archive(path, b'{"id":"' + b"a" * 300_000_000 + b'"}'), ""),
    "objects that are stored": (
        lambda path: archive(path, sample(empty_objects(8_000_000)), packed=False),
        "0 sessions, 1 diagnostics",
    ),
    "less than it becomes": (lying, "0 sessions, 1 diagnostics"),
    "many in one place": (sharing, "InvalidInput: .* become"),
    "as many objects as may be": (
        lambda path: archive(path, sample(empty_objects(2_000_000)), packed=False),
        "1 sessions, 0 diagnostics",
    ),
}


@pytest.mark.parametrize("case", ARCHIVES)
def test_an_archive_takes_memory_by_its_size(case: str, tmp_path: Path) -> None:
    make, said = ARCHIVES[case]
    source = make(tmp_path / "x.eval")
    found = measure("import", source, "inspect")
    assert re.match(said, found.said), found.said
    assert found.grew < 10 * source.stat().st_size + 300 * MIB


def test_each_member_of_an_archive_is_decompressed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    own = zipfile.ZipFile.open

    def counted(self: zipfile.ZipFile, name: zipfile.ZipInfo | str, *rest: str) -> object:
        opened.append(name if isinstance(name, str) else name.filename)
        return own(self, name, *rest)  # type: ignore[arg-type]

    samples = [json.dumps({"id": number, "input": "hi"}).encode() for number in (2, 1, 10)]
    source = archive(tmp_path / "x.eval", *samples)
    monkeypatch.setattr(zipfile.ZipFile, "open", counted)
    found = list(InspectImporter().read(source, Reading()))
    assert len({one.session for one in found if isinstance(one, Foreign)}) == 3
    assert sorted(opened) == ["header.json", *(f"samples/{n}_epoch_1.json" for n in (1, 2, 3))]


FILES: dict[str, tuple[Callable[[], bytes], str, str]] = {
    "lines that are nothing": (lambda: b"{}\n" * 1_000_000, "chat", ".*does not read as chat"),
    "elements that are nothing": (
        lambda: empty_objects(2_000_000),
        "otlp",
        "InvalidInput: .*does not read as otlp",
    ),
    "one object of objects": (
        lambda: b'{"messages":[' + empty_objects(2_700_000) + b"]}",
        "chat",
        "0 sessions, 1 diagnostics",
    ),
    "members without end": (
        lambda: b'{"info":{' + b",".join(b'"%d":1' % n for n in range(1_000_000)) + b"}}",
        "swe-agent",
        "",
    ),
    "a line without end": (
        lambda: b'{"type":"user","x":"' + b"a" * 300_000_000,
        "claude-code",
        ".*bytes",
    ),
    "objects in a text": (
        lambda: json.dumps(
            [{"conversations": [{"from": "gpt", "value": empty_objects(2_700_000).decode()}]}]
        ).encode(),
        "sharegpt",
        "",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_a_file_takes_memory_by_its_size(case: str, tmp_path: Path) -> None:
    make, format, said = FILES[case]
    source = tmp_path / "x.json"
    source.write_bytes(make())
    found = measure("import", source, format)
    assert re.match(said, found.said), found.said
    assert found.grew < 8 * source.stat().st_size + 150 * MIB, found


@pytest.mark.parametrize("format", ["ag-ui", "chat", "langfuse", "openhands"])
def test_what_is_held_as_a_whole_has_a_number_of_parts(
    format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_files, "_HELD", 10)
    source = tmp_path / "x.jsonl"
    source.write_bytes(b"{}\n" * 10)
    preview_foreign(source, find_importer(format), Reading())
    source.write_bytes(b"{}\n" * 11)
    with pytest.raises(InvalidInput, match="has more than 10 messages, events or traces"):
        preview_foreign(source, find_importer(format), Reading())


def test_json_lines_take_memory_by_their_size(tmp_path: Path) -> None:
    source = tmp_path / "x.jsonl"
    line = {"session": "s", "stream": "trace", "version": 1, "kind": "Odd", "schema": 1, "time": 0}
    line |= {"actor": "a", "role": "human", "position": 1}
    begin = json.dumps(line).encode()[:-1] + b',"body":'
    held = b'{"kind":"Odd","x":' + empty_objects(4_000_000) + b"}"
    source.write_bytes(begin + held + b"}\n" + begin + b'"' + b"a" * 140_000_000)
    found = measure("lines", source)
    assert found.grew < 8 * source.stat().st_size + 100 * MIB
    assert found.said == "TooLarge: a line has more than 134,217,728 bytes"


def test_a_message_of_another_program_has_a_number_of_values() -> None:
    held = empty_objects(1_100_000)
    reply = b'{"actions":[{"name":"a","arguments":{"x":' + held + b"}}]}"
    with pytest.raises(TooLarge, match="more than 1,048,576 values"):
        read_reply(reply.decode())
    with pytest.raises(InvalidInput, match="too much: it has more than 1,048,576 values"):
        read_message(b'{"jsonrpc":"2.0","params":' + held + b"}")
    connection = Connection(Muted())
    connection.read(EDITOR, b'{"jsonrpc":"2.0","method":"x","params":' + held + b"}", 0.0)
    assert connection.unread == 1


class Muted:
    """Begins no session."""

    def begin(self, opening: Opening) -> AgentSession:
        raise AssertionError(opening)
