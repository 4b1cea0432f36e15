"""docs/use/configuration.md has every setting with its default, and nothing that is none; its examples are accepted."""

import json
import re
import tomllib

import pytest
from documents import REPOSITORY, blocks, code_words, pages, read, rows, sections, source
from pydantic import BaseModel, SecretStr

from pizzabot.kernel import Plugins
from pizzabot.kernel.creation import validate
from pizzabot.settings import load_settings
from pizzabot.settings.environment import ALIASES
from pizzabot.settings.model import SECTION_OF_KIND, Document
from pizzabot_hookspecs.support.references import replace_references

PAGE = "docs/use/configuration.md"
NOT_SET = "not set"


def fields_of(model, section):
    """(section, key) -> field, tables inside a model as sections of their own."""
    found = {}
    for key, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            found |= fields_of(inner, f"{section}.{key}")
        else:
            found[section, key] = field
    return found


def built_ins():
    return Plugins(discover=False).load()


def settings_in_the_code():
    found = {}
    for name, field in Document.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            found |= fields_of(field.annotation, name)
        else:
            found["", name] = field
    plugins = built_ins()
    for kind, section in SECTION_OF_KIND.items():
        for record in plugins.offers(kind):
            if record.offer.settings is not None:
                found |= fields_of(record.offer.settings, f"{section}.{record.offer.name}")
    return found


def settings_on_the_page():
    found = {}
    for heading, text in sections(PAGE).items():
        section = re.fullmatch(r"`\[([a-z_.]+)\]`", heading)
        if section or heading == "Top level":
            for cells in rows(text):
                found[section[1] if section else "", code_words(cells[0])[0]] = cells[1]
    return found


def test_the_page_and_the_code_have_the_same_keys():
    assert set(settings_on_the_page()) == set(settings_in_the_code())


def test_every_default_on_the_page_is_the_code_s():
    written = settings_on_the_page()
    for place, field in settings_in_the_code().items():
        default = field.get_default(call_default_factory=True)
        if place == ("", "data_root"):
            continue  # a folder of the user's
        if default is None:
            assert written[place] == NOT_SET, place
            continue
        default = list(default) if isinstance(default, tuple) else default
        assert json.loads(code_words(written[place])[0]) == default, place


def test_every_short_variable_is_on_the_page_with_its_setting():
    text = read(PAGE)
    for name, path in ALIASES.items():
        line = next(line for line in text.splitlines() if line.startswith(f"| `{name}"))
        assert f"`{'.'.join(path)}" in line


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_variable_that_a_page_names_is_read_somewhere(page):
    for name in set(re.findall(r"\bPIZZABOT_[A-Z_]*[A-Z]\b", read(page))):
        assert name.startswith("PIZZABOT__") or name in source(), f"{page.name} names {name}"


def configurations():
    return [
        pytest.param(block.text, id=f"{page.relative_to(REPOSITORY)}-{number}")
        for page in pages()
        for number, block in enumerate(blocks(page, "toml"))
        if not {"project", "build-system", "dependencies"} & set(tomllib.loads(block.text))
    ]


@pytest.mark.parametrize("text", configurations())
def test_every_configuration_that_a_page_shows_is_accepted(text, tmp_path):
    (tmp_path / "pizzabot.toml").write_text(text)
    settings = load_settings(environ={"HOME": str(tmp_path)}, cwd=tmp_path)
    plugins = built_ins()
    uses = {
        "storage_backends": {settings.storage.use},
        "agent_runtimes": {settings.runtime.use},
        "transports": set(settings.transports.use),
    }
    chosen = [(kind, use, use) for kind, names in uses.items() for use in names]
    chosen += [("model_providers", offer, use) for use, offer in settings.models.uses.items()]
    for kind, offer, use in chosen:
        record = next((record for record in plugins.offers(kind) if record.offer.name == offer), None)
        section = replace_references(settings.section(kind, use), lambda reference: "x" * 40)
        if record is not None and not examples_own(section, record.offer.settings):
            validate(record, use=use, section=section, redact=str)


def examples_own(section, model):
    """A stand-in's keys in the section that it shares with the built-in: the example's tests check those."""
    return model is not None and any(key.startswith("audit_") for key in section)


def test_a_secret_has_no_default():
    for place, field in settings_in_the_code().items():
        if SecretStr in getattr(field.annotation, "__args__", ()):
            assert field.default is None, place
