"""An encrypted way to a test's server, whose certificate a program of the system makes."""

from __future__ import annotations

import shutil
import socket
import ssl
import struct
import subprocess
from contextlib import suppress
from pathlib import Path
from threading import Thread
from urllib.parse import quote

__all__ = ["Encrypted", "certificates", "no_certificates"]

_PROGRAM = shutil.which("openssl") or ""
# The first bytes of a client: the length of what it begins with, and a number for what it wants.
_HEAD, _TLS, _GSS = 8, 80877103, 80877104


def no_certificates() -> str:
    """Why none can be made here; empty where they can."""
    return "" if _PROGRAM else "There is no program `openssl`, which makes the certificates."


def certificates(folder: Path, name: str) -> tuple[Path, Path, Path]:
    """An authority's certificate, a server's of that name signed by it, and the server's key."""
    root, root_key = folder / "root.crt", folder / "root.key"
    certificate, key, request = folder / "server.crt", folder / "server.key", folder / "server.csr"
    extension = folder / "server.ext"
    extension.write_text(f"subjectAltName=DNS:{name}\n", encoding="ascii")
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    _run("req", "-x509", *new, "-subj", "/CN=authority", "-days", "2", "-keyout", root_key, "-out", root)
    _run("req", *new, "-subj", f"/CN={name}", "-keyout", key, "-out", request)
    signing = ["-CA", root, "-CAkey", root_key, "-CAcreateserial", "-days", "2", "-extfile", extension]
    _run("x509", "-req", "-in", request, *signing, "-out", certificate)
    return root, certificate, key


class Encrypted:
    """Takes connections on a port of this machine, and passes them on to a server decrypted.

    Without a certificate it says that it can't, as a server without TLS does. `encrypted` and `plain` count
    the connections of each sort. `close` it in the end.
    """

    def __init__(self, server: Path, certificate: Path | None = None, key: Path | None = None) -> None:
        self.encrypted = self.plain = 0
        self._server = str(server / ".s.PGSQL.5432")
        self._context: ssl.SSLContext | None = None
        if certificate is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(certificate, key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        Thread(target=self._accept, daemon=True).start()

    def url(self, database: str, *, host: str = "localhost", **how: str) -> str:
        """The address of a database by this way, with libpq's words for how to encrypt."""
        port = self._listener.getsockname()[1]
        parameters = "&".join(f"{name}={quote(value, safe='')}" for name, value in how.items())
        return f"postgresql://postgres@{host}:{port}/{database}?{parameters}"

    def close(self) -> None:
        """Let nobody in any more."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client:
            while len(head := client.recv(_HEAD, socket.MSG_WAITALL)) == _HEAD:
                (code,) = struct.unpack("!4xi", head)
                if code == _TLS and self._context is not None:
                    client.sendall(b"S")
                    self._pass_on(self._context.wrap_socket(client, server_side=True), b"")
                    return
                if code not in (_TLS, _GSS):
                    self._pass_on(client, head)
                    return
                client.sendall(b"N")

    def _pass_on(self, client: socket.socket, head: bytes) -> None:
        is_encrypted = isinstance(client, ssl.SSLSocket)
        self.encrypted += is_encrypted
        self.plain += not is_encrypted
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(self._server)
            server.sendall(head)
            back = Thread(target=_pump, args=(server, client), daemon=True)
            back.start()
            _pump(client, server)
            back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while some := source.recv(1 << 16):
            target.sendall(some)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def _run(*arguments: object) -> None:
    done = subprocess.run([_PROGRAM, *map(str, arguments)], capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
