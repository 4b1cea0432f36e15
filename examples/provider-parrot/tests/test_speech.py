"""What parrots say."""

from __future__ import annotations

import pytest
from pizzabot_parrot.speech import spoken, words


@pytest.mark.parametrize("text", ["", "one", " one  two\n three ", "a", "\n\n", "ünï cödé 🍕 x"])
def test_words_joined_are_the_text(text: str) -> None:
    assert "".join(words(text)) == text


def test_a_loud_parrot_shouts() -> None:
    assert spoken("more pizza", loud=True, sentence_case=False) == "MORE PIZZA"


def test_sentence_case_begins_each_sentence_with_a_capital_letter() -> None:
    assert spoken("one. two! is it 3? four", loud=False, sentence_case=True) == "One. Two! Is it 3? Four"
