"""Read one HTTP/1 answer from a stream, strictly: whole and unambiguous, or not an answer (T-5).

HTTP libraries forgive: they take an end of file in the header for the header's end, a bare CR for
a line end, `+5` for a length, and a chunk of size -1 for "read on without bound". After the first
byte of a commit has left, every such kindness could turn a broken answer into a verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BufferedIOBase

from plans.exchanges import NoAnswerReason

HEAD_CAP = 64 * 1024
BODY_CAP = 1024 * 1024

_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?: [^\r\n]*)?\r\n")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n]*?)[ \t]*\r\n")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r\n")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_LENGTH = re.compile(r"[0-9]{1,18}", re.ASCII)

BODILESS = frozenset({204, 304})


class Broken(Exception):
    """What came is not one complete valid answer; `reason` is the word for `NoAnswer`."""

    def __init__(self, reason: NoAnswerReason, detail: str) -> None:
        super().__init__(detail)
        self.reason: NoAnswerReason = reason
        self.detail = detail


def read_answer(stream: BufferedIOBase, cap: int = BODY_CAP) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers (lower-case names) and body (at most `cap` bytes).

    Raises `Broken`, and whatever the stream raises (time-outs, resets).
    """
    reader = _Reader(stream, cap)
    status, headers = _read_head(reader)
    while 100 <= status < 200 and status != 101:
        status, headers = _read_head(reader)
    if status == 101:
        raise Broken("malformed", "a change of protocol that we did not ask for")
    return status, headers, _read_body(reader, status, headers)


class _Reader:
    """Bounded, complete lines without control characters, and exact lengths."""

    def __init__(self, stream: BufferedIOBase, cap: int) -> None:
        self.stream = stream
        self.cap = cap
        self.budget = HEAD_CAP
        self.begun = False

    def line(self) -> bytes:
        line = self.stream.readline(self.budget + 1)
        if not line and not self.begun:
            raise Broken("closed", "the connection was closed without an answer")
        self.begun = True
        self.budget -= len(line)
        if self.budget < 0:
            raise Broken("too-large", "more header bytes than we read")
        if not line.endswith(b"\n"):
            raise Broken("truncated", "the answer broke off in the middle of a line")
        if not line.endswith(b"\r\n") or _CONTROL.search(line, 0, len(line) - 2):
            raise Broken("malformed", "a control character in the header")
        return line

    def check_size(self, size: int) -> None:
        if size > self.cap:
            raise Broken("too-large", f"the body is larger than {self.cap // 1024} KiB")

    def exactly(self, size: int) -> bytes:
        data = self.stream.read(size)
        if len(data) < size:
            raise Broken("truncated", "the answer broke off in the middle of the body")
        return data


def _read_head(reader: _Reader) -> tuple[int, dict[str, str]]:
    match = _STATUS.fullmatch(reader.line())
    if match is None:
        raise Broken("malformed", "that is not an HTTP answer")
    headers: dict[str, str] = {}
    while (line := reader.line()) != b"\r\n":
        field = _HEADER.fullmatch(line)
        if field is None:
            raise Broken("malformed", "that is not a header")
        name, value = field[1].decode("ascii").lower(), field[2].decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return int(match[1]), headers


def _read_body(reader: _Reader, status: int, headers: dict[str, str]) -> bytes:
    if status in BODILESS:
        return b""
    length, coding = headers.get("content-length"), headers.get("transfer-encoding")
    if coding is not None:
        if length is not None or coding.lower() != "chunked":
            raise Broken("malformed", "the framing of the body is ambiguous")
        reader.budget = reader.cap
        return b"".join(_chunks(reader))
    if length is None:
        # The end of the connection is the end of the body; only its JSON can tell if it is whole.
        body = reader.stream.read(reader.cap + 1)
        reader.check_size(len(body))
        return body
    if not _LENGTH.fullmatch(length):
        raise Broken("malformed", "the length of the body is ambiguous")
    reader.check_size(int(length))
    return reader.exactly(int(length))


def _chunks(reader: _Reader) -> Iterator[bytes]:
    total = 0
    while size := _chunk_size(reader.line()):
        total += size
        reader.check_size(total)
        yield reader.exactly(size)
        if reader.exactly(2) != b"\r\n":
            raise Broken("malformed", "a chunk has no end")
    while reader.line() != b"\r\n":
        pass  # Trailers are read to their end, which proves the body whole, and mean nothing.


def _chunk_size(line: bytes) -> int:
    match = _CHUNK.fullmatch(line)
    if match is None:
        raise Broken("malformed", "that is not a chunk")
    return int(match[1], 16)
