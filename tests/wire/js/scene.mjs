// What scenes have in common: talking to the test, reading messages, waiting for a store, and turns of both clients.
import { createInterface } from "node:readline";
import { Client } from "@langchain/langgraph-sdk";
import { StreamController } from "@langchain/langgraph-sdk/stream";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

export function tell(value, then) {
  process.stdout.write(JSON.stringify(value) + "\n", then);
}

/** Let the test do something, and wait until it is done. */
export async function ask(word) {
  tell({ ask: word });
  await lines.next();
}

/** A point where the test may cut the connection or kill the server; passed once. */
export function disturbance(word) {
  let passed = false;
  return async () => {
    if (passed || !word) return;
    passed = true;
    await ask(word);
  };
}

/** What is said to be stopped, or superseded. */
export const ENDLESS = "[[pace 0.2]] [[repeat 100]] on and on";

export const newId = () => crypto.randomUUID();

export function clientOf(url) {
  return new Client({ apiUrl: url, apiKey: null });
}

/** A thread's stream as a program without a screen has it. */
export function threadOf(url, id) {
  return clientOf(url).threads.stream(id, { assistantId: "pizza-bot" });
}

export function controllerOf(url, id, options = {}) {
  return new StreamController({ assistantId: "pizza-bot", client: clientOf(url), threadId: id, ...options });
}

export const said = (text) => ({ messages: [{ type: "human", content: text, id: newId() }] });

/** Of a message as JSON or as an instance. */
export function kindOf(message) {
  return message.type ?? message.getType?.();
}

export function textOf(message) {
  const content = message?.content;
  if (typeof content === "string") return content;
  return (content ?? []).map((block) => block.text ?? "").join("");
}

export function reasoningOf(message) {
  const content = message?.content;
  if (typeof content === "string") return "";
  return (content ?? []).map((block) => block.reasoning ?? "").join("");
}

export const brief = (messages) => (messages ?? []).map((message) => [kindOf(message), textOf(message)]);

/** Of the turn that began with the last thing a person said. */
export function lastTurn(messages) {
  const start = messages.findLastIndex((message) => kindOf(message) === "human");
  return messages.slice(start);
}

export const WAIT_MS = 40_000;

/** Resolves with the store's snapshot when `holds`; after too long it fails and tells what `show` makes of it. */
export function until(store, holds, show = (snapshot) => snapshot) {
  let clock;
  const found = new Promise((resolve, reject) => {
    let unsubscribe = () => {};
    clock = setTimeout(() => {
      unsubscribe();
      reject(new Error(`waited in vain for ${holds}: ${JSON.stringify(show(store.getSnapshot()))}`));
    }, WAIT_MS);
    const look = () => {
      try {
        const snapshot = store.getSnapshot();
        if (!holds(snapshot)) return false;
        unsubscribe();
        resolve(snapshot);
        return true;
      } catch (error) {
        unsubscribe();
        reject(error);
        return true;
      }
    };
    if (!look()) unsubscribe = store.subscribe(look);
  });
  return found.finally(() => clearTimeout(clock));
}

/** True once the newest answer of a controller has begun: text after the last thing a person said. */
export const begun = (text) => (snapshot) =>
  lastTurn(snapshot.messages).some((message) => kindOf(message) === "ai" && textOf(message).startsWith(text));

export async function collect(iterable, read = (item) => item) {
  const all = [];
  for await (const item of iterable) all.push(await read(item));
  return all;
}

/** Wait until the screen of a controller shows just what the server's state has. */
export async function agrees(url, controller) {
  const { threadId } = controller.rootStore.getSnapshot();
  const state = await clientOf(url).threads.getState(threadId);
  const wanted = JSON.stringify(brief(state.values.messages));
  const show = ({ messages }) => ({ shown: brief(messages), stored: brief(state.values.messages) });
  await until(controller.rootStore, ({ messages }) => JSON.stringify(brief(messages)) === wanted, show);
}
