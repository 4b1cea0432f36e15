"""What the code of a model may do and what comes back: values, errors, names, output."""

from __future__ import annotations

import time

import pytest
from sandboxed import agent, evaluated, run, text

from pizzabot_builtin_plugins.deepagents_runtime.interpreter.bounds import MAX_CODE_BYTES, MAX_RESULT_CHARACTERS
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.declarations import redeclarable


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("1 + 1", "2"),
        ("'text'", "text"),
        ("undefined", "undefined"),
        ("null", "null"),
        ("({a: [1, {b: 2n}]})", '{"a":[1,{"b":"2n"}]}'),
        ("new Map([['k', new Set([1])]])", '[["k",[1]]]'),
        ("(function named() {})", "[function named]"),
        ("const o = {}; o.o = o; o", "[an object that cannot be shown: circular reference]"),
        ("await Promise.resolve(5) + 1", "6"),
        ("const f = async () => { await null; return 'late' }; await f()", "late"),
        ("new Error('not thrown')", "Error: not thrown"),
        ("Symbol('s')", "Symbol(s)"),
        ("10n ** 20n", "100000000000000000000n"),
        ("'\\u00fc \\u{1F355} \\u4f60'", "ü 🍕 你"),
    ],
)
def test_the_last_expression_is_the_result(code, shown):
    async def scenario():
        assert await text(code) == shown

    run(scenario())


def test_console_output_stands_before_the_result():
    async def scenario():
        assert await text("console.log('a', {b: 1}); console.error(['c']); 7") == 'a {"b":1}\n["c"]\n7'
        assert await text("console.log('only this')") == "only this"

    run(scenario())


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("\n\nnull.x", "TypeError: cannot read property 'x' of null (line 3)"),
        ("\nthrow new RangeError('too far')", "RangeError: too far (line 2)"),
        ("a b", "SyntaxError: expecting ';' (line 1)"),
        ("throw 'just text'", "just text"),
        ("throw {code: 5}", '{"code":5}'),
        ("import fs from 'fs'", "SyntaxError: Unexpected identifier 'fs' (line 1). There are no modules to import."),
        ("await import('fs')", "ReferenceError: Error resolving module 'fs' from 'eval_script'"),
        ("Object.defineProperty(Error.prototype, 'name', {get() { throw 1 }}); throw new Error('x')", "Error"),
    ],
)
def test_an_error_comes_back_with_name_message_and_line_and_the_run_goes_on(code, shown):
    async def scenario():
        first, second = await evaluated(code, "'still here'")
        assert (first.status, first.content) == ("error", shown)
        assert (second.status, second.content) == ("success", "still here")

    run(scenario())


def test_what_was_printed_before_an_error_is_not_lost():
    async def scenario():
        assert await text("console.log('before'); throw new Error('then')") == "before\nError: then (line 1)"

    run(scenario())


def test_names_stay_for_the_next_eval_of_the_turn_and_may_be_declared_again():
    async def scenario():
        codes = ["const a = 1; let b = 2; function c() { return 3 }; globalThis.d = 4", "const a = 10; [a, b, c(), d]"]
        assert await text(*codes) == "[10,2,3,4]"

    run(scenario())


def test_names_are_gone_in_the_next_turn():
    async def scenario():
        asking = agent("globalThis.kept = (globalThis.kept ?? 0) + 1; kept")
        assert [(await asking.say())[-1].content for _ in range(2)] == ["1", "1"]

    run(scenario())


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("const x = 1; let y", "var   x = 1; var y"),
        ("for (const i of a) { let w }", "for (const i of a) { let w }"),
        (
            "const s = `{${`}`}`; let t = /[/]{/; const u = 1 / 2",
            "var   s = `{${`}`}`; var t = /[/]{/; var   u = 1 / 2",
        ),
        ("// let a\n/* { */ let b", "// let a\n/* { */ var b"),
        ("a.let = 1; o.const; let = 2", "a.let = 1; o.const; let = 2"),
        ("const broken = {", "const broken = {"),
        ("const broken = )", "const broken = )"),
        ("const a = 'open", "const a = 'open"),
        ("const a = 1 /* open", "const a = 1 /* open"),
        ("const a = /open", "const a = /open"),
        ("const a = `open", "const a = `open"),
    ],
)
def test_only_outermost_declarations_are_made_repeatable_in_place(code, changed):
    assert redeclarable(code) == changed


@pytest.mark.parametrize("piece", ["x=/[a", "/*", "'", "`", "${", "const a=1;", "let\n\n", "a/", "{"])
def test_reading_the_declarations_of_any_code_takes_a_moment(piece):
    code = piece * (MAX_CODE_BYTES // len(piece))
    began = time.perf_counter()
    redeclarable(code)
    assert time.perf_counter() - began < 2


def test_half_a_surrogate_pair_and_nul_come_back_as_escapes():
    async def scenario():
        assert await text(r"'a\ud83c|\u0000b'") == r"a\ud83c|\u0000b"

    run(scenario())


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("'\0'", "The code has a NUL at character 1: write \\u0000."),
        ("'ab\ud800'", "The code has half of a surrogate pair at character 3: write it as an escape."),
    ],
)
def test_code_that_no_engine_can_take_is_refused_by_its_place(code, told):
    from pizzabot_builtin_plugins.deepagents_runtime.interpreter.middleware import code_fault

    assert code_fault(code) == told


@pytest.mark.parametrize(
    "code",
    [
        "'x'.repeat(100000)",
        "console.log('y'.repeat(100000))",
        "console.log('y'.repeat(100000)); 'x'.repeat(100000)",
        "for (let i = 0; i < 50000; i++) console.log(i); 'end'",
        "console.log('y'.repeat(7998)); 'end'",
        "throw new Error('z'.repeat(100000))",
    ],
)
def test_output_is_cut_at_the_limit_and_says_so(code):
    async def scenario():
        shown = await text(code)
        assert len(shown) <= MAX_RESULT_CHARACTERS
        assert "characters are left out" in shown

    run(scenario())


def test_a_result_beside_too_much_output_is_still_seen():
    async def scenario():
        shown = await text("console.log('y'.repeat(100000)); 'the result'")
        assert "the result" in shown
        assert shown.startswith("yyy")

    run(scenario())


def test_a_result_of_exactly_the_limit_is_whole():
    async def scenario():
        assert await text(f"'x'.repeat({MAX_RESULT_CHARACTERS})") == "x" * MAX_RESULT_CHARACTERS

    run(scenario())


def test_there_is_no_way_out():
    async def scenario():
        names = ["fetch", "process", "require", "std", "os", "setTimeout", "XMLHttpRequest", "WebSocket", "scriptArgs"]
        assert await text(f"{names}.filter((name) => name in globalThis)") == "[]"
        assert await text("typeof task") == "undefined"
        assert await text("Object.keys(tools).join()") == "ls,readFile,writeFile,editFile,glob,grep"

    run(scenario())
