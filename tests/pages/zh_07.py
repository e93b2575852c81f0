"""The numbers of the Chinese page of step 07: each is computed as on the English page."""
import step07
from computed import moved

PAGE = "docs/zh/07.md"
NUMBERS = {printed: step07.NUMBERS[printed] for printed in (
    "15", "0.594", "0.701", "0.524", "762,624", "393,984",
)}
NUMBERS["0.625"] = lambda: moved(step07.backward()) / moved(step07.plain("backward"))
