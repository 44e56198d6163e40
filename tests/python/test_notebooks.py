"""The notebooks of docs/notebooks: their cells run in order, and their files are small."""
import json
import pathlib

import pytest

import notebooks

FOLDER = pathlib.Path(__file__).parents[2] / "docs" / "notebooks"


@pytest.mark.parametrize("name", ["kernel", "city", "pose_graph", "pde_loss"])
def test_a_notebook_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = FOLDER / f"{name}.ipynb"
    assert notebooks.run(file) >= 3
    assert file.stat().st_size < 200_000
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    assert any(cell.get("outputs") for cell in cells), "no outputs are stored: notebooks.py --write"
