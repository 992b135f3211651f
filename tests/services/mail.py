"""A mail server on loopback that keeps what it is handed, or refuses it."""

from __future__ import annotations

import email
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message


class MailServer(socketserver.ThreadingTCPServer):
    """Speaks as much SMTP as a client needs; `refuse` answers a command with an error instead."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.letters: list[tuple[list[str], Message]] = []  # who it was for, and what
        self.refuse: dict[str, str] = {}  # a command to the line that answers it

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Session(socketserver.StreamRequestHandler):
    server: MailServer
    timeout = 10

    def handle(self) -> None:
        self._say("220 loopback")
        recipients: list[str] = []
        for line in self.rfile:
            command = line.decode().strip()
            verb = command.partition(" ")[0].upper()
            if verb in self.server.refuse:
                self._say(self.server.refuse[verb])
            elif verb == "RCPT":
                recipients.append(command.partition(":")[2].strip(" <>"))
                self._say("250 ok")
            elif verb == "DATA":
                self._say("354 go on")
                self.server.letters.append((recipients, email.message_from_bytes(self._letter())))
                self._say("250 taken")
            elif verb == "QUIT":
                self._say("221 bye")
                return
            else:
                self._say("250 ok")

    def _letter(self) -> bytes:
        lines = []
        for line in self.rfile:
            if line == b".\r\n":
                break
            lines.append(line[1:] if line.startswith(b"..") else line)
        return b"".join(lines)

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


@contextmanager
def mail_server() -> Iterator[MailServer]:
    with MailServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(timeout=5)
