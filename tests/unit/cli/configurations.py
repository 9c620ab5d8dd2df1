"""Messages about configurations, for tests."""

from typing import Any

import pytest
from tilewright.base.errors import InputError
from tilewright.cli.config import plan_of


def problems_of(config: Any) -> str:
    """Return the message about a wrong configuration."""
    with pytest.raises(InputError) as caught:
        plan_of(config)
    return str(caught.value)
