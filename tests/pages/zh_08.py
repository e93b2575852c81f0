"""The numbers of the Chinese page of step 08: each is computed as on the English page."""
import step08

PAGE = "docs/zh/08.md"
NUMBERS = {printed: step08.NUMBERS[printed] for printed in (
    "1,118,592", "1,321,008", "385,284", "1,151,536", "215,812", "169,472", "393,984", "0.864",
)}
