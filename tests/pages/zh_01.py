"""The numbers of the Chinese page of step 01: each is computed as on the English page."""
import step01

PAGE = "docs/zh/01.md"
NUMBERS = {printed: step01.NUMBERS[printed] for printed in (
    "11.09", "88.72", "709.78", "3,010,776", "2,760,540", "168,412,800", "29.2", "333", "164", "3,972", "419",
    "72",
)}
