import pytest
from echo_site import Site


@pytest.fixture
def site(tmp_path, monkeypatch):
    """An empty site; the engine's own home and the echo provider's world lie in it."""
    for name in ("PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"):
        monkeypatch.delenv(name, raising=False)
    made = Site(tmp_path)
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ECHO_WORLD", str(made.world))
    return made
