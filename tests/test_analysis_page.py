"""analysis/README.md lists every command of the analysis and all that a claim's value may call."""

import argparse
import pathlib
import re

import pytest

from analysis.measures.expressions import NAMES
from analysis.options import parser

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = (ROOT / "analysis" / "README.md").read_text()


def commands():
    """The parser of each command."""
    actions = parser()._actions
    (found,) = [each for each in actions if isinstance(each, argparse._SubParsersAction)]
    return found.choices


def rows():
    """The first cell of each row in the table of commands: a command with its options."""
    table = re.search(r"^\| command \|.*\n\|.*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)[1]
    return re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)


def test_every_command_has_one_row():
    assert sorted(row.split()[0] for row in rows()) == sorted(commands())


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.split()[0])
def test_a_row_names_only_options_of_its_command(row):
    command = commands()[row.split()[0]]
    assert {*re.findall(r"(?<=[\s\[])--?[a-z][\w-]*", row)} <= {*command._option_string_actions}


def test_every_function_of_a_value_is_listed():
    listed = PAGE.split("\n`value` is arithmetic on ")[1].split(" of one run.")[0]
    assert sorted(re.findall(r"`(\w+)`", listed)) == sorted(NAMES)
