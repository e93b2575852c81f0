"""The numbers of the Chinese page of step 02: each is computed as on the English page."""
import step02

PAGE = "docs/zh/02.md"
NUMBERS = {printed: step02.NUMBERS[printed] for printed in (
    "1.3678794", "1.5032147", "2.5752", "3.5795", "126,341,376", "0.75", "21.9", "140,942,448", "146,201,376",
)}
