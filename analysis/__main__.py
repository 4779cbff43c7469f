"""The command line: `python -m analysis COMMAND …`."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

OTHER = "; `make` sets up another: .venv/bin/python -m analysis COMMAND"

if sys.version_info < (3, 10):  # noqa: UP036 - it is what this says
    print(f"{sys.executable} is older than Python 3.10{OTHER}", file=sys.stderr)
    sys.exit(2)
try:
    from analysis.commands import say
    from analysis.model.files import RunError
    from analysis.options import parser
except ModuleNotFoundError as error:
    if (error.name or "analysis").split(".")[0] == "analysis":
        raise
    print(f"{sys.executable} does not have the package {error.name}{OTHER}", file=sys.stderr)
    sys.exit(2)


def main(arguments: list[str] | None = None, prog: str = "python -m analysis") -> int:
    """Runs one command of the program `prog`. Returns the exit status: that of the command, or 2 if
    what it was given cannot be used."""
    options = parser(prog).parse_args(arguments)
    options.unread = []
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # a path need not be UTF-8, and a terminal need not know every letter
            stream.reconfigure(errors="backslashreplace")
    try:
        status = options.command(options)
        return 2 if options.unread else status
    except RunError as error:
        for line in str(error).splitlines():
            say(line)
    except BrokenPipeError:
        # whoever read our output has enough of it (`| head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        say(f"{error.filename or 'file'}: {error.strerror}")
    return 2


if __name__ == "__main__":
    sys.exit(main())
