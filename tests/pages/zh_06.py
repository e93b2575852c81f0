"""The numbers of the Chinese page of step 06: each is computed as on the English page."""
import step06

PAGE = "docs/zh/06.md"
NUMBERS = {printed: step06.NUMBERS[printed] for printed in (
    "762,624", "1,525,248", "0.391", "0.523", "7,209,180", "994", "1.25",
)}
