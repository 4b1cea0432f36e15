"""Every relative link leads somewhere, and no page names a machine or a registry's host."""

import re

import pytest
from documents import REPOSITORY, anchors, pages, prose, read

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")

MACHINES = re.compile(r"(?<![\w.~…-])/(?:work|tmp|root|home|Users|opt|mnt|builds?|srv)(?:/|\b)|file://|[A-Z]:\\")
HOSTS = re.compile(
    r"pypi\.org|pythonhosted\.org|registry\.npmjs|npmjs\.com|crates\.io|deb\.debian|conda\.anaconda|huggingface\.co|hf\.co"
)


def named(page):
    return str(page.relative_to(REPOSITORY))


@pytest.mark.parametrize("page", pages(), ids=named)
def test_every_relative_link_resolves(page):
    for target in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        found = page if not path else (page.parent / path).resolve()
        assert found.exists(), f"{named(page)} links to {target}"
        assert found.is_relative_to(REPOSITORY), f"{named(page)} links out of the repository: {target}"
        if anchor:
            assert anchor in anchors(found), f"{named(page)} links to {target}, and there is no such heading"


@pytest.mark.parametrize("page", pages(), ids=named)
def test_no_page_names_a_path_of_a_machine_or_a_registry_host(page):
    assert MACHINES.findall(read(page)) == []
    assert HOSTS.findall(read(page)) == []


def test_every_page_of_docs_is_reached_from_its_index():
    index = REPOSITORY / "docs" / "index.md"
    reached, ahead = {index}, [index]
    while ahead:
        page = ahead.pop()
        for target in LINK.findall(prose(page)):
            found = (page.parent / target.partition("#")[0]).resolve()
            if found.suffix == ".md" and found.exists() and found not in reached:
                reached.add(found)
                ahead.append(found)
    missing = {page for page in pages() if page.is_relative_to(index.parent)} - reached
    assert missing == set()
