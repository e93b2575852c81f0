"""What computes the numbers in the pages: the programs, and closed forms that are written here a second time."""
import functools
import json
import os
import shlex
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_build = None


def use(build):
    """Programs are taken from this folder."""
    global _build
    _build = os.path.abspath(build)


@functools.lru_cache(maxsize=None)
def _output(command):
    name, *arguments = shlex.split(command)
    result = subprocess.run([os.path.join(_build, name), *arguments], cwd=ROOT, capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"build/{command}: exit status {result.returncode}\n{result.stderr}")
    return result.stdout


def run(command):
    """The object that a program prints with --json: run("05_fa2_loop_swap --bc 16")."""
    return json.loads(_output(command + " --json"))


def text(command):
    """What a program prints for a person."""
    return _output(command + " --no-color")


def form(command, name):
    """A form of a step by its name: form("07_causal_early_exit", "backward")."""
    return next(one for one in run(command)["forms"] if one["form"] == name)


def moved(costs):
    """Elements moved: reads, writes, and an atomic add as one of each."""
    return costs["traffic"]["reads"] + costs["traffic"]["writes"] + 2 * costs["traffic"]["atomics"]


def ceil_div(a, b):
    """How many tiles of b cover a."""
    return -(-a // b)
