"""What is compiled once for all assignments. A starter on its own does without.

    flags(folder, build)   the headers of the system, half of what it takes to compile a step: for CMAKE_CXX_FLAGS of a starter
    share_objects(folder)  what several starters compile alike, where there is ccache

A compiler that does not take what was precompiled reads the headers again, and says nothing.
"""
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import build as builds  # noqa: E402

HEADERS = """#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
"""


def flags(folder, build):
    """`-include FILE` for the compiler of a build that CMake has written; "" where it would not help. folder  keeps what is precompiled"""
    try:
        with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
            commands = [builds.command_of(entry) for entry in json.load(file)]
    except OSError:
        return ""
    if any(word.endswith(".cu") or "kernel" in os.path.basename(word) for command in commands for word in command):
        return ""  # kernels have no Eigen, and flags of their own
    mine = next((command for command in commands if any(word.startswith("-DSTUDENT_") for word in command)), None)
    if not mine:
        return ""
    command, words = [], iter(mine)
    for word in words:
        if word in ("-o", "-c", "-include"):
            next(words)
        elif not word.startswith(("-I", "-DSTUDENT_")):
            command.append(word)
    version = subprocess.run([command[0], "-v"], capture_output=True, text=True).stderr
    name = hashlib.sha256("\0".join([*command, HEADERS, version]).encode()).hexdigest()[:16]
    place = os.path.join(folder, "precompiled", name)
    header = os.path.join(place, "system.hpp")
    os.makedirs(place, exist_ok=True)
    with open(os.path.join(place, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isfile(header):
            with open(header + ".new.hpp", "w", encoding="utf-8") as file:
                file.write(HEADERS)
            done = subprocess.run([*command, "-x", "c++-header", header + ".new.hpp", "-o", header + ".gch"], capture_output=True)
            if done.returncode:
                return ""
            os.rename(header + ".new.hpp", header)
    return "-include " + header


def share_objects(folder):
    """From now on CMake lets ccache compile, if it is there: for the checks, which make many starters that are nearly the same."""
    if shutil.which("ccache"):
        os.environ.update({"CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CCACHE_DIR": os.path.join(folder, "ccache"), "CCACHE_BASEDIR": folder, "CCACHE_NOHASHDIR": "1", "CCACHE_MAXSIZE": "2G",
                           "CCACHE_SLOPPINESS": "pch_defines,time_macros"})
