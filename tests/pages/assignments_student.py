"""The numbers of the students' page."""
PAGE = "docs/assignments/student.md"
NUMBERS = {}
QUOTED = {"24.04": "the version of Ubuntu"}
