"""Which designs are drawn where there are too many for a picture: the front, and a sample of the others."""

import numpy as np
import pandas

from tilewright.exploration.front import ON_FRONT, Front, spread

SAMPLE_SEED = 0


def order_of_sample(table: pandas.DataFrame) -> pandas.Series:
    """For each index of a design its place in the order in which designs are taken into a sample."""
    indices = np.unique(table["index"].to_numpy())
    return pandas.Series(np.random.default_rng(SAMPLE_SEED).permutation(len(indices)), index=indices)


def drawn_rows(front: Front, most: int, order: pandas.Series) -> pandas.DataFrame:
    """The front and, up to `most` rows, a sample of the other designs, by index; `order` says whom it takes first."""
    rows = front.rows
    if len(rows) <= most:
        return rows
    members = spread(front.members, most)
    others = rows[~rows[ON_FRONT]]
    places = order.loc[others["index"]].to_numpy()
    taken = others.iloc[np.argsort(places, kind="stable")[: most - len(members)]]
    return pandas.concat([members, taken]).sort_values("index", kind="stable")
