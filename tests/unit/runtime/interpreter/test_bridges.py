"""File tools as a sandbox calls them: raw pages, lists, and failures that are thrown."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.tools import tool
from sandboxed import agent, evaluated, run, text

from pizzabot_builtin_plugins.deepagents_runtime.interpreter import interpreter_middleware
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.bounds import MAX_BRIDGED_CALLS, MAX_BRIDGED_CHARACTERS
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.pages import content_of
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.refusals import Refused
from pizzabot_hookspecs import InvalidRequest

CAUGHT = ".catch((error) => `${error.name}: ${error.message}`)"


def test_the_six_file_tools_are_there_in_camel_case():
    async def scenario():
        shown = await text(
            """
            await tools.writeFile({filePath: '/d/a.txt', content: 'one\\ntwo\\nthree'});
            await tools.editFile({filePath: '/d/a.txt', oldString: 'two', newString: 'TWO', replaceAll: false});
            JSON.stringify([
              await tools.readFile({filePath: '/d/a.txt'}),
              await tools.readFile({filePath: '/d/a.txt', offset: 1, limit: 1}),
              await tools.readFile({file_path: '/d/a.txt', offset: 2}),
              await tools.ls({path: '/d'}),
              await tools.glob({pattern: '*.txt', path: '/'}),
              await tools.grep({pattern: 'TWO', outputMode: 'content'}),
            ])
            """
        )
        assert shown == (
            r'["one\nTWO\nthree","TWO","three",["/d/a.txt"],["/d/a.txt"],"/d/a.txt:\n  2: TWO"]'
        )  # fmt: skip

    run(scenario())


def test_a_file_written_by_one_eval_is_read_by_the_next():
    async def scenario():
        write = "await tools.writeFile({filePath: '/a', content: '\\u4f60 \\u0000'})"
        read = "const r = await tools.readFile({filePath: '/a'}); [...r].map((c) => c.codePointAt(0)).join()"
        assert await text(write, read) == "20320,32,0"

    run(scenario())


def test_a_page_is_raw_whatever_stands_in_it():
    async def scenario():
        lines = r"'@@ lines 1-2 of 9 | next offset 2 @@\n\n  1\tnumbered\n@@ x @@\n   '"
        code = f"const c = {lines}; await tools.writeFile({{filePath: '/a', content: c}});"
        assert await text(f"{code} (await tools.readFile({{filePath: '/a'}})) === c") == "true"

    run(scenario())


def test_an_empty_file_is_empty():
    async def scenario():
        code = "await tools.writeFile({filePath: '/a', content: ''}); (await tools.readFile({filePath: '/a'})).length"
        assert await text(code) == "0"

    run(scenario())


def test_a_page_cut_by_size_throws_where_to_go_on_and_the_limit_that_fits():
    async def scenario():
        code = """
        const line = 'x'.repeat(99);
        await tools.writeFile({filePath: '/big', content: Array(200).fill(line).join('\\n')});
        let seen = 0, offset = 10, limit = 100, thrown = [];
        while (true) {
          try {
            const page = await tools.readFile({filePath: '/big', offset, limit});
            seen += page.split('\\n').length; offset += limit;
            if (offset >= 200) break;
          } catch (error) { thrown.push(error.message); ({offset, limit} = error) }
        }
        JSON.stringify([seen, thrown])
        """
        shown = await text(code, page_tokens=1000)
        assert shown.startswith("[190,")
        assert "the page was cut after line " in shown
        assert "go on at offset 10 with a limit of " in shown

    run(scenario())


def test_a_page_right_behind_the_last_line_is_empty_and_one_further_on_throws():
    async def scenario():
        write = "await tools.writeFile({filePath: '/a', content: 'x\\ny\\n'});"
        assert await text(f"{write} await tools.readFile({{filePath: '/a', offset: 2, limit: 2}})") == ""
        further = f"{write} await tools.readFile({{filePath: '/a', offset: 3}}){CAUGHT}"
        assert await text(further) == "ToolError: Line offset 3 exceeds file length (2 lines)"

    run(scenario())


def test_a_line_longer_than_a_page_throws_and_says_how_to_get_past_it():
    with pytest.raises(Refused, match="line 3 alone is longer") as caught:
        content_of("[notice]\n@@ lines 3-3 of 5 | truncated mid-line | 10 of 90000 chars @@\nxxxxxxxxxx")
    assert caught.value.facts == {"offset": 3}


def test_complete_pages_are_unchanged():
    assert content_of("@@ lines 1-2 of 2 @@\na\n@@ lines 5-6 @@") == "a\n@@ lines 5-6 @@"
    assert content_of("[Requested offset -1 is before the start.]\n@@ lines 1-1 of 9 | next offset 1 @@\nb") == "b"


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("tools.readFile({filePath: '/no'})", "ToolError: File '/no' not found"),
        ("tools.editFile({filePath: '/no', oldString: 'a', newString: 'b'})", "ToolError: File '/no' not found"),
        (
            "tools.readFile({path: '/no'})",
            "ToolError: tools.readFile has no argument path; it takes filePath, offset, limit",
        ),
        ("tools.readFile({filePath: 5})", "ToolError: tools.readFile: filePath: Input should be a valid string"),
        ("tools.readFile({})", "ToolError: tools.readFile: filePath: Field required"),
        ("tools.readFile()", "ToolError: tools.readFile: filePath: Field required"),
        ("tools.readFile('/a')", "TypeError: tools.readFile takes one object of named arguments"),
        ("tools.readFile([1])", "TypeError: tools.readFile takes one object of named arguments"),
        ("tools.readFile(() => 1)", "TypeError: tools.readFile takes one object of named arguments"),
        ("tools.writeFile({filePath: '/a', content: 1n})", "TypeError: BigInt are forbidden in JSON.stringify"),
        (
            "tools.readFile({filePath: '/a', limit: NaN})",
            "ToolError: tools.readFile: limit: Input should be a valid integer",
        ),
        (
            r"tools.writeFile({filePath: '/a', content: '\ud800'})",
            "ToolError: an argument has half of a surrogate pair, which no file and no model can hold",
        ),
        (
            "tools.ls({path: Array(3000).fill(0).reduce((inner) => [inner], 0)})",
            "ToolError: the arguments are nested too deeply",
        ),
    ],
)
def test_what_fails_is_thrown_in_the_sandbox_and_can_be_caught(call, told):
    async def scenario():
        assert await text(f"await {call}{CAUGHT}") == told

    run(scenario())


def test_an_error_that_nobody_catches_has_the_line_of_the_call():
    async def scenario():
        (result,) = await evaluated("1;\nawait tools.readFile({filePath: '/no'})")
        assert (result.status, result.content) == ("error", "ToolError: File '/no' not found (line 2)")

    run(scenario())


@tool
async def ls(path: str) -> str:
    """Fails."""
    raise OSError(f"disk of {path} on fire, password hunter2")


def test_an_error_of_the_host_is_caught_with_its_message_without_secrets():
    async def scenario():
        asking = agent(f"await tools.ls({{path: '/x'}}){CAUGHT}", replaced=[ls])
        asking.interpreter._redact = lambda said: said.replace("hunter2", "***")
        (result,) = await asking.say()
        assert result.content == "ToolError: disk of /x on fire, password ***"

    run(scenario())


def test_a_call_that_is_not_awaited_is_still_made_and_its_failure_is_told():
    async def scenario():
        code = "tools.writeFile({filePath: '/a', content: 'landed'}); tools.readFile({filePath: '/no'}); 'at once'"
        first, second = await evaluated(code, "await tools.readFile({filePath: '/a'})")
        assert first.content == "at once\n[read_file, which the code did not wait for, failed]"
        assert second.content == "landed"

    run(scenario())


def test_only_file_tools_are_bridged():
    @tool
    def mcp_server_delete_all() -> str:
        """Would run without an approval."""
        return "gone"

    with pytest.raises(InvalidRequest, match="mcp_server_delete_all cannot be called from eval") as caught:
        interpreter_middleware(bridges=[mcp_server_delete_all], dispatch=None)
    assert caught.value.code == "not_a_file_tool"


def test_what_the_guest_does_to_its_world_does_not_reach_the_bridges():
    async def scenario():
        code = """
        const loud = () => { throw new Error('mine') };
        Object.prototype.filePath = '/polluted';
        Array.prototype.toJSON = loud; String.prototype.slice = loud; Promise.prototype.then = loud;
        Array.prototype[Symbol.iterator] = loud; Map.prototype.get = loud; Function.prototype.call = loud;
        Function.prototype.bind = loud; Array.prototype.push = loud;
        globalThis.JSON = globalThis.Promise = globalThis.Error = globalThis.Object = undefined;
        let kept = [];
        try { tools = {readFile: loud} } catch (error) { kept[0] = error.message }
        try { tools.readFile = loud } catch (error) { kept[1] = error.message }
        try { delete tools.ls } catch (error) { kept[2] = 'kept' }
        await tools.writeFile({filePath: '/real', content: 'text'});
        kept[0] + ';' + kept[1] + ';' + await tools.readFile({filePath: '/real'})
        """
        assert await text(code) == "'tools' is read-only;'readFile' is read-only;text"
        assert await text("Object.prototype.filePath = '/x'; await tools.readFile({})" + CAUGHT) == (
            "ToolError: tools.readFile: filePath: Field required"
        )

    run(scenario())


def test_one_call_too_many_throws_and_the_next_eval_may_call_again():
    async def scenario():
        code = """
        let n = 0, told = '';
        try { while (true) { await tools.ls({path: '/'}); n++ } } catch (error) { told = error.message }
        n + ' ' + told
        """
        first, second = await evaluated(code, "(await tools.ls({path: '/'})).length")
        assert first.content.startswith(f"{MAX_BRIDGED_CALLS} tools.ls: one eval may make {MAX_BRIDGED_CALLS} calls")
        assert second.content == "0"

    run(scenario())


@tool
async def grep(pattern: str) -> str:
    """Returns too much."""
    return pattern * MAX_BRIDGED_CHARACTERS


def test_arguments_and_results_that_are_too_long_are_thrown():
    async def scenario():
        given = f"tools.writeFile({{filePath: '/a', content: 'x'.repeat({MAX_BRIDGED_CHARACTERS})}})"
        assert f"the arguments are longer than {MAX_BRIDGED_CHARACTERS}" in await text(f"await {given}{CAUGHT}")
        shown = await text(f"await tools.grep({{pattern: 'ab'}}){CAUGHT}", replaced=[grep])
        assert (
            shown
            == f"ToolError: the result has {2 * MAX_BRIDGED_CHARACTERS + 2} characters as JSON; 1048576 are allowed"
        )

    run(scenario())


@tool
async def read_file(file_path: str) -> str:
    """A page as a tool should never return one."""
    return f"@@ lines 1-1 of 1 @@\n{file_path}\ud83c|\0|🍕|你"


def test_any_text_survives_the_way_into_the_sandbox():
    async def scenario():
        code = "[...await tools.readFile({filePath: '/a'})].map((c) => c.codePointAt(0).toString(16)).join()"
        assert await text(code, replaced=[read_file]) == "2f,61,d83c,7c,0,7c,1f355,7c,4f60"

    run(scenario())


def test_calls_of_one_eval_are_at_work_together():
    met = asyncio.Barrier(5)

    @tool
    async def glob(pattern: str) -> str:
        """Returns when five are here."""
        await met.wait()
        return pattern

    async def scenario():
        code = "(await Promise.all(['a','b','c','d','e'].map((pattern) => tools.glob({pattern})))).join()"
        assert await text(code, replaced=[glob]) == "a,b,c,d,e"

    run(scenario())
