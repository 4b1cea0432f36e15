// Scenes of stopping and superseding: what settles, on whose end, and what is kept.
import {
  ENDLESS,
  ask,
  begun,
  brief,
  clientOf,
  collect,
  controllerOf,
  kindOf,
  lastTurn,
  newId,
  said,
  textOf,
  threadOf,
  until,
} from "./scene.mjs";

const answers = (messages) => messages.filter((message) => kindOf(message) === "ai").map(textOf);

/** A controller's stop in the middle of an answer; then a turn on the same screen, and what is kept of both. */
export async function controllerStop({ url, disturbed }) {
  const completed = [];
  const controller = controllerOf(url, null, { onCompleted: ({ reason }) => completed.push(reason) });
  const submitted = controller.submit(said(ENDLESS));
  await until(controller.rootStore, begun("on and "));
  if (disturbed) await ask(disturbed);
  const shown = textOf(controller.rootStore.getSnapshot().messages.at(-1));
  await controller.stop();
  await submitted;
  const { isLoading, error, threadId } = controller.rootStore.getSnapshot();
  await ended(url, threadId);
  await controller.submit(said("and again"));
  await until(controller.rootStore, ({ messages }) => answers(messages).at(-1) === "and again");
  const kept = answers((await clientOf(url).threads.getState(threadId)).values.messages);
  const screen = answers(controller.rootStore.getSnapshot().messages);
  await controller.dispose();
  return { loading: isLoading, error: error ?? null, shown, kept, screen, completed };
}

/** A thread whose only run was stopped, opened by somebody else. */
export async function reloadedAfterStop({ url }) {
  const controller = controllerOf(url, null);
  const submitted = controller.submit(said(ENDLESS));
  await until(controller.rootStore, begun("on and "));
  await controller.stop();
  await submitted;
  const { threadId } = controller.rootStore.getSnapshot();
  await ended(url, threadId);
  await controller.dispose();
  const other = controllerOf(url, threadId);
  await other.hydrationPromise;
  const { isLoading, messages, interrupts } = other.rootStore.getSnapshot();
  await other.dispose();
  return { loading: isLoading, interrupts: interrupts.length, answer: answers(messages).at(-1) };
}

/** Until the thread's latest run has its end in the log. */
async function ended(url, id) {
  const thread = threadOf(url, id);
  const events = await thread.subscribe({ channels: ["lifecycle"], namespaces: [[]], depth: 0 });
  for await (const { params } of events) if (params.data.event !== "running") break;
  await thread.close();
}

/** A stream's run, cancelled by its id while its text is read. */
export async function streamStop({ url }) {
  const id = newId();
  const client = clientOf(url);
  const thread = threadOf(url, id);
  const ends = [];
  thread.onEvent(({ method, params }) => {
    if (method === "lifecycle" && params.namespace.length === 0) ends.push([params.data.event, params.data.code ?? null]);
  });
  let read = "";
  let cancelled;
  const reading = collect(thread.messages, async (message) => {
    for await (const piece of message.text) {
      read += piece;
      cancelled ??= client.runs.cancel(id, run);
    }
  });
  const { run_id: run } = await thread.run.start({ input: said(ENDLESS) });
  const output = await thread.output;
  await reading;
  await cancelled;
  await thread.close();
  const again = threadOf(url, id);
  const messages = collect(again.messages, async (message) => await message.text);
  await again.run.start({ input: said("and again") });
  const texts = await messages;
  await again.close();
  await client.runs.cancel(id, run); // a run that has ended: nothing happens
  const state = await client.threads.getState(id);
  return { read, kept: answers(output.messages).at(-1), ends, texts, final: brief(lastTurn(state.values.messages)) };
}

/** Five messages on one screen, each superseding the one before: which submit settles when, and on what it shows. */
export async function superseding({ url, disturbed }) {
  const controller = controllerOf(url, null);
  const settled = [];
  const submits = [];
  for (const number of [1, 2, 3, 4]) {
    const text = `[[pace 0.1]] [[text ${`${number}-on `.repeat(60)}]]`;
    submits.push(controller.submit(said(text)).then(() => settled.push(number)));
    await until(controller.rootStore, begun(`${number}-on`));
  }
  if (disturbed) await ask(disturbed);
  const last = `[[pace 0.1]] the last one is told to its end`;
  const fifth = controller.submit(said(last)).then(() => settled.push(5));
  await until(controller.rootStore, begun("the last"));
  await new Promise(setImmediate); // what the frames before this text settle is settled
  const early = settled.includes(5);
  await fifth;
  const atOnce = answers(lastTurn(controller.rootStore.getSnapshot().messages)).at(-1) ?? "";
  await Promise.all(submits);
  const { threadId, error } = controller.rootStore.getSnapshot();
  const state = await clientOf(url).threads.getState(threadId);
  await controller.dispose();
  return { settled, early, atOnce, error: error ?? null, kept: answers(state.values.messages) };
}

/** A message for a thread that has a run, with each of the other strategies. */
export async function strategies({ url }) {
  const controller = controllerOf(url, null);
  const first = controller.submit(said("[[pace 0.3]] one two three four five six seven"));
  await until(controller.rootStore, begun("one"));
  const rejected = await controller.submit(said("no"), { multitaskStrategy: "reject" }).catch((error) => error.message);
  await controller.submit(said("queued"), { multitaskStrategy: "enqueue" });
  await first;
  await until(controller.rootStore, ({ messages }) => answers(messages).at(-1) === "queued");
  const { threadId, messages } = controller.rootStore.getSnapshot();
  await controller.dispose();
  const thread = threadOf(url, threadId);
  await thread.run.start({ input: said(ENDLESS) });
  const refused = await thread.run.start({ input: said("no"), multitaskStrategy: "reject" }).catch((error) => ({
    name: error.name,
    code: error.code,
  }));
  await thread.close();
  return { rejected, answers: answers(messages), refused };
}
