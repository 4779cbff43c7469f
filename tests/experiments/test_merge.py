"""--merge: one run directory of the parts of a sweep. test_slurm.py merges what Slurm has run."""

import fcntl
import json
import re
import shlex
import shutil
import subprocess

import pytest
from run_program import PROGRAM, by_point, every_sample_once, rows, run

from analysis.measures.points import all_points
from analysis.model.load import load_run

SPEC = """
name: parts
versions: [cpu_sequential, cpu_openmp]
baseline: cpu_sequential
axes: {n: [100, 200, 300], k: [3], threads: [1]}
solve: {iterations: 5}
measure: {repetitions: 6, max_seconds: 1e-6}
"""


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    path = tmp_path_factory.mktemp("spec") / "parts.yaml"
    path.write_text(SPEC)
    return path


@pytest.fixture(scope="module")
def made(sweep, tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    for index in (1, 2):
        part = folder / f"part-{index}"
        assert run(sweep, "--shard", f"{index}/2", "--out", part).returncode == 0
    return folder


@pytest.fixture
def parts(made, tmp_path):
    shutil.copytree(made, tmp_path / "parts")
    return [tmp_path / "parts" / f"part-{index}" for index in (1, 2)]


def merge(*folders, out, status=0):
    result = run("--merge", *folders, "--out", out)
    assert result.returncode == status, result.stdout + result.stderr
    return result


def refusal(*folders, out):
    result = merge(*folders, out=out, status=2)
    assert not out.exists()
    return result.stderr


def test_the_merged_run_is_a_run(sweep, parts, tmp_path):
    out = tmp_path / "all"
    told = merge(*reversed(parts), out=out)
    assert told.stdout.splitlines()[-1] == f"results: {out}"
    every_sample_once(out, points=6, launches=1, at_least=6)
    together = {**by_point(parts[0]), **by_point(parts[1])}
    assert by_point(out) == together
    plan = json.loads((out / "plan.json").read_text())
    assert [part["shard"] for part in plan["parts"]] == ["1/2", "2/2"]
    assert [point["point"] for point in plan["points"]] == json.loads(
        (out / "spec.resolved.json").read_text()
    )["points"]
    before = rows(out)
    assert run("--resume", out).returncode == 0  # nothing is left
    assert rows(out) == before
    points = all_points([load_run(out)], "cpu_sequential")
    assert points["speedup"].notna().all()
    assert merge(tmp_path / "parts", out=tmp_path / "again").returncode == 0


def test_a_missing_part_is_named_and_can_be_run_later(parts, tmp_path):
    out = tmp_path / "all"
    told = merge(parts[1], out=out, status=130)
    assert "missing parts: 1/2" in told.stderr
    assert "points are left" in told.stderr
    told = run("--merge", parts[1], "--out", tmp_path / "again", "--json")
    assert (told.returncode, json.loads(told.stdout)["exit_status"]) == (130, 130)
    assert "points are left" in told.stderr
    assert run("--resume", out).returncode == 0
    every_sample_once(out, points=6, launches=1, at_least=6)


def test_a_part_that_is_there_twice_is_refused(parts, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(parts[0], copy)
    assert "they are the same part" in refusal(*parts, copy, out=tmp_path / "all")


def test_a_folder_that_is_named_twice_counts_once(parts, tmp_path):
    folder, link = tmp_path / "parts", tmp_path / "link"
    link.symlink_to(parts[1])
    merge(folder, parts[0], f"{folder}/./part-2", link, folder, out=tmp_path / "all")
    every_sample_once(tmp_path / "all", points=6, launches=1, at_least=6)


def test_a_part_that_is_being_written_has_to_end_first(parts, tmp_path):
    with (parts[1] / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = refusal(*parts, out=tmp_path / "all")
    assert f"{parts[1]}: is still being written; wait until it ends" in said


def test_a_part_does_not_take_the_merged_run(parts):
    for out in (parts[0], parts[0].parent / "." / "part-2"):
        said = merge(*parts, out=out, status=2).stderr
        assert f"{out}: is one of the parts; choose another --out" in said


def edit(file, change):
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def test_parts_of_two_specs_or_programs_are_refused(parts, tmp_path):
    out, plan = tmp_path / "all", parts[1] / "plan.json"
    kept = plan.read_text()
    edit(plan, lambda p: p["fingerprints"].update(binary="00"))
    said = refusal(*parts, out=out)
    assert "the binary differs" in said
    assert "(part 1/2)" in said
    assert "(part 2/2)" in said
    plan.write_text(kept)
    edit(plan, lambda p: p["fingerprints"].update(data={"other": 1}))
    assert "the data differ" in refusal(*parts, out=out)
    plan.write_text(kept)
    edit(plan, lambda p: p.update(shard="2/3"))
    assert "these are parts of two sweeps" in refusal(*parts, out=out)
    plan.write_text(kept)
    edit(parts[1] / "spec.resolved.json", lambda s: s["measure"].update(warmup=7))
    assert "the spec differs (measure/warmup: was 1, is 7)" in refusal(*parts, out=out)


@pytest.mark.parametrize("key", ["points", "parents", "fingerprints"])
def test_a_part_with_a_damaged_plan_is_named(parts, tmp_path, key):
    plan = parts[1] / "plan.json"
    edit(plan, lambda values: values.pop(key))
    told = refusal(*parts, out=tmp_path / "all")
    assert f"{plan}: is damaged" in told
    assert key in told


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"k": "five"}, "type must be number"),
        ({"precision": "fp99"}, "no precision is called 'fp99'"),
        ({"point": None}, "type must be string"),
    ],
)
def test_a_part_with_a_damaged_point_is_named(parts, tmp_path, change, what):
    plan = parts[1] / "plan.json"
    edit(plan, lambda values: values["points"][0].update(change))
    told = refusal(*parts, out=tmp_path / "all")
    assert f"{plan}: is damaged (" in told
    assert what in told
    assert "run this part again" in told


def test_what_is_no_part_is_refused(spec, parts, tmp_path):
    whole, out = tmp_path / "whole", tmp_path / "all"
    assert run(spec(name="whole"), "--out", whole).returncode == 0
    assert "is a whole run" in refusal(whole, *parts, out=out)
    (tmp_path / "empty").mkdir()
    assert "is no part of a sweep and has none in it" in refusal(tmp_path / "empty", out=out)
    assert "no such folder" in refusal(tmp_path / "nowhere", out=out)
    assert "--merge needs folders of parts" in run("--merge").stderr


def test_ratios_are_of_one_node(parts, tmp_path):
    """A part that was requeued may have its baseline on another node."""
    measured = rows(parts[0])
    moved = [
        {**row, "node": "n7"} if row["version"] == "cpu_openmp" else {**row, "node": "n3"}
        for row in measured
    ]
    (parts[0] / "measurements.jsonl").write_text("".join(json.dumps(row) + "\n" for row in moved))
    out = tmp_path / "all"
    merge(*parts, out=out)
    lines = (out / "summary.md").read_text().splitlines()
    there = {row["point"].partition("/")[2].replace("/", " ") for row in measured}
    named = [line for line in lines if "on n7, but the baseline on n3" in line]
    assert named
    for line in named:
        assert line.startswith("| cpu_openmp |")
        assert "×" not in line
        assert re.sub(r" \(.*", "", line.split("|")[2].strip()) in there
    assert sum("×" in line for line in lines) == 6 - len(named)


def test_the_status_of_parts(sweep, parts, tmp_path):
    told = json.loads(run("--status", tmp_path / "parts", "--json").stdout)
    host = rows(parts[0])[0]["host"]
    assert told["left"] == []
    assert [(part["shard"], part["nodes"]) for part in told["parts"]] == [
        ("1/2", [host]),
        ("2/2", [host]),
    ]
    assert sum(part["status"]["ok"] for part in told["parts"]) == 6
    shutil.rmtree(parts[0])
    (parts[1] / "passes.jsonl").write_text("")
    with (parts[1] / "measurements.jsonl").open("a") as file:
        file.write('{"half a ro')  # as a part that is killed leaves it
    told = json.loads(run("--status", tmp_path / "parts", "--json").stdout)
    assert told["left"] == ["1", "2"]
    assert told["parts"][0]["folder"] is None
    assert told["parts"][1]["left"] == told["parts"][1]["points"]
    shown = run("--status", tmp_path / "parts")
    assert shown.returncode == 0
    assert "2 of 2 parts are left: 1, 2" in shown.stdout
    assert told["parts"][1]["status"] == {"unfinished": told["parts"][1]["left"]}
    assert "unfinished" not in shown.stdout  # under "done"


def test_the_status_says_why_the_last_task_ended(parts, tmp_path):
    folder, log = tmp_path / "parts", tmp_path / "parts" / "part-2.log"
    (parts[1] / "passes.jsonl").write_text("")

    def said(*lines):
        log.write_text("".join(f"{line}\n" for line in lines))
        return json.loads(run("--status", folder, "--json").stdout)["parts"][1]["said"]

    begins = "job.sh: part 2/2, job 7 on n1"
    limit = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 12:00 DUE TO TIME LIMIT ***"
    summary = ["| a summary |"] * 1000 + ["results: part-2", ""]
    assert said(begins, limit, *summary) == limit
    assert said(begins, limit, *summary, begins, *summary) == "results: part-2"
    assert said(begins, limit, begins, "x.yaml: was edited") == "x.yaml: was edited"
    error = "run_experiment: part-2: cannot resume: the data differ"
    assert said(begins, limit, begins, "parts: 3 points into part-2", error, "") == error


def test_submit_says_what_is_wrong(sweep, tmp_path):
    def said(*options, lines="#SBATCH --array=1-2\n"):
        head = tmp_path / "head"
        head.write_text(lines)
        out = tmp_path / "out"
        result = run(sweep, "--submit", "slurm", "--sbatch", head, "--out", out, *options)
        assert result.returncode == 2
        return result.stderr

    assert "--array asks for 9 parts, but the sweep has 6 points" in said(lines="#SBATCH -a 1-9\n")
    assert "--array=0-3: the tasks are the parts" in said(lines="#SBATCH --array=0-3\n")
    assert "--array asks for 8 parts" in said(lines="#SBATCH -p all --array=1-8\n")
    assert "--array=: the tasks are the parts" in said(lines="#SBATCH -p all --array\n")
    assert "head:2: is not an #SBATCH line: 'module load'" in said(lines="# a\nmodule load\n")
    assert "--submit starts all parts of a sweep: leave --shard out" in said("--shard", "1/2")
    assert not (tmp_path / "out").exists()
    assert "unknown scheduler 'pbs'" in run(sweep, "--submit", "pbs").stderr
    assert "--sbatch needs --submit slurm" in run(sweep, "--sbatch", "x").stderr
    nowhere = run(sweep, "--submit", "slurm", "--sbatch", tmp_path / "nowhere")
    assert "nowhere cannot be read" in nowhere.stderr


def test_too_many_parts_are_refused_in_the_same_words_everywhere(tmp_path):
    weak, head, out = tmp_path / "weak.yaml", tmp_path / "head", tmp_path / "out"
    weak.write_text(SPEC.replace("threads: [1]", "threads: [1, 2, 3]") + "zip: [[n, threads]]\n")
    head.write_text("#SBATCH --array=1-99\n")
    points = len(json.loads(run(weak, "--dry-run", "--json").stdout))
    for options in (("--submit", "slurm", "--sbatch", head), ("--shard", "1/99")):
        result = run(weak, "--out", out, *options)
        assert result.returncode == 2
        assert f"99 parts, but the sweep has {points} points\n" in result.stderr


@pytest.mark.parametrize(
    ("head", "tasks"),
    [
        ("#SBATCH --partition=all --array=1-2\n", "1-2"),
        ("#SBATCH -p all -a 1-2%1 --time=1\n", "1-2%1"),
        ('#SBATCH --array="1-2"\n', "1-2"),
        ("#SBATCH --requeue '--array=1-2' # of three\n", "1-2"),
        ("#SBATCH --array 1-3\n#SBATCH -a1-2\n", "1-2"),
        ("#SBATCH --arr=1\\-2\n", "1-2"),
        ("# SBATCH --array=1-2\n#SBATCH --time=1 # --array=1-2\n", "1-3"),
    ],
)
def test_the_array_of_the_head_is_read_as_sbatch_reads_it(sweep, tmp_path, head, tasks):
    (tmp_path / "head").write_text(head)
    out = tmp_path / "out"
    run(
        *(sweep, "--submit", "slurm", "--sbatch", tmp_path / "head", "--out", out),
        env={"PATH": str(tmp_path)},
    )
    job = (out / "job.sh").read_text()
    asked = [line for line in job.splitlines() if line.startswith("#SBATCH")]
    assert asked[-1] == f"#SBATCH --array={tasks}"
    assert f'--shard "$SLURM_ARRAY_TASK_ID/{tasks[2]}"' in job


def test_a_folder_that_cannot_be_made_is_no_crash(sweep, tmp_path):
    (tmp_path / "file").write_text("x")
    for out in (tmp_path / "file", tmp_path / "file" / "out"):
        result = run(sweep, "--submit", "slurm", "--out", out)
        assert result.returncode == 2
        assert f"{out}: cannot make the folder (Not a directory); choose another" in result.stderr


def test_a_refused_job_leaves_nothing(sweep, tmp_path):
    sbatch, head, out = tmp_path / "sbatch", tmp_path / "head", tmp_path / "new" / "out"
    sbatch.write_text("#!/bin/sh\necho invalid partition >&2\nexit 1\n")
    sbatch.chmod(0o755)
    head.write_text("#SBATCH --partition=al\n")
    submit = (sweep, "--submit", "slurm", "--out", out)
    result = run(*submit, "--sbatch", head, env={"PATH": str(tmp_path)})
    assert result.returncode == 2
    assert result.stderr.startswith("invalid partition\n")
    assert f"sbatch failed, so nothing is kept; mend {head} and submit again" in result.stderr
    assert not out.parent.exists()
    out.mkdir(parents=True)
    result = run(*submit, env={"PATH": str(tmp_path)})
    assert "in a file, with --sbatch FILE, and submit again" in result.stderr
    assert not list(out.iterdir())
    sbatch.write_text("#!/bin/sh\necho 12\n")
    assert run(*submit, env={"PATH": str(tmp_path)}).returncode == 0
    assert json.loads((out / "submit.json").read_text())["job"] == "12"


def test_without_slurm_the_job_is_written_all_the_same(sweep, tmp_path):
    out = tmp_path / "out"
    result = run(sweep, "--submit", "slurm", "--out", out, env={"PATH": str(tmp_path)})
    assert result.returncode == 2
    assert f"there is no sbatch here; the job is written, submit it with: sbatch {out}/job.sh" in (
        result.stderr
    )
    assert "#SBATCH --array=1-3\n" in (out / "job.sh").read_text()
    shown = run("--status", out, env={"PATH": str(tmp_path)}).stdout
    assert "3 of 3 parts are left: 1, 2, 3\n" in shown
    assert f"squeue does not say what is queued; go on with: sbatch --array=1,2,3 {out}/job.sh" in (
        shown
    )


def test_the_status_does_not_wait_for_a_scheduler_that_hangs(sweep, tmp_path):
    out = tmp_path / "out"
    run(sweep, "--submit", "slurm", "--out", out, env={"PATH": str(tmp_path)})
    squeue = tmp_path / "squeue"
    squeue.write_text(f"#!/bin/sh\nprintf '1\\tRUNNING\\t{out}\\tjob.sh\\n'\nexec /bin/sleep 60\n")
    squeue.chmod(0o755)
    queries = [
        subprocess.Popen(
            [PROGRAM, "--status", out, *form],
            env={"PATH": str(tmp_path)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for form in ((), ("--json",))
    ]
    shown, told = (query.communicate(timeout=40)[0] for query in queries)
    late = "squeue did not answer within 10 s"
    assert f"{late}; go on with: sbatch --array=1,2,3 {out}/job.sh\n" in shown
    assert json.loads(told)["queue_problem"] == late
    assert [part["queue"] for part in json.loads(told)["parts"]] == [None] * 3


def test_commands_in_messages_work_for_a_path_with_blanks(sweep, parts, tmp_path):
    out = tmp_path / "it's out"
    nothing = {"PATH": str(tmp_path)}
    written = run(sweep, "--submit", "slurm", "--out", out, env=nothing).stderr
    command = ["sbatch", str(out / "job.sh")]
    assert shlex.split(written.split("submit it with: ")[1]) == command
    shown = run("--status", out, env=nothing).stdout
    assert shlex.split(shown.split("go on with: ")[1]) == [command[0], "--array=1,2,3", command[1]]
    folder = tmp_path / "all parts"
    folder.mkdir()
    for part in parts:
        part.rename(folder / part.name)
    shown = run("--status", folder).stdout
    assert shlex.split(shown.split("join them with: ")[1])[1:] == ["--merge", str(folder)]
    merged = tmp_path / "a b"
    shutil.rmtree(folder / parts[0].name)
    said = merge(folder, out=merged, status=130).stderr
    assert shlex.split(said.split("go on here with: ")[1])[1:] == ["--resume", str(merged)]
    said = run(sweep, "--out", merged).stderr
    assert shlex.split(said.split("or go on with ")[1]) == ["--resume", str(merged)]
