// Scenes of ThreadStream: what a program without a screen does.
import { ENDLESS, brief, clientOf, collect, disturbance, lastTurn, newId, said, threadOf } from "./scene.mjs";

async function readMessage(message, onText = async () => {}) {
  let text = "";
  try {
    for await (const piece of message.text) {
      text += piece;
      await onText(text);
    }
    const reasoning = await message.reasoning;
    return { text, reasoning, node: message.node };
  } catch (error) {
    return { text, broken: String(error.message ?? error) };
  }
}

async function readCall(call) {
  let output;
  try {
    output = { output: await call.output };
  } catch (error) {
    output = { error: String(error.message ?? error) };
  }
  return { name: call.name, input: call.input, depth: call.namespace.length, ...output };
}

/** Each call once: the SDK tells a call when it begins and when it ends. One that waits for a person is `open`. */
async function collectCalls(iterable) {
  const calls = new Map();
  for await (const call of iterable) calls.set(call.callId, calls.get(call.callId) ?? [call, readCall(call)]);
  const over = new Promise((resolve) => setImmediate(resolve));
  const read = ([call, done]) => Promise.race([done, over.then(() => ({ name: call.name, open: true }))]);
  return Promise.all([...calls.values()].map(read));
}

async function readSubagent(handle) {
  const [input, messages, calls] = await Promise.all([
    handle.taskInput,
    collect(handle.messages, readMessage),
    collectCalls(handle.toolCalls),
  ]);
  const output = await handle.output.catch((error) => ({ error: String(error) }));
  return { name: handle.name, input, messages, calls, output, namespace: handle.namespace };
}

/** Everything that the getters of one stream bring of one run. Call it before the run is started: what is first
 * touched later comes on another connection, and the end of a short run may be there before it. `onText` is called with each text so far. */
async function watch(thread, { onText, subagents = true } = {}) {
  const reading = Promise.all([
    collect(thread.messages, (message) => readMessage(message, onText)),
    collectCalls(thread.toolCalls),
    subagents ? collect(thread.subagents, readSubagent) : [],
  ]);
  const [messages, calls, agents] = await reading;
  return { messages, calls, subagents: agents };
}

/** The next end of a run that this stream is told of. */
function nextEnd(thread) {
  return new Promise((resolve) => {
    const forget = thread.onEvent(({ method, params }) => {
      if (method !== "lifecycle" || params.namespace.length > 0 || params.data.event === "running") return;
      forget();
      const { event, code = null, error = null } = params.data;
      resolve({ event, code, error });
    });
  });
}

/** Answer everything that is asked, at once; how the run that goes on ended. A stream's getters end with its first
 * run, so the rest is read from the state. */
async function answerAll(thread, responses) {
  const ended = nextEnd(thread);
  const answers = thread.interrupts.map(({ namespace, interruptId }, index) => ({
    namespace,
    interrupt_id: interruptId,
    response: responses[index],
  }));
  await thread.input.respond(answers.length === 1 ? answers[0] : { responses: answers });
  return ended;
}

/** One turn on a stream of its own, answering what it asks. A subagent that waits is not read: it has no end yet. */
async function turn(url, id, text, { disturb = async () => {}, responses } = {}) {
  const thread = threadOf(url, id);
  try {
    const watching = watch(thread, { onText: responses ? undefined : disturb, subagents: !responses });
    let ended = nextEnd(thread);
    await thread.run.start({ input: said(text) });
    const seen = await watching;
    const asked = thread.interrupts.map(({ payload, namespace }) => ({ payload, namespace }));
    const { interrupted } = thread;
    const output = brief((await thread.output).messages);
    if (interrupted && responses) {
      await disturb();
      await ended;
      ended = answerAll(thread, responses);
    }
    const end = await ended;
    const state = await clientOf(url).threads.getState(id);
    return { ...seen, asked, interrupted, output, end, final: brief(lastTurn(state.values.messages)) };
  } finally {
    await thread.close();
  }
}

/** The turn, disturbed in its middle; then a long one that the same turn supersedes. */
export async function conversation({ url, text, disturbed, responses }) {
  const id = newId();
  const first = await turn(url, id, text, { disturb: disturbance(disturbed), responses });
  const superseded = threadOf(url, id);
  let begun;
  const started = new Promise((resolve) => (begun = resolve));
  const reading = watch(superseded, { onText: async () => begun(), subagents: false });
  await superseded.run.start({ input: said(ENDLESS) });
  await started;
  const second = await turn(url, id, text, { responses });
  const left = await reading;
  await superseded.close();
  return { first, second, superseded: left };
}

export function oneTurn({ url, text, responses }) {
  return turn(url, newId(), text, { responses });
}

/** One after the other, each on a stream of its own. */
export async function twoTurns({ url, texts: [first, second] }) {
  const id = newId();
  return [await turn(url, id, first), await turn(url, id, second)];
}

/** One stream, and a subscription on a thread that does not exist yet: three runs, the second of them superseded. */
export async function runAfterRun({ url, disturbed }) {
  const thread = threadOf(url, newId());
  await thread.subscribe({ channels: ["lifecycle"], namespaces: [[]], depth: 0 });
  const runs = [];
  const told = [];
  let look = () => {};
  thread.onEvent(({ method, event_id: eventId, params }) => {
    if (method !== "lifecycle") return;
    told.push([eventId.split(":")[1], params.data.event]);
    look();
  });
  const begin = async (text) => runs.push((await thread.run.start({ input: said(text) })).run_id);
  const completed = (number) =>
    new Promise((resolve) => {
      look = () => told.filter(([, event]) => event === "completed").length === number && resolve();
      look();
    });
  await begin("one");
  await completed(1);
  await disturbance(disturbed)();
  await begin(ENDLESS);
  await begin("two");
  await completed(2);
  await thread.close();
  return told.map(([run, event]) => [runs.indexOf(run), event]);
}
