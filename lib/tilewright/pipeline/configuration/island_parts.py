"""Parts of a search for plans with islands: the opening, the rounds of the islands, and the answer.

Each part reads the states that earlier parts wrote, and can be a job of its own.
"""

OPENING, ANSWER = "opening", "answer"
"""Names of the first and of the last part of a search with islands. The part for one round of one island has a name
such as `1.2`: round 1 of island 2. Both numbers count from 1.
"""


def sender_to(island: int, islands: int) -> int:
    """Number of the island that sends plans to `island`: the island before it. The first island gets plans from the
    last island.
    """
    return (island - 1) % islands


def part_name(number: int, island: int) -> str:
    """Name of the search part for one round of one island, such as `1.2`. The round `number` and `island` count from 0;
    in the name, both count from 1.
    """
    return f"{number + 1}.{island + 1}"


def state_parts(islands: int, rounds: int) -> dict[str, tuple[int, int] | None]:
    """Parts of a search with islands that write a state (a result that later parts read). The keys are the names of the
    parts, in an order in which the parts can run. The values are pairs (round, island), both counted from 0, or None
    for the opening.
    """
    made = {part_name(number, island): (number, island) for number in range(rounds) for island in range(islands)}
    return {OPENING: None, **made}


def parts_before(part: str, islands: int, rounds: int) -> list[str]:
    """Names of the earlier parts whose states the part `part` of a search with islands reads:

    * The opening reads no states.
    * The first round of an island reads the state of the opening.
    * A later round reads the states of the opening, of the previous round of the same island, and of the previous round
      of the island that sends its plans (`sender_to`).
    * The answer reads the states of the opening and of the last round of each island.
    """
    if part == OPENING:
        return []
    if part == ANSWER:
        return [OPENING, *(part_name(rounds - 1, island) for island in range(islands))]
    made = state_parts(islands, rounds)[part]
    assert made is not None  # only the opening has no round
    number, island = made
    if number == 0:
        return [OPENING]
    return [OPENING, *(part_name(number - 1, one) for one in (island, sender_to(island, islands)))]
