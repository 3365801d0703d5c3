import { useMemo } from "preact/hooks";
import { counts, span, STATES } from "../letters";
import type { Fields, Shown } from "../live";
import { address, type Place } from "../place";
import { Barriers } from "./barriers";
import { Raw } from "./raw";
import { Scheduler } from "./scheduler";
import { Stores } from "./stores";
import { Task } from "./task";
import { Tasks } from "./tasks";

const TABS: [string, string, (fields: Fields) => boolean][] = [
  ["tasks", "Tasks", () => true],
  ["barriers", "Barriers", () => true],
  ["events", "Events", (fields) => Array.isArray(fields.events)],
  ["scheduler", "Scheduler", (fields) => fields.scheduler !== undefined],
  ["stores", "Stores", (fields) => fields.scheduler !== undefined],
  ["raw", "Raw", () => true],
];

/** In words, what the strip shows. */
export function summary(states: Uint8Array): string {
  const found = counts(states);
  const parts = STATES.filter((state) => found.has(state.letter));
  return parts.map((state) => `${found.get(state.letter)} ${state.word}`).join(", ");
}

export function Job({ shown, place }: { shown: Shown; place: Place }) {
  const { fields, states } = shown;
  const job = fields.job as Fields | undefined;
  const words = useMemo(() => summary(states), [states]);
  if (fields.gone) return <p class="banner bad">! There is no job “{place.job}” any more.</p>;
  if (!job) return <p>{shown.trouble || "Nothing is known yet."}</p>;
  const findings = (fields.findings ?? []) as Fields[];
  const headline = fields.headline as Fields;
  const waits = headline.since_ms === undefined ? undefined : Math.max(0, fields.as_of?.now_ms - headline.since_ms);
  return (
    <>
      <h1>Job {job.name}</h1>
      {findings.map((finding) => (
        <p class="banner bad">
          ! {finding.code} {finding.text}
        </p>
      ))}
      <p id="headline" class={headline.kind === "runs" ? "banner" : headline.kind === "failed" ? "banner bad" : "banner waits"}>
        {headline.kind === "waits" || headline.kind === "failed" ? "! " : ""}
        {headline.text}
        {waits === undefined || Number.isNaN(waits) ? "" : ` (since ${span(waits)})`}
      </p>
      {job.note ? <p>{job.note}</p> : null}
      <p class="soft">
        {job.tasks} tasks: {words}. Given up after {span(job.heartbeat_timeout_ms)} without a heartbeat.
      </p>
      <nav aria-label="Parts of the job" class="tabs">
        {TABS.filter(([, , there]) => there(fields)).map(([tab, name]) => (
          <a href={address({ ...place, tab, task: undefined })} aria-current={place.tab === tab ? "page" : undefined}>
            {name}
          </a>
        ))}
      </nav>
      {place.task !== undefined ? (
        <Task job={job.name} task={place.task} tasks={job.tasks} place={place} />
      ) : (
        <Tab shown={shown} place={place} words={words} />
      )}
    </>
  );
}

function Tab({ shown, place, words }: { shown: Shown; place: Place; words: string }) {
  const { fields } = shown;
  switch (place.tab) {
    case "barriers":
      return <Barriers fields={fields} />;
    case "scheduler":
      return <Scheduler job={place.job} counts={fields.scheduler} wanted={place.function} />;
    case "stores":
      return <Stores fields={fields} />;
    case "events":
      return <Events events={(fields.events ?? []) as Fields[]} />;
    case "raw":
      return <Raw fields={fields} />;
    default:
      return <Tasks shown={shown} place={place} words={words} />;
  }
}

/** What happened, as a node tells it that keeps it. */
function Events({ events }: { events: Fields[] }) {
  return (
    <ol class="events">
      {events.map((event) => (
        <li>{event.text}</li>
      ))}
    </ol>
  );
}
