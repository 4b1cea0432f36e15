// Scenes of StreamController, what the bindings of React and others stand on: stores instead of iterators.
import {
  ENDLESS,
  agrees,
  begun,
  brief,
  controllerOf,
  disturbance,
  kindOf,
  lastTurn,
  newId,
  reasoningOf,
  said,
  textOf,
  until,
} from "./scene.mjs";
import { messagesProjection, toolCallsProjection } from "@langchain/langgraph-sdk/stream";

const idle = (snapshot) => !snapshot.isLoading;

function callsOf(snapshot) {
  return snapshot.toolCalls.map(({ name, status, input, output, error, namespace }) => ({
    name,
    status,
    input,
    output,
    error,
    depth: namespace.length,
  }));
}

function subagentsOf(controller) {
  return [...controller.subagentStore.getSnapshot().values()].map(({ name, status, taskInput, output, namespace }) => ({
    name,
    status,
    input: taskInput,
    output,
    namespace,
  }));
}

/** What a screen shows when the turn is over. */
function shown(controller) {
  const snapshot = controller.rootStore.getSnapshot();
  const turn = lastTurn(snapshot.messages);
  return {
    messages: brief(turn),
    reasoning: turn.map(reasoningOf).filter(Boolean),
    values: brief(lastTurn(snapshot.values.messages ?? [])),
    calls: callsOf(snapshot),
    subagents: subagentsOf(controller),
    interrupts: snapshot.interrupts.length,
    loading: snapshot.isLoading,
    error: snapshot.error ? String(snapshot.error.message ?? snapshot.error) : null,
  };
}

/** What the screen of a subagent's card shows: its own messages and calls. */
async function card(controller, expected) {
  const { namespace } = [...controller.subagentStore.getSnapshot().values()].at(-1);
  const messages = controller.registry.acquire(messagesProjection(namespace));
  const calls = controller.registry.acquire(toolCallsProjection(namespace));
  const last = (found) => found.findLast((message) => kindOf(message) === "ai");
  await until(messages.store, (found) => textOf(last(found)) === expected);
  await until(calls.store, (found) => found.some((call) => call.status === "finished"));
  const result = {
    messages: brief(messages.store.getSnapshot()),
    calls: callsOf({ toolCalls: calls.store.getSnapshot() }),
  };
  messages.release();
  calls.release();
  return result;
}

async function turn(url, controller, text, { disturb = async () => {}, first, responses, inner } = {}) {
  const submitted = controller.submit(said(text));
  if (first) {
    await until(controller.rootStore, begun(first));
    if (!responses) await disturb();
  }
  await submitted;
  const asked = controller.rootStore.getSnapshot().interrupts.map(({ value, namespace }) => ({ payload: value, namespace }));
  if (responses) {
    await disturb();
    await respond(controller, responses);
  }
  await until(controller.rootStore, idle);
  await agrees(url, controller);
  return { ...shown(controller), asked, ...(inner ? { card: await card(controller, inner) } : {}) };
}

/** Answer all that waits, in the order in which it is shown, and wait until nothing does any more. */
async function respond(controller, responses) {
  const ids = controller.rootStore.getSnapshot().interrupts.map(({ id }) => id);
  const answered = ids.map((id, index) => [id, responses[index]]);
  const ended = new Promise((resolve) => {
    const thread = controller.getThread();
    const forget = thread.onEvent(({ method, params }) => {
      if (method !== "lifecycle" || params.namespace.length > 0 || params.data.event === "running") return;
      forget();
      resolve();
    });
  });
  if (ids.length === 1) await controller.respond(responses[0], { interruptId: ids[0] });
  else await controller.respondAll(Object.fromEntries(answered));
  await ended;
}

/** The turn, disturbed in its middle; then a long one that the same turn supersedes on the same screen. */
export async function conversation({ url, text, first, disturbed, responses, inner }) {
  const controller = controllerOf(url, null);
  const one = await turn(url, controller, text, { disturb: disturbance(disturbed), first, responses, inner });
  const settled = [];
  const superseded = controller.submit(said(ENDLESS)).then(() => settled.push("superseded"));
  await until(controller.rootStore, begun("on "));
  const two = await turn(url, controller, text, { first, responses, inner });
  settled.push("second");
  await superseded;
  await controller.dispose();
  return { first: one, second: two, settled };
}

export async function oneTurn({ url, text, first, responses, inner }) {
  const controller = controllerOf(url, null);
  const seen = await turn(url, controller, text, { first, responses, inner });
  await controller.dispose();
  return seen;
}
