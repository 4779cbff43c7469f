"""Runs a program on a pseudo-terminal, as a person would."""

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time


class PseudoTerminal:
    """A program whose standard streams are a terminal of `columns` columns."""

    def __init__(self, command, columns=80, cwd=None, **variables):
        """A variable that is None is not set."""
        environment = {**os.environ, "TERM": "xterm", **variables}
        for name in ("COLUMNS", "NO_COLOR"):
            if name not in variables:
                environment.pop(name, None)
        command = [str(word) for word in command]
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            size = struct.pack("HHHH", 50, columns, 0, 0)
            fcntl.ioctl(0, termios.TIOCSWINSZ, size)
            if cwd is not None:
                os.chdir(cwd)
            os.execvpe(command[0], command, environment)
        self.forget()

    def forget(self):
        self.text = ""
        self.bytes = b""

    def read(self, until=None, seconds=60):
        """What it has printed, up to the end or until the expression `until` is found."""
        deadline = time.monotonic() + seconds
        while until is None or not re.search(until, self.text):
            left = deadline - time.monotonic()
            assert left > 0, f"no {until!r} within {seconds} s: {self.text!r}"
            if not select.select([self.descriptor], [], [], left)[0]:
                continue
            try:
                piece = os.read(self.descriptor, 65536)
            except OSError:  # the other side is closed
                piece = b""
            if not piece:
                assert until is None, f"ended without {until!r}: {self.text!r}"
                break
            self.bytes += piece
            self.text = self.bytes.decode(errors="replace").replace("\r\n", "\n")
        return self.text

    def type(self, text):
        os.write(self.descriptor, text.encode())

    def status(self):
        """Reads to the end. Its exit status."""
        self.read()
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def end(self):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.descriptor)
