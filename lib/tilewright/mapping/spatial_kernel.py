"""The best combinations of one unrolling per array dimension (compiled)."""

import numpy as np

from tilewright.compiled import kernel


@kernel
def best_combinations(factors, start, layer_size, fixed, best_score, best_index):
    """The combinations of highest score, first enumerated first on ties.

    `factors` [candidate, d]: unrolling of each loop dimension by each candidate; candidates of array dimension a are
    rows start[a] .. start[a + 1]. `fixed` [d]: unrolling by array dimensions that are already decided. A combination
    is valid if no loop dimension is unrolled beyond `layer_size`. Score: u + (u / largest unrolling of a dimension - 1)
    with u the product of all factors. Fills `best_score` [n] and `best_index` [n, a] and returns the number of valid
    combinations met (those beaten by a bound are not met when n > 0).
    """
    slots = best_score.shape[0]
    depth = start.shape[0] - 1
    dimensions = layer_size.shape[0]
    total = np.ones((depth + 1, dimensions), np.int64)
    total[0] = fixed
    most = np.ones(depth + 1, np.float64)
    for a in range(depth - 1, -1, -1):
        widest = 1
        for c in range(start[a], start[a + 1]):
            product = 1
            for d in range(dimensions):
                product *= factors[c, d]
            widest = max(widest, product)
        most[a] = most[a + 1] * widest
    position = start[:-1].copy()
    filled = 0
    valid = 0
    a = 0
    while a >= 0:
        if position[a] == start[a + 1]:
            position[a] = start[a]
            a -= 1
            if a >= 0:
                position[a] += 1
            continue
        units = 1.0
        largest = 1
        fits = True
        for d in range(dimensions):
            product = total[a, d] * factors[position[a], d]
            total[a + 1, d] = product
            units *= product
            largest = max(largest, product)
            fits = fits and product <= layer_size[d]
        if fits and slots > 0 and filled == slots and a + 1 < depth:
            reach = units * most[a + 1]
            fits = reach + (reach / largest - 1) > best_score[slots - 1]
        if not fits:
            position[a] += 1
            continue
        if a + 1 < depth:
            a += 1
            continue
        valid += 1
        score = units + (units / largest - 1)
        if slots > 0 and (filled < slots or score > best_score[slots - 1]):
            i = min(filled, slots - 1)
            while i > 0 and best_score[i - 1] < score:
                best_score[i] = best_score[i - 1]
                best_index[i] = best_index[i - 1]
                i -= 1
            best_score[i] = score
            best_index[i] = position
            filled = min(filled + 1, slots)
        position[a] += 1
    return valid
