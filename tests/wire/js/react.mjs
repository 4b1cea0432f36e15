// Scenes of useStream, the hook of @langchain/react, with the SDK that it pins.
import { createElement } from "react";
import { create } from "react-test-renderer";
import { useMessages, useStream, useToolCalls } from "@langchain/react";
import { ENDLESS, WAIT_MS, ask, brief, kindOf, lastTurn, said, textOf } from "./scene.mjs";

/** A component that shows a conversation, and what it showed last. */
class Screen {
  #waiting = new Set();
  #renderer;
  #Page;

  constructor(url, threadId) {
    const screen = this;
    this.#Page = function Page() {
      screen.stream = useStream({ apiUrl: url, apiKey: null, assistantId: "pizza-bot", threadId });
      for (const look of screen.#waiting) look();
      const agents = [...screen.stream.subagents.values()];
      return agents.map((agent) => createElement(Card, { key: agent.id, stream: screen.stream, agent, cards: screen.cards }));
    };
    this.cards = new Map();
  }

  async open() {
    this.#renderer = create(createElement(this.#Page));
    await this.until((stream) => stream);
    return this;
  }

  close() {
    this.#renderer.unmount();
  }

  /** Until what is shown `holds`; after too long it fails and tells what is shown. */
  until(holds) {
    let clock;
    const found = new Promise((resolve, reject) => {
      const look = () => {
        if (!holds(this.stream)) return;
        this.#waiting.delete(look);
        resolve();
      };
      const give = () => reject(new Error(`waited in vain for ${holds}: ${JSON.stringify(brief(this.stream?.messages))}`));
      clock = setTimeout(give, WAIT_MS);
      this.#waiting.add(look);
      look();
    });
    return found.finally(() => clearTimeout(clock));
  }
}

function Card({ stream, agent, cards }) {
  const messages = useMessages(stream, agent);
  const calls = useToolCalls(stream, agent);
  cards.set(agent.id, { name: agent.name, status: agent.status, messages: brief(messages), calls: calls.map(({ name }) => name) });
  return null;
}

const begun = (text) => ({ messages }) =>
  lastTurn(messages).some((message) => kindOf(message) === "ai" && textOf(message).startsWith(text));

const has = (text) => ({ messages, isLoading }) =>
  !isLoading && lastTurn(messages).some((message) => kindOf(message) === "ai" && textOf(message) === text);

const told = (text) => ({ messages, isLoading }) =>
  !isLoading && kindOf(messages.at(-1)) === "ai" && textOf(messages.at(-1)) === text;

/** A turn with a subagent, disturbed; one that is superseded; and the next, all on one screen. */
export async function conversation({ url, text, last, disturbed }) {
  const screen = await new Screen(url, null).open();
  const first = screen.stream.submit(said(text));
  await screen.until(begun("one"));
  if (disturbed) await ask(disturbed);
  await screen.until(has(last));
  await first;
  await screen.until(() => [...screen.cards.values()].every(({ calls }) => calls.length > 0));
  const cards = [...screen.cards.values()];
  const calls = screen.stream.toolCalls.map(({ name, status, output }) => ({ name, status, output }));
  const superseded = screen.stream.submit(said(ENDLESS));
  await screen.until(begun("on "));
  const next = screen.stream.submit(said("and again"));
  await screen.until(has("and again"));
  await Promise.all([superseded, next]);
  const shown = brief(screen.stream.messages);
  screen.close();
  return { cards, calls, shown };
}

/** Several questions at once, answered on the screen; then a stop. */
export async function approvals({ url, text, responses, disturbed }) {
  const screen = await new Screen(url, null).open();
  screen.stream.submit(said(text));
  await screen.until(({ interrupts }) => interrupts.length === responses.length);
  const asked = screen.stream.interrupts.map(({ value }) => value.actionRequests[0].args.to);
  if (disturbed) await ask(disturbed);
  const answers = Object.fromEntries(screen.stream.interrupts.map(({ id }, index) => [id, responses[index]]));
  await screen.stream.respondAll(answers);
  await screen.until(told("three"));
  const shown = brief(screen.stream.messages);
  screen.stream.submit(said(ENDLESS));
  await screen.until(begun("on "));
  await screen.stream.stop();
  await screen.until(({ isLoading }) => !isLoading);
  screen.stream.submit(said("and again"));
  await screen.until(told("and again"));
  const stopped = brief(screen.stream.messages).slice(shown.length);
  screen.close();
  return { asked, shown, stopped };
}
