"""What a guest finds in its sandbox, in JavaScript: `tools`, `task`, `console`, and how values are shown.

It runs before any code of the model and keeps every function that it uses: what the guest does to prototypes and
globals changes the guest alone. Every text crosses as JSON, so that lone surrogates and NUL survive.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pizzabot_builtin_plugins.deepagents_runtime.interpreter.bounds import (
    MAX_BRIDGED_CALLS,
    MAX_BRIDGED_CHARACTERS,
    MAX_RESULT_CHARACTERS,
)

FIRST_LINE = 20_000
"""Empty lines before the prelude: the engine has one name for all scripts, and no model writes so many lines."""

_STACK_CHARACTERS = 4_000
"""Of a stack trace, of which only the line of the model's code is told."""

SOURCE = r"""
(function (post) {
  "use strict";
  const { parse, stringify } = JSON, { defineProperty, create, freeze } = Object;
  const P = Promise, E = Error, T = TypeError, R = RangeError, Str = String, M = Map, S = Set;
  const uncurried = Function.prototype.bind.bind(Function.prototype.call);
  const slice = uncurried(String.prototype.slice), then = uncurried(P.prototype.then);
  const entries = uncurried(M.prototype.forEach), members = uncurried(S.prototype.forEach);
  const fixed = (target, name, value) =>
    defineProperty(target, name, { __proto__: null, value, enumerable: true, writable: false, configurable: false });
  let open = create(null), serial = 0, calls = 0, logged = 0, dropped = 0;

  function bridge(name, label) {
    return freeze((args) => new P((resolve, reject) => {
      const json = args === undefined ? "{}" : stringify(args);
      if (typeof json !== "string" || json[0] !== "{") throw new T(label + " takes one object of named arguments");
      if (json.length > $CHARACTERS) throw new R(label + ": the arguments are longer than $CHARACTERS characters");
      if (calls >= $CALLS) throw new R(label + ": one eval may make $CALLS calls of tools and task; go on in another");
      calls += 1;
      const id = "" + (serial += 1);
      open[id] = { __proto__: null, resolve, reject, error: new E() };
      post("call", id, name, json);
    }));
  }

  function settle(id, kind, json) {
    const entry = open[id];
    if (entry === undefined) return;
    delete open[id];
    const value = parse(json);
    if (kind === "value") return void entry.resolve(value);
    fixed(entry.error, "message", value.message);
    for (let at = 0; at < value.facts.length; at += 1) fixed(entry.error, value.facts[at][0], value.facts[at][1]);
    entry.reject(entry.error);
  }

  function plain(key, value) {
    if (typeof value === "bigint") return value + "n";
    if (typeof value === "function") return "[function]";
    if (value instanceof E) return value.name + ": " + value.message;
    if (value instanceof M) {
      const list = []; let at = 0;
      entries(value, (item, name) => fixed(list, at++, [name, item]));
      return list;
    }
    if (value instanceof S) {
      const list = []; let at = 0;
      members(value, (item) => fixed(list, at++, item));
      return list;
    }
    return value;
  }

  function show(value) {
    if (typeof value === "string") return value;
    if (typeof value === "bigint") return value + "n";
    if (typeof value === "function") return "[function " + Str(value.name) + "]";
    if (value instanceof E) return Str(value.name) + ": " + Str(value.message);
    if (value === null || typeof value !== "object") return Str(value);
    try {
      const json = stringify(value, plain);
      return typeof json === "string" ? json : Str(value);
    } catch (error) {
      return "[an object that cannot be shown: " + Str(error && error.message) + "]";
    }
  }

  function done(kind, text, stack) {
    const shown = slice(text, 0, $RESULT), hidden = text.length - shown.length + dropped;
    post("done", kind, stringify(shown), "" + hidden, stringify(slice(stack, 0, $STACK)));
  }

  function failed(error) {
    let text = "Error", stack = "";
    try {
      text = show(error);
      if (error instanceof E && typeof error.stack === "string") stack = error.stack;
    } catch (_) {}
    done("error", text, stack);
  }

  function watch(promise) {
    then(promise, (result) => {
      try { done("value", show(result.value), ""); } catch (error) { failed(error); }
    }, failed);
  }

  function begin() {
    open = create(null);
    calls = logged = dropped = 0;
  }

  const write = freeze((...values) => {
    let line = logged === 0 ? "" : "\n";
    for (let at = 0; at < values.length; at += 1) line += (at ? " " : "") + show(values[at]);
    const kept = slice(line, 0, $RESULT - logged);
    logged += kept.length;
    dropped += line.length - kept.length;
    if (kept !== "") post("log", stringify(kept));
    else if (line === "") logged += 1, post("log", '"\\n"');
  });

  const console = {};
  for (const name of ["log", "info", "debug", "warn", "error"]) fixed(console, name, write);
  fixed(globalThis, "console", freeze(console));
  const tools = {};
  for (const [name, label] of $TOOLS) fixed(tools, label, bridge(name, "tools." + label));
  fixed(globalThis, "tools", freeze(tools));
  if ($TASK) fixed(globalThis, "task", bridge("task", "task"));
  return { __proto__: null, begin, settle, watch, failed };
})
"""


def prelude(tools: Sequence[tuple[str, str]], *, task: bool) -> str:
    """The source, with these tools (name of the tool, name in the guest)."""
    values = {
        "$CHARACTERS": str(MAX_BRIDGED_CHARACTERS),
        "$CALLS": str(MAX_BRIDGED_CALLS),
        "$RESULT": str(MAX_RESULT_CHARACTERS),
        "$STACK": str(_STACK_CHARACTERS),
        "$TOOLS": json.dumps(list(tools)),
        "$TASK": json.dumps(task),
    }
    source = SOURCE
    for name, value in values.items():
        source = source.replace(name, value)
    return "\n" * FIRST_LINE + source
