"""What executions gave is kept whole; a damaged result is as good as none."""

from pathlib import Path

import pytest

from gradebox.run.store import FILES, RESULT, Store, read


@pytest.mark.parametrize("name", [RESULT, f"{FILES}/data.csv"])
def test_a_damaged_result_is_none(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path, "ps1")
    with store.workplace() as folder:
        (folder / FILES).mkdir()
        (folder / FILES / "data.csv").write_text("1,2")
        result = store.keep("ada", "key", folder, '{"events": []}')
    assert store.find("ada", "key") == result
    assert read(result) == {"events": []}
    path = result / name
    path.write_text(path.read_text()[:-1])
    assert store.find("ada", "key") is None
