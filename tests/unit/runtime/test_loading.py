"""Loading: what is light stays light, the environment is set before, the interpreter's switching is put back."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from pydantic import ValidationError

from pizzabot_builtin_plugins import deepagents_runtime
from pizzabot_builtin_plugins.deepagents_runtime import loading
from pizzabot_builtin_plugins.deepagents_runtime.settings import RuntimeSettings

HEAVY = ("langgraph", "langchain", "langchain_core", "deepagents", "langsmith")


def test_the_plugin_and_a_runtime_are_made_without_importing_the_graph_stack() -> None:
    code = (
        "import sys\nfrom types import SimpleNamespace\n"
        "from pizzabot_builtin_plugins import deepagents_runtime as plugin\n"
        "(offer,) = plugin.pizzabot_agent_runtimes()\n"
        "offer.create(SimpleNamespace(logger=None, redact=str), offer.settings())\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_every_step_is_a_module_and_none_brings_a_providers_sdk() -> None:
    code = (
        "import sys\n"
        "from pizzabot_builtin_plugins.deepagents_runtime import loading\n"
        "loading.set_environment(tracing=False)\n"
        "print(loading.load() > 0, [n for n in ('openai', 'anthropic', 'boto3', 'litestar') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "True []"


def test_the_offer_is_named_deepagents() -> None:
    (offer,) = deepagents_runtime.pizzabot_agent_runtimes()
    assert offer.name == "deepagents"
    assert offer.settings is RuntimeSettings


def test_conversations_are_not_traced_unless_the_settings_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in loading.TRACING:
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("LANGGRAPH_DELTA_MAX_SUPERSTEPS_SINCE_SNAPSHOT", "7")
    loading.set_environment(tracing=True)
    assert os.environ["LANGSMITH_TRACING"] == "true"
    loading.set_environment(tracing=False)
    assert {os.environ[name] for name in loading.TRACING} == {"false"}
    assert os.environ["LANGGRAPH_DELTA_MAX_SUPERSTEPS_SINCE_SNAPSHOT"] == "7"


@pytest.mark.parametrize(("tracing", "threads"), [(False, set()), (True, {"asyncio_0"})])
def test_untraced_calls_go_to_no_thread(tracing: bool, threads: set[str]) -> None:
    code = (
        "import asyncio, threading\n"
        "from pizzabot_builtin_plugins.deepagents_runtime import loading\n"
        f"loading.set_environment(tracing={tracing})\n"
        "loading.load()\n"
        "import langsmith\n"
        "assert not langsmith.utils.tracing_is_enabled()\n"
        "@langsmith.traceable\n"
        "async def answer(): return 42\n"
        "async def main():\n"
        "    assert await answer() == 42\n"
        "    print({thread.name for thread in threading.enumerate()} - {'MainThread'})\n"
        "asyncio.run(main())"
    )
    kept = {name: value for name, value in os.environ.items() if name not in loading.TRACING}
    environment = kept if tracing else kept | {"LANGSMITH_TRACING_V2": "true"}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == str(threads)


def test_switching_is_quick_inside_and_put_back_after_the_last_one_has_left() -> None:
    before = sys.getswitchinterval()
    with loading.quick_switching():
        with loading.quick_switching():
            assert sys.getswitchinterval() == pytest.approx(loading.SWITCH_SECONDS)
        assert sys.getswitchinterval() == pytest.approx(loading.SWITCH_SECONDS)
    assert sys.getswitchinterval() == pytest.approx(before)


@pytest.mark.parametrize("section", [{"graphs_kept": 0}, {"graphs_kept": 65}, {"graphs": 3}])
def test_settings_out_of_bounds_or_unknown_are_refused(section: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        RuntimeSettings.model_validate(section)
