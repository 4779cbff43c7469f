"""--submit, --status and --merge with a real Slurm: two nodes on this machine."""

import json
import pathlib
import subprocess
import sys

import pytest
from run_program import PROGRAM, ROOT, every_sample_once, rows, run, wait_for
from slurm import Cluster, NoSlurmError

sys.path.insert(0, str(ROOT / "tests" / "crash"))
import invariants

# A launch of a point takes a third of a second, whatever the machine.
SPEC = """
name: cluster
versions: [cpu_sequential, cpu_openmp]
baseline: cpu_sequential
axes: {n: [1000, 2000, 3000, 4000], k: [3], dim: [2], threads: [1]}
solve: {iterations: 3}
measure: {repetitions: 3, max_seconds: 0.3, max_noise: 1e-9, launches: 2}
"""
POINTS, LAUNCHES = 8, 2


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    try:
        cluster = Cluster(tmp_path_factory.mktemp("slurm"))
    except NoSlurmError as error:
        pytest.skip(str(error))
    yield cluster
    cluster.stop()


@pytest.fixture
def sweep(cluster, tmp_path):
    spec, head = tmp_path / "cluster.yaml", tmp_path / "head"
    spec.write_text(SPEC)
    head.write_text("# of this cluster\n#SBATCH --array=1-2 --partition=all\n")
    return Sweep(cluster, spec, head, tmp_path / "parts")


class Sweep:
    def __init__(self, cluster, spec, head, out):
        self.cluster, self.spec, self.head, self.out, self.job = cluster, spec, head, out, None

    def run(self, *arguments, **variables):
        result = run(*arguments, env=self.cluster.environment | variables)
        assert result.returncode == 0, result.stdout + result.stderr
        return result

    def submit(self, **variables):
        where = ("--sbatch", self.head, "--out", self.out)
        told = self.run(self.spec, "--submit", "slurm", *where, "--json", **variables)
        answer = json.loads(told.stdout)
        assert (answer["parts"], answer["results"]) == (2, str(self.out))
        self.job = answer["job"]

    def status(self):
        return json.loads(self.run("--status", self.out, "--json").stdout)

    def queued(self):
        listed = self.cluster.ask("squeue", "--noheader", "--array", "--jobs", self.job)
        return listed.stdout.strip()

    def part_on(self, node):
        """The part that runs on a node and has finished a point there."""
        found = []

        def begun():
            for part in sorted(self.out.glob("part-[0-9]")):
                there = invariants.rows(part, "measurements.jsonl")
                if invariants.kept(part) and {row["node"] for row in there} == {node}:
                    found.append(part)
            return bool(found)

        wait_for(begun)
        return found[0]

    def wait(self):
        wait_for(lambda: not self.queued())

    def whole(self, before=None):
        """Everything is there, once."""
        after = self.status()
        assert after["left"] == [], self.logs()
        assert [part["left"] for part in after["parts"]] == [0, 0]
        assert [part["shard"] for part in after["parts"]] == ["1/2", "2/2"]
        merged = self.out / "all"
        self.run("--merge", self.out, "--out", merged)
        every_sample_once(merged, POINTS, LAUNCHES, 3)
        planned = json.loads(run(self.spec, "--dry-run", "--json").stdout)
        assert {row["point"] for row in rows(merged)} == {each["point"] for each in planned}
        now = invariants.kept(merged)
        for sample, solve_ms in (before or {}).items():
            assert now.get(sample) == solve_ms, f"{sample} was taken again"
        return merged

    def logs(self):
        return "\n".join(log.read_text() for log in sorted(self.out.glob("part-*.log")))


def whole_points(part):
    """The samples of the points whose every launch is finished."""
    kept = invariants.kept(part)
    launches = {}
    for point, launch, _ in kept:
        launches.setdefault(point, set()).add(launch)
    return {key: ms for key, ms in kept.items() if len(launches[key[0]]) == LAUNCHES}


def test_two_nodes_make_the_points_of_one_run(sweep):
    sweep.submit()
    refused = run(
        sweep.spec, "--submit", "slurm", "--out", sweep.out, env=sweep.cluster.environment
    )
    assert refused.returncode == 2
    assert "is not empty" in refused.stderr
    sweep.part_on("n1")
    during = sweep.status()
    assert during["left"] == ["1", "2"]
    assert "RUNNING" in [part["queue"] for part in during["parts"]]
    sweep.wait()
    merged = sweep.whole()
    assert {row["node"] for row in rows(merged)} == {"n1", "n2"}
    shown = sweep.run("--status", sweep.out).stdout
    assert "every part is done; join them with" in shown
    summary = (merged / "summary.md").read_text()
    assert summary.count("×") == POINTS
    assert "but the baseline on" not in summary
    assert sweep.run("--resume", merged).stdout.splitlines()[-1] == f"results: {merged}"


def test_a_node_dies_in_the_middle(sweep):
    cluster = sweep.cluster
    sweep.submit()
    part = sweep.part_on("n2")
    cluster.kill_node("n2")
    before = whole_points(part)
    began = {row["point"] for row in rows_so_far(part)}
    down = cluster.ask("scontrol", "update", "NodeName=n2", "State=DOWN", "Reason=killed")
    assert down.returncode == 0, down.stderr
    try:
        sweep.wait()
        merged = sweep.whole(before)
        nodes = {}
        for row in rows(merged):
            nodes.setdefault(row["point"], set()).add(row["node"])
        assert all(len(places) == 1 for places in nodes.values()), "a point has two machines"
        # What n2 had not finished, n1 did.
        mine = {row["point"] for row in rows(part)}
        assert {"n1"} in [nodes[point] for point in mine]
        assert began <= mine
    finally:
        cluster.start_node("n2")
        cluster.ask("scontrol", "update", "NodeName=n2", "State=RESUME")
        wait_for(lambda: cluster.states().get("n2") == "idle")


def rows_so_far(directory):
    return invariants.rows(directory, "measurements.jsonl")


def test_a_task_is_preempted(sweep):
    sweep.submit()
    part = sweep.part_on("n1")
    urgent = ("--partition=urgent", "--nodelist=n1", "--output=/dev/null", "--wrap=sleep 1")
    asked = sweep.cluster.ask("sbatch", *urgent)
    assert asked.returncode == 0, asked.stderr
    wait_for(lambda: "DUE TO PREEMPTION" in sweep.logs())
    before = whole_points(part)
    sweep.wait()
    sweep.whole(before)


def test_ranks_stay_on_the_node_of_the_program(cluster, tmp_path):
    """In a job of two nodes, mpirun would deal them to both."""
    spec, job, log = tmp_path / "ranks.yaml", tmp_path / "job.sh", tmp_path / "log"
    spec.write_text("""
name: ranks
versions: [cpu_mpi]
axes: {n: [1000], k: [3], dim: [2], processes: [2]}
measure: {repetitions: 1, max_seconds: 0.1}
""")
    out = tmp_path / "out"
    job.write_text(f"#!/bin/sh\nexec '{PROGRAM}' '{spec}' --out '{out}'\n")
    told = cluster.ask("sbatch", "--parsable", "--nodes=2", f"--output={log}", job)
    assert told.returncode == 0, told.stderr
    number = told.stdout.strip()
    wait_for(lambda: not cluster.ask("squeue", "--noheader", "--jobs", number).stdout.strip())
    if "without MPI" in log.read_text() or "mpirun is not on PATH" in log.read_text():
        pytest.skip(log.read_text())
    assert {row["status"] for row in rows(out)} == {"ok"}, log.read_text()


def test_the_disk_is_full_for_a_while(sweep):
    sweep.out.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "lloydbench", sweep.out],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted: {mounted.stderr.strip()}")
    try:
        sweep.submit()
        sweep.part_on("n1")
        with pytest.raises(OSError, match="No space left"):
            fill(sweep.out / "ballast")
        sweep.wait()
        left = sweep.status()["left"]
        assert left, "the disk was not full in time"
        before = {}
        for index in left:
            before |= whole_points(sweep.out / f"part-{index}")
        (sweep.out / "ballast").unlink()
        shown = sweep.run("--status", sweep.out).stdout
        command = shown.splitlines()[-1].split("go on with: ")[1].split()
        assert command[1] == f"--array={','.join(left)}"
        again = sweep.cluster.ask(*command[:1], "--parsable", *command[1:])
        assert again.returncode == 0, again.stderr
        sweep.job = again.stdout.strip()
        sweep.wait()
        sweep.whole(before)
    finally:
        subprocess.run(["umount", "--lazy", sweep.out], check=False)


def fill(ballast):
    with ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def test_the_status_says_that_slurm_stopped_a_part(sweep):
    sweep.submit()
    sweep.part_on("n1")
    cancelled = sweep.cluster.ask("scancel", sweep.job)
    assert cancelled.returncode == 0, cancelled.stderr
    sweep.wait()
    said = [part["said"] or "" for part in sweep.status()["parts"]]
    assert any(line.startswith("slurmstepd") and "CANCELLED" in line for line in said), said


def test_the_status_knows_the_jobs_that_its_advice_started(sweep):
    """Otherwise it would advise to start the parts once more."""
    cluster = sweep.cluster
    sweep.submit()
    cluster.ask("scancel", sweep.job)
    sweep.wait()

    def last_line():
        return sweep.run("--status", sweep.out).stdout.splitlines()[-1]

    job = sweep.out / "job.sh"
    advice = f"go on with: sbatch --array=1,2 {job}"
    assert last_line() == f"none of them is queued; {advice}"
    other = sweep.out.parent / "job.sh"
    other.write_text("#!/bin/sh\n")
    jobs = []

    def sbatch(*arguments):
        told = cluster.ask("sbatch", "--parsable", "--hold", *map(str, arguments), cwd=sweep.out)
        assert told.returncode == 0, told.stderr
        jobs.append(told.stdout.strip())

    try:
        sbatch("--array=1,2", other)
        assert last_line() == f"none of them is queued; {advice}"
        sbatch("--array=1", job)
        assert last_line() == f"not queued: 2; go on with: sbatch --array=2 {job}"
        sbatch("--array=2", "./job.sh")  # as it may be typed in the folder
        assert "go on with" not in last_line()
        assert [part["queue"] for part in sweep.status()["parts"]] == ["PENDING", "PENDING"]
    finally:
        cluster.ask("scancel", *jobs)


def test_a_variable_of_the_user_does_not_leave_parts_out(sweep):
    """sbatch prefers its variables to the lines of a script."""
    held = sweep.cluster.ask("scontrol", "update", "PartitionName=all", "State=DOWN")
    assert held.returncode == 0, held.stderr
    try:
        sweep.submit(SBATCH_ARRAY_INX="1")
        assert [part["queue"] for part in sweep.status()["parts"]] == ["PENDING", "PENDING"]
    finally:
        sweep.cluster.ask("scancel", sweep.job)
        sweep.cluster.ask("scontrol", "update", "PartitionName=all", "State=UP")


def submit_and_change(sweep, change):
    """Changes something after the submission, but before a task runs. Returns the status."""
    held = sweep.cluster.ask("scontrol", "update", "PartitionName=all", "State=DOWN")
    assert held.returncode == 0, held.stderr
    sweep.submit()
    change()
    sweep.cluster.ask("scontrol", "update", "PartitionName=all", "State=UP")
    sweep.wait()
    status = sweep.status()
    assert status["left"] == ["1", "2"]
    return status


def test_a_spec_that_the_node_does_not_see_is_not_edited(sweep):
    for part in submit_and_change(sweep, sweep.spec.unlink)["parts"]:
        assert f"{sweep.spec}: cannot be read on " in part["said"]


def test_an_edited_spec_is_not_run(sweep):
    """Parts of two specs could not be merged."""
    for part in submit_and_change(sweep, lambda: sweep.spec.write_text(SPEC + "# x\n"))["parts"]:
        assert "was edited after the sweep was submitted" in part["said"]
    shown = sweep.run("--status", sweep.out).stdout
    assert "the log of 2/2 says: " in shown
    assert "none of them is queued" in shown


def test_the_job_is_a_script_that_bash_and_people_read(sweep):
    """Paths and options with blanks, quotes and percent signs arrive as they were typed."""
    odd = sweep.out.parent / "it's 100% mine"
    odd.mkdir()
    spec = odd / "a b.yaml"
    spec.write_text(SPEC)
    submitted = run(
        spec,
        "--submit",
        "slurm",
        "--out",
        odd / "out",
        "--filter",
        "n:1000|'x' y",
        "--no-shuffle",
        "--repetitions",
        "4",
        "--quiet",
        env=sweep.cluster.environment,
    )
    assert submitted.returncode == 0, submitted.stderr
    script = (odd / "out" / "job.sh").read_text()
    assert f'#SBATCH --output="{str(odd).replace("%", "%%")}/out/part-%a.log"' in script
    assert "#SBATCH --array=1-1\n" in script
    assert " --filter 'n:1000|" in script
    assert " --no-shuffle" in script
    assert "--quiet" not in script
    job = json.loads((odd / "out" / "submit.json").read_text())["job"]
    wait_for(lambda: not sweep.cluster.ask("squeue", "--noheader", "--jobs", job).stdout.strip())
    plan = json.loads((odd / "out" / "part-1" / "plan.json").read_text())
    assert plan["overrides"]["filter"] == "n:1000|'x' y"
    assert plan["overrides"]["shuffle"] is False
    assert (odd / "out" / "part-1.log").exists()
    assert pathlib.Path(PROGRAM).name in script
