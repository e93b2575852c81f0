"""The numbers of the Chinese page of step 05: each is computed as on the English page."""
import step05

PAGE = "docs/zh/05.md"
NUMBERS = {printed: step05.NUMBERS[printed] for printed in (
    "2.5752", "1,652,352", "131,076", "0.641", "0.309", "12,480", "0.727", "1.92",
)}
QUOTED = {"6.2776": step05.QUOTED["6.2776"]}
