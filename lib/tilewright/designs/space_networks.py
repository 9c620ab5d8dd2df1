"""Options with which a space reads its networks: bits of operands, and shares of zeros."""

from collections.abc import Sequence
from dataclasses import replace

from tilewright.base.errors import InputError, KeyPath, Problems
from tilewright.designs.space_schema import SpaceFile
from tilewright.workload.network_options import NetworkOptions


def network_options(entry: SpaceFile, names: Sequence[str], problems: Problems) -> dict[str, NetworkOptions]:
    """Options with which the networks `names` of a space file are read, by name of the network.

    A file can give shares of zeros for all networks, and for one network in a table below its name. The shares in the
    table are added to the shares for all networks, and take precedence. Wrong bits, wrong shares of zeros and unknown
    networks are reported in `problems`.
    """
    bits = tuple((key, count) for key, count in (entry.bits or {}).items() if count is not None)
    zeros = {key: given for key, given in (entry.zeros or {}).items() if given is not None}
    shared = {key: share for key, share in zeros.items() if not isinstance(share, dict)}
    of_all = NetworkOptions(bits=bits, zeros=tuple(shared.items()))
    _check(of_all, (), problems)
    result = dict.fromkeys(names, of_all)
    for name, own in ((name, own) for name, own in zeros.items() if isinstance(own, dict)):
        if name not in names:
            problems.unknown_name(("zeros", name), "no network has this name", name, list(names))
        shares = {key: share for key, share in own.items() if share is not None}
        _check(NetworkOptions(zeros=tuple(shares.items())), ("zeros", name), problems)
        result[name] = of_all._replace(zeros=tuple((shared | shares).items()))
    return result


def _check(options: NetworkOptions, start: KeyPath, problems: Problems) -> None:
    """Report wrong bits and shares of zeros in `options`. `start` is the place of the shares of one network in the
    space file. For options of all networks, `start` is (), because their keys are at the top of the file.
    """
    try:
        options.check()
    except InputError as error:
        for one in error.problems:
            option, _, key = one.path.partition(".")
            assert problems.places is not None
            file, line, path = problems.places.place_of((*(start or (option,)), key))
            problems.found.append(replace(one, file=file, line=line, path=path))
