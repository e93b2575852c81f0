"""The numbers of the page of step 05."""
from computed import moved, run

PAGE = "steps/05_fa2_loop_swap/README.md"
NUMBERS = {
    "1,652,352": lambda: run("05_fa2_loop_swap")["traffic"]["reads"],
    "131,076": lambda: run("05_fa2_loop_swap")["traffic"]["writes"],
    "0.641": lambda: moved(run("05_fa2_loop_swap")) / moved(run("04_fa1_tiled")),
}
QUOTED = {}
