"""What executions gave is kept whole; a damaged result is as good as none."""

import pytest

from gradebox.run.store import Result, Store


@pytest.mark.parametrize("place", [5, 100, -5])
def test_damaged_stored_result_is_ignored(tmp_path, place):
    store = Store(tmp_path, "ps1")
    assert store.find("ada", "key") is None
    result = Result('{"events": []}', {"data\udcff.csv": b"1,2\xff"})
    store.keep("ada", "key", result)
    assert store.find("ada", "key") == result
    path = next((tmp_path / "results/ps1/ada").iterdir())
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    assert store.find("ada", "key") is None
