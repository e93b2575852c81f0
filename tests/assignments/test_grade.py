#!/usr/bin/env python3
"""Tests of the grader without a compiler: verdicts over folders of outputs, points, reports beside stored ones, submissions of every kind.

    test_grade.py [--update]       --update writes golden/ anew; look at the difference before you keep it
"""
import copy
import io
import json
import locale
import os
import stat
import sys
import tempfile
import unittest
import zipfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import build  # noqa: E402
import compare  # noqa: E402
import grade  # noqa: E402
import intake  # noqa: E402
import report  # noqa: E402

GOLDEN = os.path.join(HERE, "golden")
UPDATE = "--update" in sys.argv
SIZES = {"seq_q": 2, "seq_k": 3, "head_dim": 1, "value_dim": 2, "br": 2, "bc": 2, "causal": False, "heads": 1, "kv_heads": 1}
FILE = "steps/05_fa2_loop_swap/forward.hpp"


def case(name, judged, kind="float", **more):
    return {"name": name, "step": 5, "form": "forward", "type": kind, "sizes": SIZES, "inputs": "normal", "seed": 7, "judge": judged, "arguments": [], "folder": "checks/000", **more}


CASES = {c["name"]: c for c in (
    case("one tile", ["o", "lse"]), case("two tiles", ["o", "lse"]), case("no keys", ["o", "lse"]), case("one tile (hidden)", ["o", "lse"], seed=8),
    case("probe 1", ["probe 2.1"], "fifty"), case("probe 2", ["probe 2.1"], "fifty"), case("probe 3", ["probe 2.1"], "fifty"),
    case("traffic", ["counts"]), case("traffic 2", ["counts", "peak"]), case("given", ["o"]))}
DATA = {"slug": "pilot", "title": "A pilot", "version": "1.0", "limits": {"seconds": 10, "mebibytes": 1024, "output_kib": 64}, "given": ["given"], "tasks": [
    {"id": "2.1", "title": "Weigh the tile", "points": 30, "file": FILE, "equation": "(5.1)", "cases": ["probe 1", "probe 2", "probe 3"], "gate": "probe 1", "hints": ["a", "b", "c"]},
    {"id": "2.2", "title": "Rescale the old sum", "points": 50, "file": FILE, "equation": "(5.2)", "page": "steps/05_fa2_loop_swap/README.md", "depends": ["2.1"],
     "cases": ["one tile", "two tiles", "no keys"], "gate": "one tile", "hints": ["a", "b", "c"]},
    {"id": "2.3", "title": "Count what is read", "points": 20, "file": FILE, "cases": ["traffic", "traffic 2", "no keys"], "gate": "traffic", "hints": ["a", "b", "c"]},
    {"id": "W1", "kind": "written", "title": "Why does it fall?", "points": 0, "question": "Why?"}]}
O = [0.5, -1.25, 3.0, 0.1]
LSE = [1.5, float("-inf")]
COUNTS = "q 2 0 0\nk 6 0 0\nv 12 0 0\no 0 4 0\npeak 17\n"
PROBES = [("2.1", 2, 1, ["0.5", "-1.25"]), ("2.1", 1, 1, ["3"])]


def matrix(rows, cols, values):
    return f"{rows} {cols}\n" + "".join((x if isinstance(x, str) else x.hex() if x - x == 0 else str(x)) + "\n" for x in values)


def probes(records):
    return "".join(f"probe {name} {rows} {cols}\n" + "".join(x + "\n" for x in values) for name, rows, cols, values in records)


def right():
    """The files of a right output."""
    return {"o.txt": matrix(2, 2, O), "lse.txt": matrix(2, 1, LSE), "counts.txt": COUNTS, "probes.txt": probes(PROBES), "end.txt": "done\n"}


def expected():
    return {**right(), "budget_o.txt": matrix(1, 1, [1e-6]), "budget_lse.txt": matrix(2, 1, [1e-6, 1e-6])}


class Grading(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.number = 0

    def tearDown(self):
        self.scratch.cleanup()

    def folder(self, files):
        self.number += 1
        place = os.path.join(self.scratch.name, str(self.number))
        os.mkdir(place)
        for name, text in files.items():
            if text is not None:
                with open(os.path.join(place, name), "w", encoding="utf-8") as file:
                    file.write(text)
        return place

    def grade(self, outputs=None, everywhere=None, not_built=(), sources=('probe("2.1", m_new, p)',)):
        """A grade. outputs  by case what differs from a right output; everywhere  in all cases; None in it: the file is missing"""
        runs, wanted = {}, self.folder(expected())
        for name in CASES:
            changed = {**(everywhere or {}), **(outputs or {}).get(name, {})}
            problem = changed.pop("problem", "the program ended with status 3 before its results were written")
            runs[name] = None if name in not_built else build.Ran(self.folder({**right(), **changed}), problem)
        tasks, given = grade.grade_all(DATA, CASES, runs, dict.fromkeys(CASES, wanted), sources)
        return grade.grade_of(DATA, {"seed": 1}, tasks, given, {}, [], False, False)

    def told(self, graded):
        return {task["id"]: (task["state"], task["score"]) for task in graded["tasks"]}

    # Outcomes

    def test_right(self):
        graded = self.grade()
        self.assertEqual(self.told(graded), {"2.1": ("right", 30), "2.2": ("right", 50), "2.3": ("right", 20), "W1": ("manual", 0)})
        self.assertEqual((graded["score"], graded["out_of"]), (100, 100))
        self.assertTrue(grade.is_full(graded))

    def test_not_attempted(self):
        graded = self.grade(everywhere={"end.txt": "not implemented 2.1\n", "probes.txt": "", "o.txt": matrix(2, 2, [float("nan")] * 4)}, outputs={"given": right()})
        self.assertEqual(self.told(graded), {"2.1": ("not attempted", 0), "2.2": ("blocked", 0), "2.3": ("blocked", 0), "W1": ("manual", 0)})
        self.assertEqual(graded["tasks"][1]["by"], "2.1")
        self.assertEqual(graded["given"], [{"name": "given", "state": "right", "message": None}])

    def test_not_attempted_behind_another_hole(self):
        end = {"end.txt": "not implemented 2.1\n", "probes.txt": ""}
        graded = self.grade(everywhere=end, outputs={"given": right()}, sources=['Tile p = todo<Tile<T>>("2.1");', 'Tile l = todo<Tile<T>>("2.2");', 'todo("2.3");'])
        self.assertEqual({state for state, _ in self.told(graded).values()}, {"not attempted", "manual"})

    def test_not_attempted_where_empty_cases_pass(self):
        end = {"end.txt": "not implemented 2.2\n"}
        graded = self.grade({name: end for name in ("one tile", "two tiles", "one tile (hidden)")})
        self.assertEqual(self.told(graded)["2.2"], ("not attempted", 0))

    def test_probe_of_a_task_before_the_hole_that_stopped(self):
        end = {"end.txt": "not implemented 2.2\n", "probes.txt": probes(PROBES[:1])}
        graded = self.grade({name: end for name in ("probe 1", "probe 2", "probe 3")})
        self.assertEqual(self.told(graded)["2.1"], ("right", 30))

    def test_wrong_probe_before_the_hole_that_stopped(self):
        end = {"end.txt": "not implemented 2.2\n", "probes.txt": probes([("2.1", 2, 1, ["0.5", "-1.2500000000000000000000000000000000000001"])])}
        graded = self.grade({name: end for name in ("probe 1", "probe 2", "probe 3")})
        self.assertEqual(self.told(graded)["2.1"], ("right", 30))  # 1e-40 is allowed
        end["probes.txt"] = probes([("2.1", 2, 1, ["0.5", "-1.250000000000000000000000000000000000001"])])
        graded = self.grade({name: end for name in ("probe 1", "probe 2", "probe 3")})
        self.assertEqual(self.told(graded)["2.1"], ("wrong", 0))
        first = graded["tasks"][0]["first"]
        self.assertEqual((first["case"], first["index"], first["what"]), ("probe 1", [1, 0], "record 1 of probe 2.1"))
        self.assertNotEqual(first["got"], first["want"])

    def test_blocked_by_depends(self):
        bad = {"probes.txt": probes([("2.1", 2, 1, ["0.5", "1.25"]), PROBES[1]])}
        outputs = {name: bad for name in ("probe 1", "probe 2", "probe 3")}
        self.assertEqual(self.told(self.grade(outputs))["2.2"], ("right", 50))  # its own cases are right
        graded = self.grade({**outputs, "one tile": {"o.txt": matrix(2, 2, [9.0] * 4)}})
        self.assertEqual(self.told(graded)["2.2"], ("blocked", 0))
        self.assertEqual(graded["tasks"][1]["by"], "2.1")

    def test_partial_credit(self):
        graded = self.grade({"two tiles": {"o.txt": matrix(2, 2, [0.5, -1.25, 3.0, 0.2])}})
        self.assertEqual(self.told(graded)["2.2"], ("wrong", 37))  # 3 of 4 cases, floored
        first = graded["tasks"][1]["first"]
        self.assertEqual((first["case"], first["what"], first["index"], first["got"], first["want"]), ("two tiles", "o", [1, 1], "0.2", "0.1"))
        self.assertAlmostEqual(first["share"], 1e5, delta=1)
        self.assertEqual(graded["tasks"][1]["again"], "make grade T=2.2 CASE='two tiles'")

    def test_gate(self):
        graded = self.grade({"one tile": {"lse.txt": matrix(2, 1, [1.5, 0.0])}})
        self.assertEqual(self.told(graded)["2.2"], ("wrong", 0))
        self.assertIn("one tile", report.outcome_of(graded["tasks"][1]))

    def test_hidden_cases_count(self):
        graded = self.grade({"one tile (hidden)": {"o.txt": matrix(2, 2, [0.0] * 4)}})
        self.assertEqual(self.told(graded)["2.2"], ("wrong", 37))
        self.assertEqual(graded["tasks"][1]["first"]["seed"], 8)

    def test_nan_is_wrong(self):
        for value in (float("nan"), float("inf"), -float("inf")):
            graded = self.grade(everywhere={"o.txt": matrix(2, 2, [0.5, -1.25, 3.0, value])})
            self.assertEqual(self.told(graded)["2.2"], ("wrong", 0), value)
        graded = self.grade(everywhere={"lse.txt": matrix(2, 1, [1.5, float("nan")])})
        self.assertEqual(self.told(graded)["2.2"], ("wrong", 0))
        graded = self.grade(everywhere={"lse.txt": matrix(2, 1, [1.5, -1e300])})
        self.assertEqual(self.told(graded)["2.2"], ("wrong", 0))
        graded = self.grade(everywhere={"probes.txt": probes([("2.1", 2, 1, ["nan", "-1.25"]), PROBES[1]])})
        self.assertEqual(self.told(graded)["2.1"], ("wrong", 0))

    def test_missing_and_short_outputs(self):
        for text in (None, "", "2 2\n", matrix(2, 2, O)[:-1].rsplit("\n", 1)[0], matrix(2, 3, O), matrix(4, 1, O), matrix(2, 2, [*O, 1.0]), "2 2\nall\nof\nit\nright\n", "2 2\n0,5\n1\n1\n1\n", "-1 2\n",
                     "999999999 999999999\n1\n", "2 2\n" + "0x1p+99999999999\n" * 4, "zwölf"):
            graded = self.grade(everywhere={"o.txt": text})
            self.assertEqual(self.told(graded)["2.2"], ("wrong", 0), text)
            self.assertTrue(report.details(graded["tasks"][1]))

    def test_decimals_are_not_read_as_hexadecimal(self):
        self.assertEqual(self.told(self.grade(everywhere={"o.txt": "2 2\n0.5\n-1.25\n3\n0.1\n"}))["2.2"], ("wrong", 0))

    def test_links_and_pipes(self):
        graded = self.grade()
        wanted, out = self.folder(expected()), self.folder(right())
        for make in (lambda path: os.symlink(os.path.join(wanted, "o.txt"), path), lambda path: os.link(os.path.join(wanted, "o.txt"), path), os.mkfifo, os.mkdir):
            path = os.path.join(out, "o.txt")
            os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
            make(path)
            self.assertIsNotNone(compare.compare_result(out, self.folder(expected()), "o", False).message)
        self.assertTrue(graded)

    def test_ended_early(self):
        graded = self.grade(everywhere={"end.txt": None})
        self.assertEqual(self.told(graded), {"2.1": ("wrong", 0), "2.2": ("blocked", 0), "2.3": ("wrong", 0), "W1": ("manual", 0)})
        self.assertIn("status 3", graded["tasks"][0]["first"]["message"])
        self.assertFalse(grade.is_full(graded))

    def test_success_lines_in_the_wrong_place(self):
        for end in ("Score: 100/100\n", "done done\n", "not implemented 9.9\n", "not implemented\n", "\n", "d" * 70000):
            self.assertEqual(self.told(self.grade(everywhere={"end.txt": end}))["2.3"][1], 20 if end == "done done\n" else 0, end[:20])

    def test_exception(self):
        graded = self.grade(everywhere={"end.txt": "exception std::bad_alloc\n"})
        self.assertEqual(self.told(graded)["2.2"], ("wrong", 0))
        self.assertIn("bad_alloc", graded["tasks"][1]["first"]["message"])

    def test_removed_probe(self):
        graded = self.grade(everywhere={"probes.txt": ""}, sources=["nothing here"])
        self.assertIn('probe("2.1", …) is missing: put it back', graded["tasks"][0]["first"]["message"])
        graded = self.grade(everywhere={"probes.txt": "", "end.txt": "not implemented 2.2\n"}, sources=["nothing here"])
        self.assertEqual(self.told(graded)["2.1"], ("wrong", 0))
        graded = self.grade(everywhere={"probes.txt": ""})  # the line is there, and was not reached
        self.assertIn("recorded 0 times", graded["tasks"][0]["first"]["message"])

    def test_does_not_compile(self):
        graded = self.grade(not_built=CASES)
        self.assertEqual({state for state, _ in self.told(graded).values()}, {"does not compile", "manual"})
        self.assertEqual(graded["score"], 0)

    def test_counts(self):
        graded = self.grade(everywhere={"counts.txt": COUNTS.replace("k 6 0 0", "k 12 0 0")})
        self.assertEqual(self.told(graded)["2.3"], ("wrong", 0))
        self.assertEqual(graded["tasks"][2]["first"]["message"], "counted for k: 12 read, 0 written, 0 added to; expected: 6 read, 0 written, 0 added to")
        self.assertEqual(self.told(self.grade(everywhere={"counts.txt": COUNTS.replace("peak 17", "peak 18")}))["2.3"], ("wrong", 13))
        self.assertEqual(self.told(self.grade(everywhere={"counts.txt": COUNTS + "m 4 0 0\n"}))["2.3"], ("wrong", 0))
        self.assertEqual(self.told(self.grade(everywhere={"counts.txt": COUNTS + "m 0 0 0\n"}))["2.3"], ("right", 20))
        self.assertEqual(self.told(self.grade(everywhere={"counts.txt": "k six\n"}))["2.3"], ("wrong", 0))

    def test_trace(self):
        clean, race = self.folder({"trace.txt": "traced\n"}), self.folder({"trace.txt": "traced\nk,v: two threads, one writes: k_tile[3]\n"})
        self.assertIsNone(compare.compare_trace(clean, []))
        self.assertIsNone(compare.compare_trace(race, ["q"]))
        self.assertEqual(compare.compare_trace(race, ["v"]).message, "two threads, one writes: k_tile[3]")
        self.assertTrue(compare.compare_trace(race, []))
        self.assertTrue(compare.compare_trace(self.folder({"trace.txt": "not traced\n"}), []))
        self.assertTrue(compare.compare_trace(self.folder({}), []))

    def test_expected_end(self):
        refusing = case("too small", [], expect="does not fit")
        ids, wanted = ["2.1"], self.folder({})
        verdict = lambda end: grade.judge(refusing, DATA["tasks"][0], build.Ran(self.folder({"end.txt": end}), ""), wanted, ids).state
        self.assertEqual([verdict(end) for end in ("does not fit: q_i", "done", "not implemented 2.1")], ["right", "wrong", "not attempted"])

    def test_heads(self):
        grouped = case("heads", ["o"], sizes={**SIZES, "heads": 2, "seq_q": 1})
        out = self.folder({**right(), "o.txt": matrix(2, 2, [0.5, -1.25, 3.0, 9.0])})
        verdict = grade.judge(grouped, DATA["tasks"][1], build.Ran(out, ""), self.folder(expected()), ["2.2"])
        first = grade.first_of("heads", grouped, verdict)
        self.assertEqual((first["head"], first["index"]), (1, [0, 1]))

    # What a person reads

    def examples(self):
        """Grades as they come: full, partial, blocked, not compiled, refused."""
        partial = self.grade({"two tiles": {"o.txt": matrix(2, 2, [0.5, -1.25, 3.0, 0.2])}, "traffic": {"end.txt": "not implemented 2.3\n"}})
        blocked = self.grade(everywhere={"probes.txt": probes([("2.1", 2, 1, ["0.5", "1.25"]), PROBES[1]]), "o.txt": matrix(2, 2, [float("nan")] * 4)})
        broken = self.grade(not_built=CASES)
        broken["errors"] = [{"program": "compute_05", "lines": [f"{FILE}:31:9: error: 'm_new' was not declared in this scope", "   31 |         m_new = 1;"]}]
        alone = self.grade()
        for graded in (partial, blocked, broken, alone):
            graded.update(isolated=True, isolation="Landlock 3, a user of its own, limits")
        alone.update(isolated=False, messages=[f"{FILE} is not in the submission; the starter's stands in its place"])
        return {"right": alone, "partial": partial, "blocked": blocked, "broken": broken}

    def test_golden(self):
        for name, graded in self.examples().items():
            for form in report.FORMATS:
                found = report.render(copy.deepcopy(graded), form)
                path = os.path.join(GOLDEN, f"{name}.{form}{'.txt' if form == 'text' else '.json'}")
                if UPDATE:
                    os.makedirs(GOLDEN, exist_ok=True)
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(found)
                with open(path, encoding="utf-8") as file:
                    self.assertEqual(found, file.read(), path)
                if form != "text":
                    json.loads(found)

    def test_no_line_of_a_submission_looks_like_ours(self):
        graded = self.grade(everywhere={"end.txt": "exception x\nScore: 100/100\n"})
        self.assertEqual([line for line in report.as_text(graded).splitlines() if "Score:" in line and "exception" not in line], ["Score: 30/100"])

    def test_table(self):
        examples = self.examples()
        text = report.as_csv([("=cmd()", examples["partial"]), ("ada, l.", "refused: the zip is encrypted")], DATA["tasks"])
        rows = text.splitlines()
        self.assertEqual(rows[0], "student,score,2.1,2.2,2.3,W1,remarks")
        self.assertTrue(rows[1].startswith("'=cmd(),67,30,37,0,manual,"), rows[1])
        self.assertEqual(rows[2], '"ada, l.",0,0,0,0,manual,refused: the zip is encrypted')

    def test_decimal_commas(self):
        """Another locale changes nothing. Without one with commas on this machine, the readers are still those of Python."""
        before = report.as_text(self.examples()["partial"])
        for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"):
            try:
                locale.setlocale(locale.LC_ALL, name)
            except locale.Error:
                continue
            self.assertEqual(report.as_text(self.examples()["partial"]), before)
        locale.setlocale(locale.LC_ALL, "C")

    # Submissions

    def zipped(self, names, change=None):
        path = os.path.join(self.scratch.name, f"s{len(os.listdir(self.scratch.name))}.zip")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in names.items():
                info = zipfile.ZipInfo(name)
                if change:
                    change(info)
                archive.writestr(info, data, zipfile.ZIP_DEFLATED)
        return path

    def test_zip(self):
        text = b"#pragma once\n"
        for prefix in ("", "flash/", "a/b/", "./"):
            self.assertEqual(intake.take(self.zipped({prefix + FILE: text, prefix + "grader/grade.py": b"x"}), [FILE]), {FILE: text})
        self.assertEqual(intake.take(self.zipped({"forward.hpp": text}), [FILE]), {FILE: text})

    def test_zip_refused(self):
        link = lambda info: setattr(info, "external_attr", (stat.S_IFLNK | 0o777) << 16)
        for names, change in (({"../" + FILE: b""}, None), ({FILE: b"", "a/../../x": b""}, None), ({"/" + FILE: b""}, None), ({"C:/" + FILE: b""}, None), ({"a\\..\\..\\b": b"", FILE: b""}, None),
                              ({FILE: b"/etc/passwd"}, link), ({FILE: b"a" * (intake.FILE_CAP + 1)}, None), ({FILE: b"", "big": b"0" * (intake.ZIP_CAP + 1)}, None),
                              ({"a/" + FILE: b"", "b/" + FILE: b""}, None), ({"nothing": b""}, None), ({FILE: b"a\0b"}, None)):
            with self.assertRaises(intake.Refused, msg=str(list(names))):
                intake.take(self.zipped(names, change), [FILE])
        damaged = os.path.join(self.scratch.name, "damaged.zip")
        with open(self.zipped({FILE: b"abc" * 1000}), "rb") as file, open(damaged, "wb") as out:
            data = bytearray(file.read())
            data[60:70] = b"\xff" * 10
            out.write(data)
        with self.assertRaises(intake.Refused):
            intake.take(damaged, [FILE])
        with self.assertRaises(intake.Refused):
            intake.take(self.folder_of({}), [FILE])

    def test_note_of_a_zip(self):
        note = lambda text: self.zipped({FILE: b"", "submission.json": text})
        self.assertIsNone(intake.mismatch(note(b'{"assignment": "a1", "version": "1.0"}'), "a1", "1.0"))
        self.assertIn("version '0.9'", intake.mismatch(note(b'{"assignment": "a1", "version": "0.9"}'), "a1", "1.0"))
        self.assertIn("'a2'", intake.mismatch(note(b'{"assignment": "a2", "version": "1.0"}'), "a1", "1.0"))
        for other in (self.zipped({FILE: b""}), self.folder_of({}), note(b"{"), note(b"[]"), note(b"\xff")):
            self.assertIsNone(intake.mismatch(other, "a1", "1.0"))

    def folder_of(self, names):
        place = self.folder({})
        for name, data in names.items():
            os.makedirs(os.path.dirname(os.path.join(place, name)), exist_ok=True)
            with open(os.path.join(place, name), "wb") as file:
                file.write(data)
        return place

    def test_folder(self):
        self.assertEqual(intake.take(self.folder_of({FILE: b"x", ".git/" + FILE: b"y"}), [FILE]), {FILE: b"x"})
        self.assertEqual(intake.take(self.folder_of({"mine/" + FILE: b"x"}), [FILE]), {FILE: b"x"})
        secret = self.folder_of({"forward.hpp": b"secret"})
        linked = self.folder_of({"steps/05_fa2_loop_swap/other": b""})
        os.symlink(os.path.join(secret, "forward.hpp"), os.path.join(linked, FILE))
        with self.assertRaises(intake.Refused):
            intake.take(linked, [FILE])
        linked = self.folder_of({"steps/other": b""})
        os.symlink(secret, os.path.join(linked, "steps/05_fa2_loop_swap"))
        with self.assertRaises(intake.Refused):
            intake.take(linked, [FILE])

    def test_folder_of_submissions(self):
        place = self.folder_of({"ada/" + FILE: b"x", "bob/" + FILE: b"x", ".hidden/x": b"", "notes.txt": b""})
        os.rename(self.zipped({FILE: b"z"}), os.path.join(place, "eve.zip"))
        self.assertFalse(intake.is_one(place, [FILE]))
        self.assertEqual([name for name, _ in intake.students(place)], ["ada", "bob", "eve"])
        self.assertTrue(intake.is_one(os.path.join(place, "ada"), [FILE]))


if __name__ == "__main__":
    sys.argv = [word for word in sys.argv if word != "--update"]
    unittest.main(buffer=False)
