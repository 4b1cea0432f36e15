"""What a server answers becomes text and images, whatever it is."""

import json
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from pizzabot_builtin_plugins.mcp_client.content import read_result
from pizzabot_builtin_plugins.mcp_client.settings import MAX_IMAGE_CHARACTERS, MAX_IMAGES


def read(*content, structured=None, limit=1_000):
    return read_result(SimpleNamespace(content=list(content), structuredContent=structured, isError=False), limit=limit)


def texts(answer):
    return [block["text"] for block in answer.blocks if block["type"] == "text"]


def test_nothing_is_said_in_words():
    assert texts(read()) == ["(no output)"]


def test_structured_content_alone_is_shown_as_text():
    answer = read(structured={"a": "ä"})
    assert texts(answer) == ['{"a": "ä"}']
    assert answer.artifact == {"structured_content": {"a": "ä"}}


def test_the_limit_is_that_of_all_texts_together():
    answer = read({"type": "text", "text": "a" * 6}, {"type": "text", "text": "b" * 6}, limit=10)
    assert texts(answer) == ["a" * 6, "b" * 4, "[the result is cut here: 2 more characters are not shown]"]


def test_structured_content_over_the_limit_is_not_kept():
    assert read({"type": "text", "text": "x"}, structured={"a": "b" * 100}, limit=50).artifact is None


def test_images_are_bounded_in_number_and_size_and_of_known_types():
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    answer = read(*[image] * (MAX_IMAGES + 2))
    assert sum(block["type"] == "image" for block in answer.blocks) == MAX_IMAGES
    assert texts(answer) == ["[2 images are left out: too many or too large]"]
    assert "1 images" in texts(read({**image, "data": "A" * (MAX_IMAGE_CHARACTERS + 1)}))[0]
    assert "'image/tiff'" in texts(read({**image, "mimeType": "image/tiff"}))[0]


def test_resources_are_read_and_become_sources():
    answer = read(
        {"type": "resource", "resource": {"uri": "file:///a", "text": "hello", "name": "a"}},
        {"type": "resource", "resource": {"uri": "file:///b", "blob": "AAAA", "mimeType": "application/zip"}},
        {"type": "resource", "resource": {"uri": "file:///c", "blob": "AAAA", "mimeType": "image/png"}},
    )
    assert [block["type"] for block in answer.blocks] == ["text", "text", "image"]
    assert "file:///b (application/zip)" in texts(answer)[1]
    assert [source["url"] for source in answer.artifact["sources"]] == ["file:///a", "file:///b", "file:///c"]


def test_a_lone_surrogate_does_not_reach_the_checkpoint():
    assert texts(read({"type": "text", "text": "a\ud83d"})) == ["a?"]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "data", "mimeType", "resource", "uri", "blob", "name"])
            | st.text(max_size=3),
            inner | st.sampled_from(["text", "image", "audio", "resource", "resource_link"]),
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(st.lists(ANYTHING, max_size=4), ANYTHING)
def test_any_answer_is_read(content, structured):
    answer = read(*content, structured=structured)
    assert answer.blocks
    assert all(block["type"] in {"text", "image"} for block in answer.blocks)
    json.dumps(answer.blocks).encode()
