// Scenes of history, forks, and of a screen that is opened on a thread which somebody else began.
import {
  agrees,
  ask,
  begun,
  brief,
  clientOf,
  controllerOf,
  kindOf,
  lastTurn,
  newId,
  said,
  textOf,
  threadOf,
  until,
} from "./scene.mjs";

async function say(url, id, text) {
  const thread = threadOf(url, id);
  await thread.run.start({ input: said(text) });
  await thread.output;
  await thread.close();
}

/** Two turns; then the thread's history by the page and by what each entry is. */
export async function history({ url }) {
  const id = newId();
  const { threads } = clientOf(url);
  await say(url, id, "one");
  await say(url, id, "two [[tool add {\"a\": 1, \"b\": 2}]] [[then]] three");
  const all = await threads.getHistory(id, { limit: 100 });
  const state = await threads.getState(id);
  const pages = [];
  let before;
  do {
    const page = await threads.getHistory(id, { limit: 3, before });
    pages.push(...page);
    before = page.length === 3 ? { configurable: { checkpoint_id: page.at(-1).checkpoint.checkpoint_id } } : null;
  } while (before);
  const ids = (entries) => entries.map(({ checkpoint }) => checkpoint.checkpoint_id);
  const past = await threads.getState(id, { checkpoint_id: ids(all).at(-2), thread_id: id, checkpoint_ns: "" });
  return {
    newest: ids(all)[0] === state.checkpoint.checkpoint_id,
    same: JSON.stringify(ids(pages)) === JSON.stringify(ids(all)),
    chained: all.slice(0, -1).every((entry, i) => entry.parent_checkpoint.checkpoint_id === ids(all)[i + 1]),
    steps: all.map(({ metadata }) => metadata.step),
    sources: [...new Set(all.map(({ metadata }) => metadata.source))].sort(),
    messages: brief(all[0].values.messages),
    keys: Object.keys(all[0]).sort(),
    past: past.checkpoint.checkpoint_id === ids(all).at(-2),
  };
}

const parentOf = (controller, id) => controller.messageMetadataStore.getSnapshot().get(id)?.parentCheckpointId;

async function shows(controller, answer) {
  await until(
    controller.rootStore,
    ({ messages, isLoading }) => !isLoading && kindOf(messages.at(-1)) === "ai" && textOf(messages.at(-1)) === answer,
    ({ messages, isLoading }) => ({ isLoading, messages: brief(messages) }),
  );
}

/** The second of three questions is asked otherwise: what follows it goes, what was before it stays. */
export async function editedQuestion({ url, disturbed }) {
  const controller = controllerOf(url, null);
  for (const text of ["one", "two", "three"]) {
    await controller.submit(said(text));
    await shows(controller, text);
  }
  const asked = controller.rootStore.getSnapshot().messages.filter((message) => kindOf(message) === "human");
  const parents = asked.map(({ id }) => parentOf(controller, id) ?? null);
  if (disturbed) await ask(disturbed);
  await controller.submit(said("otherwise"), { forkFrom: parents[1] });
  await shows(controller, "otherwise");
  await agrees(url, controller);
  await controller.submit(said("and on"));
  await shows(controller, "and on");
  const screen = brief(controller.rootStore.getSnapshot().messages);
  await controller.dispose();
  return { parents: new Set(parents).size, screen };
}

/** The answer with a tool call is asked for again: it is made anew, from before it. */
export async function regeneratedAnswer({ url }) {
  const controller = controllerOf(url, null);
  await controller.submit(said("one"));
  await shows(controller, "one");
  await controller.submit(said("two [[tool add {\"a\": 1, \"b\": 2}]] [[then]] three"));
  await shows(controller, "three");
  await agrees(url, controller);
  const before = controller.rootStore.getSnapshot().messages;
  const [first] = lastTurn(before).filter((message) => kindOf(message) === "ai");
  await controller.submit(null, { forkFrom: parentOf(controller, first.id) });
  const changed = ({ messages, isLoading }) =>
    !isLoading && kindOf(messages.at(-1)) === "ai" && textOf(messages.at(-1)) === "three" && messages.at(-1).id !== before.at(-1).id;
  await until(controller.rootStore, changed, ({ messages }) => brief(messages));
  const { messages, threadId } = controller.rootStore.getSnapshot();
  await controller.dispose();
  const state = await clientOf(url).threads.getState(threadId);
  return { stored: brief(state.values.messages), screen: brief(messages) };
}

/** ThreadStream: a run from the checkpoint before the second question. */
export async function streamFork({ url }) {
  const id = newId();
  const { threads } = clientOf(url);
  await say(url, id, "one");
  const { checkpoint } = await threads.getState(id);
  await say(url, id, "two");
  const thread = threadOf(url, id);
  await thread.submitRun({ input: said("otherwise"), forkFrom: checkpoint.checkpoint_id });
  const output = await thread.output;
  await thread.close();
  const lost = threadOf(url, id);
  const failed = new Promise((resolve) => {
    lost.onEvent(({ method, params }) => {
      if (method === "lifecycle" && params.data.event === "failed") resolve(params.data.code);
    });
  });
  const refused = lost.submitRun({ input: said("no"), forkFrom: "nowhere" }).then(
    () => failed,
    (error) => error.code,
  );
  const code = await refused;
  await lost.close();
  return { messages: brief(output.messages), code };
}

/** A second screen is opened in the middle of an answer, and goes with it to its end. */
export async function reload({ url, text, disturbed, inner }) {
  const first = controllerOf(url, null);
  const earlier = first.submit(said("before"));
  await earlier;
  const submitted = first.submit(said(text));
  await until(first.rootStore, begun("one"));
  const { threadId } = first.rootStore.getSnapshot();
  const second = controllerOf(url, threadId);
  await second.hydrationPromise;
  const loading = second.rootStore.getSnapshot().isLoading;
  await until(second.rootStore, begun("one"));
  if (disturbed) await ask(disturbed);
  await submitted;
  await until(second.rootStore, ({ isLoading }) => !isLoading);
  await agrees(url, first);
  await agrees(url, second);
  const agents = [...second.subagentStore.getSnapshot().values()].map(({ name, status }) => ({ name, status }));
  await second.submit(said("after"));
  await agrees(url, second);
  await agrees(url, first); // it is told of what another screen says
  const screen = brief(second.rootStore.getSnapshot().messages);
  await first.dispose();
  await second.dispose();
  return { loading, agents, screen };
}

/** A screen on a thread whose turns are over: what it shows, without an event stream. */
export async function reopened({ url, text }) {
  const id = newId();
  await say(url, id, text);
  const controller = controllerOf(url, id);
  await controller.hydrationPromise;
  await until(controller.rootStore, ({ messages }) => messages.length > 0);
  await until(controller.subagentStore, (found) => [...found.values()].every(({ status }) => status === "complete"));
  const { messages, isLoading, toolCalls } = controller.rootStore.getSnapshot();
  const agents = [...controller.subagentStore.getSnapshot().values()];
  for (const { id: call } of agents) await controller.resolveSubagentNamespace(call);
  const namespaces = [...controller.subagentStore.getSnapshot().values()].map(({ namespace, id: call }) => ({
    namespace,
    placeholder: namespace.at(-1) === `tools:${call}`,
  }));
  await controller.dispose();
  return {
    messages: brief(messages),
    loading: isLoading,
    calls: toolCalls.map(({ name, status, output }) => ({ name, status, output })),
    agents: agents.map(({ name, status, output }) => ({ name, status, output })),
    namespaces,
  };
}

/** A screen on a thread that waits for a person, who answers there; the first screen is told. */
export async function reopenedWaiting({ url, text, responses, disturbed }) {
  const first = controllerOf(url, null);
  await first.submit(said(text));
  await until(first.rootStore, ({ interrupts }) => interrupts.length === responses.length);
  const { threadId } = first.rootStore.getSnapshot();
  if (disturbed) await ask(disturbed);
  const second = controllerOf(url, threadId);
  await second.hydrationPromise;
  const { interrupts, isLoading } = second.rootStore.getSnapshot();
  const asked = interrupts.map(({ value }) => value.actionRequests[0].args.to);
  const answers = Object.fromEntries(interrupts.map(({ id }, index) => [id, responses[index]]));
  await second.respondAll(answers);
  for (const screen of [first, second]) {
    await until(screen.rootStore, (found) => found.interrupts.length === 0 && !found.isLoading && textOf(found.messages.at(-1)) === "three");
    await agrees(url, screen);
  }
  const result = { asked, loading: isLoading, screen: brief(first.rootStore.getSnapshot().messages) };
  await first.dispose();
  await second.dispose();
  return result;
}
