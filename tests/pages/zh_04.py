"""The numbers of the Chinese page of step 04: each is computed as on the English page."""
import step04

PAGE = "docs/zh/04.md"
NUMBERS = {printed: step04.NUMBERS[printed] for printed in (
    "49,152", "58,368", "1.19", "1.25", "0.033", "0.482", "165", "12,672", "4,096", "225,216,372",
    "9,822,756",
)}
