"""The README's two commands: there, alone in their blocks, and what CI runs."""

import asyncio
import types

from documents import REPOSITORY, blocks, read

from pizzabot.kernel import Plugins, PluginState

TRY = 'pip install ".[local]" && pizzabot serve --model local:smollm2-135m'
WORK = 'pip install -e ".[dev]" && pytest'


def commands():
    return [block.text.strip() for block in blocks("README.md", "sh")]


def test_each_of_the_two_commands_has_a_block_of_its_own():
    assert commands().count(TRY) == 1
    assert commands().count(WORK) == 1


def test_the_question_for_the_other_terminal_has_a_block_of_its_own():
    assert commands().count('pizzabot chat "Tell me about pizza"') == 1


def test_the_readme_counts_the_examples_and_names_what_each_offers():
    words = {
        "provider": "a provider",
        "storage": "a storage",
        "transport": "a transport",
        "runtime": "runtime",
        "tool": "tools",
        "skill": "a source of skills",
        "bundle": "a bundle",
        "materializer": "a materializer",
    }
    kinds = [path.parent.name.split("-")[0] for path in (REPOSITORY / "examples").glob("*/pyproject.toml")]
    listed = " ".join(read("README.md").partition("whole packages to copy:")[2].partition(".")[0].split())
    numbers = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    assert f"{numbers[len(kinds)]} whole packages" in read("README.md")
    assert [kind for kind in kinds if words[kind] not in listed] == []


def test_ci_installs_and_tests_as_the_readme_says():
    lines = [line.replace(" --quiet", "") for line in read(".ci/run").splitlines()]
    for part in WORK.split(" && "):
        assert part in lines


def test_contributing_names_the_checks_that_ci_runs():
    checks = ["ruff check .", "ruff format --check .", "mypy", "lint-imports", "pytest"]
    assert "\n".join(checks) in read("CONTRIBUTING.md")
    assert [line for line in read(".ci/run").splitlines() if line in checks] == checks


def test_the_plugin_in_the_readme_loads_and_answers():
    module = types.ModuleType("pizzabot_oracle")
    text = blocks("README.md", "python")[0].text
    exec(compile(text, "README.md", "exec"), module.__dict__)
    plugins = Plugins(builtins={}, discover=False, extra=[("oracle", module)]).load()
    assert [report.state for report in plugins.report()] == [PluginState.LOADED]
    oracle = plugins.choose("model_providers", "oracle").offer.create(None, None)

    async def answer():
        model = await oracle.build((await oracle.models())[0].id)
        return (await model.ainvoke("Which pizza?")).content

    assert asyncio.run(answer()) == "Margherita. Always."
