"""The shell completions and the man page that run_experiment prints."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest
from pseudo_terminal import PseudoTerminal

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()
PROGRAM = BUILD / "run_experiment"
PAGES = {
    "bash": "share/bash-completion/completions/run_experiment",
    "zsh": "share/zsh/site-functions/_run_experiment",
    "fish": "share/fish/vendor_completions.d/run_experiment.fish",
}


def output(*command, **options):
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=True, timeout=60, **options
    ).stdout


def offered(*words):
    lines = output(PROGRAM, "--complete", "--", *words).splitlines()
    return [line.split("\t")[0] for line in lines]


def need(program):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--pro"], ["--profile"]),
        (["--no-"], ["--no-shuffle", "--no-progress"]),
        (["x.yaml", "--dry"], ["--dry-run"]),
        (["do"], ["doctor", ":specs"]),
        (["list", ""], ["versions", "axes", "schema"]),
        (["list", "axes", ""], []),
        (["list", "axes", "--j"], ["--json"]),
        (["list", "axes", "--se"], []),
        (["doctor", ""], []),
        (["plan", "sweeps/quick"], ["sweeps/quickstart.yaml", ":specs"]),
        (["plan", "x.yaml", ""], []),
        (["--only", "cpu_seq"], ["cpu_sequential"]),
        (["--only", "cpu_eigen,cpu_seq"], ["cpu_eigen,cpu_sequential"]),
        (["--only=cpu_seq"], ["--only=cpu_sequential"]),
        (["--only", "=", "cpu_seq"], ["cpu_sequential"]),
        (["--set", "samples"], ["samples_per_thread="]),
        (["--profile", "nvtx,co"], ["nvtx,counters"]),
        (["--out", ""], [":folders"]),
        (["--completion", ""], ["bash", "zsh", "fish"]),
        (["--seed", ""], []),
        (["--seed", "1", "x.yaml", "--see"], []),
        (["--worke"], []),
        ([], None),
    ],
)
def test_what_is_offered(words, found):
    if found is None:
        assert offered(*words)[:3] == ["run", "plan", "list"]
    else:
        assert offered(*words) == found


def test_every_word_that_is_offered_for_profile_is_taken():
    words = offered("--profile", "")
    assert len(words) == 6
    for word in words:
        output(PROGRAM, "plan", "sweeps/quickstart.yaml", "--profile", word, "--json")


@pytest.mark.parametrize("shell", PAGES)
def test_the_build_has_the_script_that_the_program_prints(shell):
    script = output(PROGRAM, "--completion", shell)
    assert (BUILD / PAGES[shell]).read_text() == script
    need(shell)
    output(shell, "-n", BUILD / PAGES[shell])


@pytest.fixture
def on_path(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "run_experiment").symlink_to(PROGRAM)
    (tmp_path / "mine.yaml").touch()
    (tmp_path / "folder").mkdir()
    return {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "HISTFILE": "/dev/null",
    }


ON_TAB = [
    ("run_experiment --pro\t", "--profile "),
    ("run_experiment plan mi\t", "plan mine.yaml"),
    ("run_experiment --resume fo\t", "--resume folder/"),
    ("run_experiment --only cpu_seq\t", "--only cpu_sequential"),
    ("run_experiment --set samp\t4", "--set samples_per_thread=4"),
]


def completes_on_tab(command, start, case, **options):
    """Types the beginning of a word and a tab, and reads what the shell makes of it."""
    typed, completed = case
    shell = PseudoTerminal(command, columns=200, **options)
    # The prompt that is typed is not the prompt that is printed.
    shell.type(f"{start}; PS1='rea''dy> '\r")
    shell.read("ready> ")
    shell.forget()
    shell.type(typed)
    shell.read(completed, seconds=30)
    shell.end()


@pytest.mark.parametrize("case", ON_TAB, ids=lambda case: case[1])
def test_bash_completes_on_tab(case, on_path, tmp_path):
    need("bash")
    start = "source <(run_experiment --completion bash)"
    command = ["bash", "--norc", "-i"]
    completes_on_tab(command, start, case, cwd=tmp_path, TERM="dumb", **on_path)


@pytest.mark.parametrize("case", ON_TAB, ids=lambda case: case[1])
def test_zsh_completes_on_tab(case, on_path, tmp_path):
    need("zsh")
    start = "autoload -Uz compinit; compinit -D -u; source <(run_experiment --completion zsh)"
    completes_on_tab(["zsh", "-f", "-i"], start, case, cwd=tmp_path, TERM="dumb", **on_path)


def test_bash_completes_without_a_terminal(on_path):
    need("bash")
    words = "COMP_WORDS=(run_experiment --pro) COMP_CWORD=1; _run_experiment run_experiment"
    script = f'source "{BUILD / PAGES["bash"]}"; {words}; echo "${{COMPREPLY[@]}}"'
    assert output("bash", "-c", script, env=on_path) == "--profile\n"


def test_fish_completes(on_path, tmp_path):
    need("fish")
    for typed, completed in (
        ("--pro", "--profile"),
        ("plan mi", "mine.yaml"),
        ("--resume fo", "folder/"),
        ("--only cpu_seq", "cpu_sequential"),
        ("--set samp", "samples_per_thread="),
        ("--resume=fo", "--resume=folder/"),
    ):
        script = "run_experiment --completion fish | source; complete -C $argv[1]"
        text = output(
            "fish",
            "--no-config",
            "-c",
            script,
            f"run_experiment {typed}",
            env=on_path,
            cwd=tmp_path,
        )
        assert [line.split("\t")[0] for line in text.splitlines()] == [completed]


def test_the_man_page_names_every_option_and_is_well_formed():
    page = BUILD / "share/man/man1/run_experiment.1"
    text = page.read_text()
    assert text == output(PROGRAM, "--man")
    escaped = text.replace("\\-", "-")
    for name in offered("--"):
        assert f"\\fB{name}\\fR" in escaped, name
    if shutil.which("groff"):
        run = subprocess.run(
            ["groff", "-man", "-ww", "-z", page], capture_output=True, text=True, check=True
        )
        assert run.stderr == ""
    if shutil.which("mandoc"):
        run = subprocess.run(
            ["mandoc", "-Tlint", page], capture_output=True, text=True, check=False
        )
        # Only a tree without git has no date.
        assert [line for line in run.stdout.splitlines() if "missing date" not in line] == []
    if not (shutil.which("groff") or shutil.which("mandoc")):
        pytest.skip("neither groff nor mandoc is installed")


def test_an_installed_tree_has_the_pages(tmp_path):
    need("cmake")
    output("cmake", "--install", BUILD, "--prefix", tmp_path)
    for page in (*PAGES.values(), "share/man/man1/run_experiment.1"):
        assert (tmp_path / page).read_text() == (BUILD / page).read_text()
    listed = output(tmp_path / "bin" / "run_experiment", "--list-axes", "--json")
    assert json.loads(listed)
