"""The numbers of the Chinese page of step 03: each is computed as on the English page."""
import step03

PAGE = "docs/zh/03.md"
NUMBERS = {printed: step03.NUMBERS[printed] for printed in (
    "2.5752", "3.8980", "84,269,952", "0.667", "14.6", "165", "168,285,696", "225,216,372", "185,643,336",
)}
