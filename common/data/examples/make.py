#!/usr/bin/env python3
"""Writes the small inputs of the worked examples in the pages: folders of q.npy, k.npy, v.npy, and do.npy for gradients."""
import math
import os

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
# Axes [batch, heads, seq, dim]; one batch entry, and where there is one head, one head
EXAMPLES = {
    # Scores 0, 1, 2 of one query
    "three_keys": {"q": [[1]], "k": [[0], [1], [2]], "v": [[1], [2], [3]]},
    # With --scale 0.5: scores (ln 3, 0) and (2, 2), weights (3/4, 1/4) and (1/2, 1/2)
    "two_by_two": {"q": [[2 * math.log(3), 0], [4, 2]], "k": [[1, 0], [0, 2]], "v": [[4, 0], [0, 4]], "do": [[1, 2], [3, 1]]},
    # Five queries with two keys, two queries with five: every query has the scores 0, 1, ...
    "five_by_two": {"q": [[1]] * 5, "k": [[0], [1]], "v": [[1], [2]]},
    "two_by_five": {"q": [[1]] * 2, "k": [[0], [1], [2], [3], [4]], "v": [[1], [2], [3], [4], [5]]},
    # Four query heads on two heads of K and V
    "four_heads": {"q": [[[1]], [[2]], [[1]], [[-1]]], "k": [[[0], [math.log(3)]], [[0], [math.log(4)]]],
                   "v": [[[4], [8]], [[10], [20]]], "do": [[[1]], [[2]], [[1]], [[2]]]},
}

for name, tensors in EXAMPLES.items():
    os.makedirs(os.path.join(HERE, name), exist_ok=True)
    for tensor, values in tensors.items():
        x = np.array(values, dtype=np.float32)
        np.save(os.path.join(HERE, name, tensor + ".npy"), x.reshape((1,) * (4 - x.ndim) + x.shape))
