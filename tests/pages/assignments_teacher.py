"""The numbers of the teachers' page."""
PAGE = "docs/assignments/teacher.md"
NUMBERS = {}
QUOTED = {"24.04": "the version of Ubuntu", "5.13": "the version of Linux with which Landlock came"}
