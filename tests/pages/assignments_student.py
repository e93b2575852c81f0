"""The numbers of the students' page: what a grader printed for a mistake."""
PAGE = "docs/assignments/student.md"
NUMBERS = {}
QUOTED = {
    "24.04": "the version of Ubuntu",
    "0.0087435683": "printed with alpha upside down in assignment 1, task 2.4",
    "0.057497992": "printed with it",
    "7.45": "printed with it",
}
