#!/usr/bin/env python3
"""Makes what a course needs to have an assignment graded elsewhere, from its manifest.

    kits.py SLUG DIR [--variant NAME] [--seed N]

    DIR/github/.github/workflows/classroom.yml   for the template repository of GitHub Classroom: one step a task, partial credit. Laid over a
                                                 starter; it runs the starter's own checks, so it is a help for students and no grade
    DIR/gradescope/  DIR/gradescope.zip          setup.sh, run_autograder, and all that grading needs: a starter with the grading seed and the
                                                 hidden cases. To be uploaded as the autograder; never to be given to students

The exit status is 2 if there is no such assignment.
"""
import argparse
import os
import re
import shutil
import sys
import zipfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import grade  # noqa: E402
import manifest as manifests  # noqa: E402
import starter  # noqa: E402

PACKAGES = "g++ cmake make libeigen3-dev libboost-dev libboost-context-dev python3"
MINUTES = 15  # of one step of a workflow: the first one compiles everything


def step_id(task_id):
    """The id of a task's step: the reporter looks for its result in a variable of this name, in capitals."""
    return "task-" + re.sub(r"[^a-z0-9]+", "-", task_id.lower())


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def workflow(loaded):
    """The text of .github/workflows/classroom.yml."""
    steps, results = [], []
    for task in loaded.graded:
        name, at = step_id(task["id"]), task["id"]
        steps.append(f"""      - name: {quoted(f"{at} {task['title']} ({task['points']} points)")}
        id: {name}
        if: always()
        timeout-minutes: {MINUTES}
        run: |
          make --no-print-directory grade T={at} FORMAT=classroom OUT="$RUNNER_TEMP/{name}.json" || true
          echo "result=$(base64 -w0 "$RUNNER_TEMP/{name}.json")" >> "$GITHUB_OUTPUT"
""")
        results.append(f'          {name.upper()}_RESULTS: "${{{{ steps.{name}.outputs.result }}}}"\n')
    runners = ",".join(step_id(task["id"]) for task in loaded.graded)
    return f"""# {loaded.title}: one step a task. Made from the manifest of {loaded.slug} {loaded.version}.
name: Autograding Tests
on: [push, workflow_dispatch]
permissions:
  checks: write
  actions: read
  contents: read
jobs:
  run-autograding-tests:
    runs-on: ubuntu-24.04
    if: github.actor != 'github-classroom[bot]'
    steps:
      - uses: actions/checkout@v4
      - name: Packages
        run: sudo apt-get update && sudo apt-get install -y --no-install-recommends {PACKAGES}
      - name: Compile
        run: make build
        continue-on-error: true
{"".join(steps)}      - name: Points
        if: always()
        uses: classroom-resources/autograding-grading-reporter@v1
        env:
{"".join(results)}        with:
          runners: {runners}
"""


SETUP = f"""#!/usr/bin/env bash
# Gradescope runs this once, when the image of the autograder is made, in Ubuntu as root
set -euo pipefail
apt-get update
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends {PACKAGES}
here="${{AUTOGRADER:-/autograder}}/source"
# Compiles what no submission changes, so that it is not compiled for each of them
python3 "$here/assignment/grader/grade.py" --prepare "$here/assignment"
# A submission is compiled and run as another user; the numbers that it is held to are not for that user
chmod 700 "$here"
"""

RUN = """#!/usr/bin/env bash
# Gradescope runs this for each submission
set -uo pipefail
home="${AUTOGRADER:-/autograder}"
mkdir -p "$home/results"
python3 "$home/source/assignment/grader/grade.py" --prepared "$home/source/assignment" "$home/submission" --format gradescope --out "$home/results/results.json"
[ -s "$home/results/results.json" ] || printf '{"score": 0, "output": "The grader itself failed. Tell your teacher.", "output_format": "text"}\\n' > "$home/results/results.json"
"""


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


def gradescope(slug, folder, variant, seed):
    """The autograder: two scripts, and a starter with what only grading has."""
    write(os.path.join(folder, "setup.sh"), SETUP, 0o755)
    write(os.path.join(folder, "run_autograder"), RUN, 0o755)
    starter.make_starter(slug, os.path.join(folder, "assignment"), seed=seed, hidden=True, git=False, variant=variant)
    for name in ("intake.py",):
        shutil.copyfile(os.path.join(HERE, name), os.path.join(folder, "assignment", "grader", name))


def zip_folder(folder, path):
    """A zip with the files of a folder at its top, and their modes: the same files, the same zip."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, folders, names in os.walk(folder):
            folders.sort()
            for name in sorted(names):
                full = os.path.join(place, name)
                entry = zipfile.ZipInfo(os.path.relpath(full, folder), (1980, 1, 1, 0, 0, 0))
                entry.external_attr = (0o100755 if os.access(full, os.X_OK) else 0o100644) << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                with open(full, "rb") as file:
                    archive.writestr(entry, file.read())


def make_kits(slug, folder, variant=None, seed=grade.SEED):
    loaded = manifests.load(slug, variant)
    write(os.path.join(folder, "github", ".github", "workflows", "classroom.yml"), workflow(loaded))
    shutil.rmtree(os.path.join(folder, "gradescope"), ignore_errors=True)
    gradescope(slug, os.path.join(folder, "gradescope"), variant, seed)
    zip_folder(os.path.join(folder, "gradescope"), os.path.join(folder, "gradescope.zip"))


def main(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("slug")
    parser.add_argument("folder")
    parser.add_argument("--variant")
    parser.add_argument("--seed", type=int, default=grade.SEED)
    arguments = parser.parse_args(words)
    make_kits(arguments.slug, arguments.folder, arguments.variant, arguments.seed)
    print(f"{arguments.folder}/github: copy .github into the template repository, which is a starter")
    print(f"{arguments.folder}/gradescope.zip: upload it as the autograder")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (manifests.ManifestError, starter.StarterError) as fault:
        print(fault, file=sys.stderr)
        sys.exit(2)
