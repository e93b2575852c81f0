"""Many states of the same files in one program: what they have in common is compiled once.

The text of each state stands in a namespace of its own, flashsteps::v03 in place of flashsteps, and its forms are named forward@03. Only
for the project's own states and mistakes, which are known to compile: a submission is always compiled as it is.
"""
import concurrent.futures
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import build  # noqa: E402

INCLUDE = re.compile(r'^#include ([<"])([^>"]+)[>"].*\n?', re.M)


def of_step(path):
    """Can this file stand beside another state of itself? A step's can; kernels, and headers that all steps share, cannot."""
    return path.startswith("steps/") and path.endswith(".hpp")


def common_part(files):
    """What of these files must be the same in all states of a program; None if they cannot be together with others at all."""
    rest = {path: text for path, text in files.items() if not of_step(path)}
    return tuple(sorted(rest.items())) if all(path.endswith(".hpp") for path in rest) else None


def hoist(include, hoisted):
    """Puts an include before all states. Some stand under an #if that asks whether the file is there."""
    line = include[0].strip()
    hoisted.append(f'#if __has_include("{include[2]}")\n{line}\n#endif' if include[1] == '"' else line)
    return ""


def text_of(path, files, name, hoisted):
    """A file of a state and what it includes of the state, in the namespace `name`; other includes are added to hoisted."""
    text = files[path].decode()
    text = INCLUDE.sub(lambda found: text_of(found[2], files, name, hoisted) if found[2] in files else hoist(found, hoisted), text)
    text = text.replace("#pragma once\n", "")
    step = re.search(r"namespace flashsteps::(step\d\d) \{", text)[1]
    return (f"namespace flashsteps::{step} {{}}\nnamespace flashsteps::{name}::{step} {{ using namespace flashsteps::{step}; }}\n"
            + text.replace(f"namespace flashsteps::{step} {{", f"namespace flashsteps::{name}::{step} {{"))


def source_of(student, states):
    """The translation unit of several states. student  text of grader/compute/student_NN.cpp; states  files by path, by number"""
    hoisted, bodies = [], []
    for number, files in states.items():
        name = f"v{number:02}"

        def put(found):
            return text_of(found[2], files, name, hoisted) if found[2] in files else hoist(found, hoisted)

        text = student.replace("namespace flashsteps {", f"namespace flashsteps::{name} {{").replace("STUDENT_FORMS(flashsteps::forms())\n", "")
        bodies.append(f'#line 1 "{name}"\n' + INCLUDE.sub(put, text))
    lists = "".join(f'    for (const auto& [name, form] : {f"flashsteps::v{number:02}"}::forms()) forms[name + "@{number:02}"] = form;\n' for number in states)
    return ("\n".join(dict.fromkeys(hoisted)) + "\n" + "\n".join(bodies)
            + f"\nSTUDENT_FORMS([] {{\n    flashsteps::Forms<flashsteps::Number> forms;\n{lists}    return forms;\n  }}())\n")


class Batch:
    """The programs of many states of an assignment, which have their common_part in common.

    states   files by path, in bytes, of each state
    without  number types that a state is not run in, of each state
    """

    def __init__(self, prepared, programs, states, without, folder, jobs):
        self.prepared, self.folder = prepared, folder
        for path, text in common_part(states[0]):
            place = os.path.join(folder, "common-part", path)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "wb") as file:
                file.write(text)
        states = [{path: text for path, text in files.items() if of_step(path)} for files in states]
        numbers = list(range(len(states)))
        several = sum(len(prepared.units[program]) for program in programs) >= 2 * jobs  # units enough for all cores: no need to divide the states
        shares = [share for share in (numbers[first::jobs] for first in range(jobs)) if share] if not several else [numbers]
        works, self.varied = {}, set()
        for program in programs:
            for unit in prepared.units[program]:
                kind = None  # the same in all states, or else the number type of a step that is not
                if prepared.includes(unit) & set(states[0]):
                    kind = next(word[len("-DSTUDENT_"):].lower() for word in unit.arguments if word.startswith("-DSTUDENT_"))
                    self.varied.add(program)
                for at, share in enumerate(shares):
                    works[unit.object, at if kind else None] = (program, unit, kind, at, {number: states[number] for number in share if kind not in without[number]})
        longest_first = sorted(works, key=lambda key: works[key][2] != "fifty")
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            objects = dict(zip(longest_first, pool.map(lambda key: self.compile(*works[key]), longest_first)))
        self.paths = {}
        for program in programs:
            for at, share in enumerate(shares):
                path = self.link(program, at, {unit.object: objects.get((unit.object, at), objects.get((unit.object, None))) for unit in prepared.units[program]})
                self.paths.update({(program, number): path for number in share})

    def compile(self, program, unit, kind, at, chosen):
        """The object of a unit: of some states, or of all."""
        source, made = unit.source, os.path.join(self.folder, f"{program}-{kind}-{at}-{os.path.basename(unit.object)}")
        if kind and not chosen:
            return None
        if kind:
            with open(unit.source, encoding="utf-8") as file:
                student = file.read()
            source = made + ".cpp"
            with open(source, "w", encoding="utf-8") as file:
                file.write(source_of(student, chosen))
        command = [source if word == unit.source else word for word in unit.arguments]
        command = build.without_listing(command)
        quickly = ["-O0"] if kind == "fifty" else []  # what is compiled once runs seldom, and has the same digits
        self.do([command[0], "-I", os.path.join(self.folder, "common-part"), *command[1:], "-I", os.path.dirname(unit.source), *quickly, "-w", "-o", made], program)
        return made

    def link(self, program, at, objects):
        path = os.path.join(self.folder, f"{program}-{at}")
        command = []
        for word in self.prepared.links[program]:
            full = os.path.normpath(os.path.join(self.prepared.build, word))
            if full in objects:
                command += [objects[full]] if objects[full] else []
            else:
                command.append(path if command and command[-1] == "-o" else word)
        self.do(command, program)
        return path

    def do(self, command, program):
        done = subprocess.run(command, cwd=self.prepared.build, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        if done.returncode:
            raise build.NotBuilt(program, build.first_lines(done.stdout, self.folder))

    def run(self, program, number, case, starter, place, limits, seconds):
        """Runs a state on a case: build.Ran"""
        words = list(case["arguments"])
        if program in self.varied:
            words[words.index("--form") + 1] += f"@{number:02}"
        return build.run_case(self.paths[program, number], {**case, "arguments": words}, starter, place, limits, seconds, trusted=True)
