"""The measurement of models that write."""

import json

import pytest

pytest.importorskip("transformers", reason="generation is measured on models of transformers")

from thunder_benchmarks import generation  # noqa: E402


def test_it_measures_prompt_and_tokens_of_each_model_and_cache(tmp_path, capsys):
    words = "--models llama --layers 1 --width 16 --prompt 4 --tokens 4 --rounds 1".split()
    found = generation.main([*words, "--json", str(tmp_path / "found.json")])
    assert [(w.compiler, w.cache, w.programs) for w in found] == [
        ("eager", "dynamic", 0), ("thunder", "dynamic", 2), ("eager", "static", 0), ("thunder", "static", 2)
    ]  # fmt: skip
    assert all([w.prompt_ms > 0 and w.first_s > 0 for w in found])
    read = json.loads((tmp_path / "found.json").read_text())
    assert read[1]["model"] == "llama" and read[1]["programs"] == 2
    assert "token ms" in capsys.readouterr().out
