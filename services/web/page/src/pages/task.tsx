import { local, span } from "../letters";
import { type Fields, useAnswer } from "../live";
import { address, type Place } from "../place";

const ASKED_EVERY_MS = 2_000;

export function Task({ job, task, tasks, place }: { job: string; task: number; tasks: number; place: Place }) {
  const path = `/ui/api/v1/jobs/${encodeURIComponent(job)}/tasks/${task}`;
  const { value, trouble } = useAnswer<Fields>(path, ASKED_EVERY_MS);
  return (
    <section aria-labelledby="task">
      <h2 id="task">Task {task}</h2>
      <p class="steps">
        <a href={address({ ...place, task: undefined })}>All tasks</a>
        {task > 0 ? <a href={address({ ...place, task: task - 1 })}>Task {task - 1}</a> : null}
        {task + 1 < tasks ? <a href={address({ ...place, task: task + 1 })}>Task {task + 1}</a> : null}
      </p>
      {trouble ? <p class="banner bad">! {trouble}</p> : null}
      {value ? <Known value={value} /> : null}
    </section>
  );
}

function Known({ value }: { value: Fields }) {
  const heard = value.heard_ms_ago as number | null;
  return (
    <>
      {value.awaited_at.length > 0 ? (
        <p class="banner waits">! Others wait for it at {value.awaited_at.join(" and ")}.</p>
      ) : null}
      {value.error ? <p class="banner bad">! {value.error}</p> : null}
      <dl class="facts">
        <dt>State</dt>
        <dd>{value.standing}</dd>
        <dt>Waits at</dt>
        <dd>{value.waits_at.length > 0 ? value.waits_at.join(", ") : "no barrier"}</dd>
        <dt>Host</dt>
        <dd>{value.host || "nobody has said it"}</dd>
        <dt>Last heartbeat</dt>
        <dd>
          {heard !== null
            ? `${span(heard)} ago`
            : value.heard_told
              ? "none since the leader leads"
              : "unknown: the leader does not answer"}
        </dd>
        <dt>Given up after</dt>
        <dd>{value.silence_limit_ms === null ? "-" : span(value.silence_limit_ms)}</dd>
        <dt>Life</dt>
        <dd>{value.incarnation}</dd>
      </dl>
      {value.end ? (
        <>
          <h3>How its process ended</h3>
          <p>
            It {value.end.how}, at <time title={new Date(value.end.at_ms).toISOString()}>{local(value.end.at_ms)}</time>.
          </p>
          {value.end.tail ? (
            <pre tabIndex={0} aria-label="The last that it wrote to its standard error">
              {value.end.tail}
            </pre>
          ) : null}
        </>
      ) : null}
    </>
  );
}
