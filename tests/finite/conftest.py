"""Let the tests of the simulation share their declarations."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def without_echo(monkeypatch):
    """Messages that leave in a field what comes back of a site's own last emission: a rule that is wrong."""
    from symcavity.finite import messages

    update = messages.Messages._update

    def forgetful(self, kind, share):
        self._told = {key: 0 * value for key, value in self._told.items()}
        return update(self, kind, share)

    monkeypatch.setattr(messages.Messages, "_update", forgetful)
