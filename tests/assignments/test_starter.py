#!/usr/bin/env python3
"""Regions, manifests, cases and starters, without a compiler."""
import copy
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import all_steps  # noqa: E402
import cases  # noqa: E402
import manifest as manifests  # noqa: E402
import regions  # noqa: E402
import starter  # noqa: E402

FILE = """#include "a.hpp"

/// Says f( in a comment.
template <class T> T f(T x) {
  // Double it
  x += x;                              // x = 2 x
  x += T(0);

  // Give it back
  for (int i = 0; i < 1; ++i) {
    // Only here
    x *= T(1);
#pragma unroll
    x *= T(1);
  }
  return x;
}

inline int g(int x,
             int y) {
  // Double it
  return f(x) + y;
}
"""


class Regions(unittest.TestCase):
    def code(self, **place):
        return regions.code_of("x.hpp", FILE, place)

    def test_a_block_ends_at_an_empty_line_or_with_its_scope(self):
        self.assertEqual(self.code(region="Double it", function="f"), ["  x += x;                              // x = 2 x", "  x += T(0);"])
        self.assertEqual(self.code(region="Only here"), ["    x *= T(1);", "#pragma unroll", "    x *= T(1);"])
        self.assertEqual(self.code(region="Double it", function="g"), ["  return f(x) + y;"])

    def test_a_function_alone_is_its_body(self):
        self.assertEqual(self.code(function="g"), ["  // Double it", "  return f(x) + y;"])

    def test_lines_narrow_it(self):
        self.assertEqual(self.code(region="Double it", function="f", lines=["T(0)", "T(0)"]), ["  x += T(0);"])

    def test_what_is_not_there_once_is_refused(self):
        for place, words in (({"region": "Double it"}, "2 comment"), ({"region": "Nothing"}, "no comment"), ({"function": "h"}, "no function"),
                             ({"region": "Only here", "function": "g"}, "no comment"), ({"region": "Only here", "lines": ["a b", "c"]}, "no lines")):
            with self.assertRaises(regions.Fault) as raised:
                self.code(**place)
            self.assertIn(words, str(raised.exception))

    def test_stub_and_probe_take_its_place_with_its_indent(self):
        text = regions.write_tasks("x.hpp", FILE, [({"region": "Double it", "function": "f"}, ["a;", "b;"], ["c;"]), ({"region": "Only here"}, None, ["d;"])])
        self.assertIn("  // Double it\n  a;\n  b;\n  c;\n\n  // Give it back", text)
        self.assertIn("#pragma unroll\n    x *= T(1);\n    d;\n  }\n", text)

    def test_two_regions_do_not_overlap(self):
        with self.assertRaises(regions.Fault):
            regions.write_tasks("x.hpp", FILE, [({"function": "f"}, [], []), ({"region": "Only here"}, [], [])])

    def test_lines_are_compared_without_space_and_comments(self):
        self.assertEqual(regions.normal("   // x  +=  y;   // so"), "x+=y;")
        self.assertEqual(regions.normal("* `x += y;`"), "`x+=y;`")
        self.assertEqual(regions.normal("  // "), "")


class Manifests(unittest.TestCase):
    def faults(self, change):
        data = copy.deepcopy(all_steps.manifest())
        change(data)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "assignment.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(data, file)
            return manifests.check_manifest(data, path)

    def test_a_right_one_has_no_fault(self):
        self.assertEqual(self.faults(lambda data: None), [])

    def test_each_fault_is_one_line(self):
        def put(*path_and_value):
            *path, value = path_and_value

            def change(data):
                for key in path[:-1]:
                    data = data[key]
                data[path[-1]] = value

            return change

        def drop(*path):
            def change(data):
                for key in path[:-1]:
                    data = data[key]
                del data[path[-1]]

            return change

        for change, words in (
            (put("colour", 1), "assignment: has an unknown key “colour”"),
            (drop("version"), "assignment: has no “version”"),
            (put("tasks", 0, "points", 13), "the points are 101 together, not 100"),
            (put("tasks", 0, "region", "Nothing"), "no comment “Nothing”"),
            (put("tasks", 0, "file", "steps/01_safe_softmax_3pass/nothing.hpp"), "there is no steps/01"),
            (put("tasks", 0, "file", "../x.hpp"), "is no steps/NN_name/file.hpp"),
            (put("tasks", 0, "colour", 1), "task 1: has an unknown key “colour”"),
            (put("tasks", 0, "cases", ["nothing", "merge float"]), "there is no case “nothing”"),
            (put("tasks", 0, "gate", "merge float"), "gate: must be one of the task's cases"),
            (put("tasks", 0, "depends", ["2"]), "depends: “2” must stand before “1”"),
            (put("tasks", 0, "depends", ["1"]), "depends: “1” must stand before “1”"),
            (put("tasks", 0, "hints", ["one"]), "hints: there are three levels"),
            (put("tasks", 0, "stub", ["return 1;"]), "stub: no line has todo(\"1\")"),
            (put("tasks", 4, "probe", ["probe(\"6\", p);"]), "probe: no line begins with probe(\"5\""),
            (put("tasks", 1, "id", "1"), "two tasks are “1”"),
            (put("given", ["nothing"]), "given: there is no case “nothing”"),
            (put("cases", "unused", all_steps.case(1, "standard", "float", ["o"], all_steps.SMALL)), "no task has it, and it is not given"),
            (put("cases", "merge float", "form", "forward"), "step 2 has no form “forward”"),
            (put("cases", "merge float", "type", "half"), "type: must be one of"),
            (put("cases", "merge float", "inputs", "odd"), "inputs: must be one of"),
            (put("cases", "merge float", "judge", ["o"]), "a merge gives no “o”"),
            (put("cases", "merge float", "sizes", {"n": 2, "m": 3}), "has an unknown size “m”"),
            (put("cases", "merge float", "sizes", {}), "has no “n”"),
            (put("cases", "merge float", "sizes", {"n": -1}), "n: must be a whole number, at least 0"),
            (put("cases", "5 forward float 0", "sizes", "causal", True), "step 5 knows no mask"),
            (put("cases", "5 forward float 0", "sizes", "kv_heads", 2), "kv_heads: must be heads"),
            (put("cases", "probe 5", "type", "float"), "probes are judged in fifty digits"),
            (put("cases", "probe 5", "judge", ["probe 9"]), "there is no task with a probe “9”"),
            (put("hidden", {"nothing (hidden)": {}}), "must be the name of a case"),
            (put("limits", "seconds", 0), "limits.seconds: must be a whole number"),
            (put("last_step", 9), "last_step: must be a step from 1 to 8"),
        ):
            faults = self.faults(change)
            self.assertTrue(any(words in fault for fault in faults), (words, faults))
            for fault in faults:
                self.assertNotIn("\n", fault)
                self.assertTrue(re.match(r".*assignment\.json: [^:]+: ", fault), fault)

    def test_exit_status(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "assignment.json")
            for text, status, words in (('{"a": 1, "a": 2}', 2, "stands twice"), ("{", 2, "assignment.json: "), (json.dumps(all_steps.manifest()), 0, "")):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                result = subprocess.run([sys.executable, manifests.__file__, path], capture_output=True, text=True)
                self.assertEqual(result.returncode, status, result.stderr)
                self.assertIn(words, result.stderr)


class Cases(unittest.TestCase):
    def test_inputs_are_the_same_on_every_machine(self):
        case = {"name": "one", **all_steps.case(5, "forward", "float", ["o"], all_steps.SMALL)}
        with tempfile.TemporaryDirectory() as folder:
            cases.write_inputs(case, 1, folder)
            total = hashlib.sha256()
            for name in sorted(os.listdir(folder)):
                with open(os.path.join(folder, name), "rb") as file:
                    total.update(file.read())
            self.assertEqual(sorted(os.listdir(folder)), ["k.txt", "q.txt", "v.txt"])
        self.assertEqual(total.hexdigest()[:16], "1581e0e3fb98e9ba")

    def test_seed_and_name_change_them(self):
        case = {"name": "one", **all_steps.case(5, "forward", "float", ["o"], all_steps.SMALL)}
        first = cases.inputs_of(case, 1)
        self.assertNotEqual(first, cases.inputs_of(case, 2))
        self.assertNotEqual(first, cases.inputs_of({**case, "name": "two"}, 1))
        self.assertNotEqual(first, cases.inputs_of({**case, "hidden": True}, 1))

    def test_every_kind_of_input(self):
        for kind in manifests.INPUTS:
            for form, sizes in (("forward", {**all_steps.SMALL, "heads": 2}), ("softmax", {"n": 7}), ("merge", {"n": 7}), ("backward", all_steps.EMPTY), ("backward", all_steps.NOBODY)):
                for rows in cases.inputs_of({"name": "x", **all_steps.case(5, form, "float", [], sizes, kind)}, 1).values():
                    for row in rows:
                        self.assertEqual(row, [cases.as_float(x) for x in row])


class Starters(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.scratch.name, "assignment.json")
        data = all_steps.manifest()
        # A hole for each step leaves the same code in others; one in step 5 alone does not
        data["tasks"] = [{**data["tasks"][4], "points": 100, "cases": [name for name, one in data["cases"].items() if one["step"] == 5 and one["judge"]]}]
        data["last_step"] = 5
        data["cases"] = {name: one for name, one in data["cases"].items() if one["step"] == 5}
        data["cases"] = {name: {**one, "judge": [judge for judge in one["judge"] if not judge.startswith("probe") or judge == "probe 5"]} for name, one in data["cases"].items()}
        with open(cls.path, "w", encoding="utf-8") as file:
            json.dump(data, file)
        cls.manifest = manifests.load(cls.path)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def make(self, name, **options):
        return starter.make_starter(self.path, os.path.join(self.scratch.name, name), checks=False, **options)

    def test_holes_and_solution(self):
        path = self.manifest.files()[0]
        holes, solved = (starter.contents(self.manifest, upto)[path] for upto in (None, "all"))
        self.assertEqual(holes.count('>("5")'), 3)
        self.assertNotIn("row_max", holes)
        back = solved.replace('#include "grader/compute/probe.hpp"\n', "").replace('      probe("5", m_new, p, alpha, k_j, bc);\n', "")
        self.assertEqual(back, starter.read(os.path.join(manifests.ROOT, path)))

    def test_what_a_starter_holds(self):
        folder = self.make("all of it")
        files = [os.path.relpath(os.path.join(place, name), folder) for place, _, names in os.walk(folder) for name in names if ".git/" not in place + "/"]
        self.assertFalse([path for path in files if re.search(r"definition|budget|compare\.hpp|expected|regions|starter\.py|step\.cpp|\.cu$|steps/0[678]|kernels\.hpp", path)])
        for path in ("README.md", "Makefile", "CMakeLists.txt", "AGENTS.md", ".gitignore", ".devcontainer/devcontainer.json", ".devcontainer/Dockerfile", "LICENSE",
                     "steps/04_fa1_tiled/README.md", "steps/05_fa2_loop_swap/forward.hpp", "grader/assignment.json", "grader/compute/student_05.cpp"):
            self.assertIn(path, files)
        self.assertNotIn("steps/05_fa2_loop_swap/README.md", files)
        for path in files:
            text = starter.read(os.path.join(folder, path))
            self.assertNotIn(manifests.ROOT + "/", text)
            self.assertNotRegex(text, r"@[A-Z]+@")
            for _, _, target in starter.LINK.findall(text) if path.endswith(".md") else ():
                if not re.match(r"[a-z]+:|#", target):
                    self.assertTrue(os.path.exists(os.path.join(folder, os.path.dirname(path), target.partition("#")[0])), (path, target))

    def test_one_commit_that_depends_on_the_files_alone(self):
        heads = set()
        for name in ("one", "and two"):
            folder = self.make(name)
            log = subprocess.run(["git", "log", "--all", "--format=%H"], cwd=folder, capture_output=True, text=True, check=True).stdout.split()
            self.assertEqual(len(log), 1)
            self.assertEqual(subprocess.run(["git", "status", "--porcelain"], cwd=folder, capture_output=True, text=True, check=True).stdout, "")
            heads.update(log)
        self.assertEqual(len(heads), 1)

    def test_a_folder_that_is_not_empty_is_refused(self):
        with self.assertRaises(starter.StarterError):
            starter.make_starter(self.path, self.scratch.name)

    def test_leaks_are_found(self):
        folder = self.make("leaks")
        self.assertEqual(starter.check_leaks(folder, self.path), [])
        lines = regions.code_of("x", starter.read(os.path.join(manifests.ROOT, self.manifest.files()[0])), self.manifest.graded[0])
        spaced = "\n\n".join("  // " + line.replace("(", " ( ") for line in lines[1:4])
        for where in ("README.md", "steps/01_safe_softmax_3pass/forward.hpp", "grader/cases.py"):
            whole = starter.read(os.path.join(folder, where))
            with open(os.path.join(folder, where), "a", encoding="utf-8") as file:
                file.write(spaced + "\n")
            found = starter.check_leaks(folder, self.path)
            if where.startswith("steps/01"):
                self.assertEqual(found, [])  # an earlier step may show it
            else:
                self.assertTrue(found and where in found[0], (where, found))
            with open(os.path.join(folder, where), "w", encoding="utf-8") as file:
                file.write(whole)
        blob = os.path.join(folder, "blob")
        with open(blob, "w", encoding="utf-8") as file:
            file.write(spaced)
        subprocess.run(["git", "hash-object", "-w", "blob"], cwd=folder, capture_output=True, check=True)
        os.remove(blob)
        found = starter.check_leaks(folder, self.path)
        self.assertTrue(found and "git object" in found[0], found)

    def test_tasks_up_to_one(self):
        with self.assertRaises(starter.StarterError):
            starter.contents(self.manifest, "9")
        self.assertEqual(starter.contents(self.manifest, "5"), starter.contents(self.manifest, "all"))


class Assignments(unittest.TestCase):
    def test_no_starter_shows_its_solution(self):
        with tempfile.TemporaryDirectory() as scratch:
            for slug in manifests.slugs():
                variants = os.path.join(manifests.FOLDER, slug, "variants")
                for variant in [None, *(sorted(os.listdir(variants)) if os.path.isdir(variants) else [])]:
                    with self.subTest(assignment=slug, variant=variant):
                        folder = starter.make_starter(slug, os.path.join(scratch, f"{slug} {variant}"), variant=variant, checks=False)
                        self.assertEqual(starter.check_leaks(folder, slug, variant), [])


if __name__ == "__main__":
    unittest.main()
