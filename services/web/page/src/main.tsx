// The page that every node serves.

import { render } from "preact";
import { useEffect, useReducer, useState } from "preact/hooks";
import { KEYS, listen } from "./keys";
import { span } from "./letters";
import { type Fields, GONE_MS, type Shown, useAnswer, useLive } from "./live";
import { elsewhere, followLinks, go, usePlace } from "./place";
import { Cluster } from "./pages/cluster";
import { Job } from "./pages/job";
import { Jobs } from "./pages/jobs";
import { Metrics } from "./pages/metrics";

const THEME = "tripod-theme";

function applyTheme(theme: string): void {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

function App() {
  const place = usePlace();
  const [paused, pause] = useReducer((before: boolean) => !before, false);
  const [help, setHelp] = useState(false);
  const shown = useLive(place.page === "job" ? `job/${place.job}` : "overview", paused);
  useEffect(() => listen({ help: (open) => setHelp((before) => open ?? !before), pause: () => pause(undefined as never) }), []);
  useEffect(() => {
    const title = place.page === "job" ? `${place.job} – Tripod` : "Tripod";
    document.title = title;
  }, [place.page, place.job]);
  return (
    <>
      <a class="skip" href="#main">
        To the contents
      </a>
      <header>
        <nav aria-label="Pages">
          <a href="/ui/" aria-current={place.page === "cluster" ? "page" : undefined}>
            Cluster
          </a>
          <a href="/ui/jobs" aria-current={place.page === "jobs" ? "page" : undefined}>
            Jobs
          </a>
          <a href="/ui/metrics" aria-current={place.page === "metrics" ? "page" : undefined}>
            Metrics
          </a>
        </nav>
        <input
          id="find"
          type="search"
          aria-label="Find a job or a host"
          placeholder="/ find"
          value={place.find}
          maxLength={100}
          onInput={(event) => go({ find: event.currentTarget.value }, true)}
        />
        <Age shown={shown} paused={paused} toggle={() => pause(undefined as never)} />
        <Theme />
        <button type="button" aria-expanded={help} onClick={() => setHelp(!help)}>
          ? Keys
        </button>
      </header>
      {help ? <Help /> : null}
      <main id="main" tabIndex={-1}>
        {place.page === "cluster" ? <Cluster shown={shown} find={place.find} /> : null}
        {place.page === "jobs" ? <Jobs fields={shown.fields} find={place.find} /> : null}
        {place.page === "metrics" ? <Metrics node={shown.fields.as_of?.node} /> : null}
        {place.page === "job" ? <Job key={place.job} shown={shown} place={place} /> : null}
      </main>
    </>
  );
}

/** How old what is shown is: no figure stands there without it. */
function Age({ shown, paused, toggle }: { shown: Shown; paused: boolean; toggle: () => void }) {
  const [, again] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const timer = setInterval(() => again(0), 500);
    return () => clearInterval(timer);
  }, []);
  const silent = Math.max(0, performance.now() - shown.at);
  const behind = (shown.fields.as_of?.behind_ms as number | undefined) ?? 0;
  const age = silent + behind;
  const leaderless = shown.fields.as_of?.leaderless_ms as number | null | undefined;
  const gone = silent > GONE_MS && !paused;
  const lags = behind > GONE_MS;
  const words = gone
    ? `! this node is gone; as of ${span(age)} ago`
    : leaderless
      ? `! nobody leads since ${span(leaderless)}; from this node's memory`
      : lags
        ? `! this node lags: as of ${span(age)} ago`
        : `as of ${span(age)} ago`;
  return (
    <div class={gone || leaderless || lags ? "age bad" : "age"}>
      <span role={gone ? "alert" : undefined}>{words}</span>{" "}
      <button type="button" aria-pressed={paused} onClick={toggle}>
        {paused ? "Stopped" : gone ? "Tries again" : "Live"}
      </button>
      {gone ? <Others /> : null}
      {shown.trouble ? <span>{shown.trouble}</span> : null}
    </div>
  );
}

/** The other nodes, while one could ask this one. */
const others: { node: number; http: string }[] = [];

function Others() {
  return (
    <span>
      {" "}
      Others:{" "}
      {others.map(({ node, http }) => {
        const address = elsewhere(http, `${location.pathname}${location.search}`);
        return address ? (
          <>
            <a href={address}>node {node}</a>{" "}
          </>
        ) : (
          `node ${node} (${http}) `
        );
      })}
    </span>
  );
}

/** Remembers the other nodes, for when this one is gone. */
function Remember() {
  const { value } = useAnswer<Fields>("/ui/api/v1/overview", 60_000);
  if (value) {
    const own = value.cluster.node as number;
    const members = (value.cluster.members as Fields[]).filter((member) => member.node !== own && member.http);
    others.splice(0, others.length, ...members.map((member) => ({ node: member.node as number, http: member.http as string })));
  }
  return null;
}

function Theme() {
  const [theme, setTheme] = useState(() => localStorage.getItem(THEME) ?? "");
  return (
    <select
      aria-label="Colours"
      value={theme}
      onChange={(event) => {
        const chosen = event.currentTarget.value;
        localStorage.setItem(THEME, chosen);
        applyTheme(chosen);
        setTheme(chosen);
      }}
    >
      <option value="">As the system</option>
      <option value="light">Light</option>
      <option value="dark">Dark</option>
    </select>
  );
}

function Help() {
  return (
    <section class="help" aria-label="Keys">
      <dl>
        {KEYS.map(([key, what]) => (
          <>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </>
        ))}
      </dl>
    </section>
  );
}

applyTheme(localStorage.getItem(THEME) ?? "");
document.addEventListener("click", followLinks);
const root = document.getElementById("app")!;
root.replaceChildren();
render(
  <>
    <App />
    <Remember />
  </>,
  root,
);
