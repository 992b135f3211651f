"""manage.py serve_grpc: Tool Contract v1 over gRPC, for clients that know Placet as one of their tools."""

import asyncio
import signal
import socket
import ssl
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from execution.grpc import METHOD, crowd
from execution.grpc.service import ToolService, server
from registry.loopback import is_loopback

PORT = 50051
GRACE = 10.0  # seconds for what is under way when the server is told to stop


class Command(BaseCommand):
    help = (
        f"Serve Tool Contract v1 over gRPC ({METHOD}, application/grpc+json). Callers send their key as the metadata "
        "'authorization: Bearer …' or 'oxp-api-key'. With a certificate, TLS 1.2 or later is spoken."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="the address to listen at (127.0.0.1)")
        parser.add_argument("--port", type=int, default=PORT, help=f"0 takes any that is free ({PORT})")
        parser.add_argument("--tls-cert", metavar="FILE", help="the certificate and its chain, PEM")
        parser.add_argument("--tls-key", metavar="FILE", help="its key, if it is not in the same file")
        parser.add_argument("--threads", type=int, default=16, help="how many calls are waited for at once (16)")
        parser.add_argument(
            "--connections",
            type=int,
            default=crowd.MOST,
            help=f"how many may be connected at once; the idlest makes room for the next ({crowd.MOST})",
        )
        parser.add_argument(
            "--plaintext", action="store_true", help="no TLS although others than this machine can connect"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not 1 <= options["threads"] <= 1000:
            raise CommandError("--threads must be between 1 and 1000")
        if not 1 <= options["connections"] <= 10_000:
            raise CommandError("--connections must be between 1 and 10000")
        if not 0 <= options["port"] <= 65_535:
            raise CommandError("--port must be between 0 and 65535")
        if settings.PLACET_ANONYMOUS_AGENT and not is_loopback(options["host"]):
            raise CommandError("PLACET_ANONYMOUS_AGENT lets anyone call, so --host must be a loopback address")
        context = _context(options)
        with _listener(options["host"], options["port"]) as listener:
            asyncio.run(self._serve(listener, context, options["threads"], options["connections"]))

    async def _serve(
        self, listener: socket.socket, context: ssl.SSLContext | None, threads: int, connections: int
    ) -> None:
        service = ToolService(threads)
        serving, stop, loop = server(service, connections), asyncio.Event(), asyncio.get_running_loop()
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(name, stop.set)
        await serving.start(sock=listener, ssl=context)
        host, port = listener.getsockname()[:2]
        self.stdout.write(f"gRPC at {host} port {port}, {'TLS' if context else 'plaintext'}")
        self.stdout.flush()
        try:
            await stop.wait()
            await service.drained(GRACE)
        finally:
            serving.close()
            await serving.wait_closed()
            await asyncio.to_thread(service.close)


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise CommandError(f"Cannot listen at {host} port {port}: {error.strerror}") from error


def _context(options: dict[str, Any]) -> ssl.SSLContext | None:
    """TLS as asked for; without it only this machine may be spoken to, unless that is said outright."""
    if options["tls_cert"] is None:
        if options["tls_key"] is not None:
            raise CommandError("--tls-key needs --tls-cert")
        if not options["plaintext"] and not is_loopback(options["host"]):
            raise CommandError("Keys would travel in the clear: give --tls-cert, or say --plaintext outright")
        return None
    if options["plaintext"]:
        raise CommandError("--plaintext and --tls-cert exclude each other")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2"])
    try:
        context.load_cert_chain(options["tls_cert"], options["tls_key"])
    except (OSError, ssl.SSLError) as error:
        raise CommandError(f"The certificate or its key cannot be used: {error.strerror or error}") from error
    return context
