import { useEffect, useState } from "preact/hooks";
import { type Fields, useAnswer } from "../live";
import { go } from "../place";

const ASKED_EVERY_MS = 5_000;
const HEIGHT = 34;
/** Of a letter, roughly. */
const LETTER = 7;

interface Laid {
  nodes: { id: string; x: number; y: number; width: number; height: number }[];
  edges: { from: string; to: string; points: { x: number; y: number }[] }[];
  width: number;
  height: number;
}

/** What was made out of what, and how far it is. */
export function Scheduler({ job, counts, wanted }: { job: string; counts: Fields | undefined; wanted: string }) {
  const query = wanted ? `?function=${encodeURIComponent(wanted)}` : "";
  const path = `/ui/api/v1/jobs/${encodeURIComponent(job)}/graph${query}`;
  const { value, trouble } = useAnswer<Fields>(path, ASKED_EVERY_MS);
  const laid = useLayout(value);
  if (!counts) return <p>This job has no scheduler.</p>;
  return (
    <section aria-label="Scheduler">
      <p>
        queued {counts.queued}, running {counts.running}, succeeded {counts.succeeded}, failed {counts.failed}; {counts.workers}{" "}
        workers, {counts.stores} stores, {counts.objects} objects
      </p>
      {wanted ? (
        <p>
          Only <code>{wanted}</code>. <button onClick={() => go({ function: "" })}>Show everything</button>
        </p>
      ) : null}
      {trouble ? <p class="banner bad">! {trouble}</p> : null}
      {value ? <Told value={value} /> : null}
      {value && laid ? <Picture value={value} laid={laid} /> : null}
      {value?.by === "function" ? <Functions nodes={value.nodes} /> : null}
    </section>
  );
}

function Told({ value }: { value: Fields }) {
  const what = value.by === "function" ? "functions" : "operations";
  return (
    <p class="soft">
      {value.nodes.length} {what} of {value.total} operations that are remembered
      {value.left_out > 0 ? `; ${value.left_out} are left out` : ""}.
    </p>
  );
}

function Functions({ nodes }: { nodes: Fields[] }) {
  return (
    <ul class="functions">
      {nodes.map((node) => (
        <li>
          <button type="button" onClick={() => go({ function: node.name })}>
            {node.name}
          </button>{" "}
          {node.count}: {Object.entries(node.states as Record<string, number>).map(([state, count]) => `${count} ${state}`).join(", ")}
        </li>
      ))}
    </ul>
  );
}

const label = (node: Fields) => (node.kind === "function" ? `${node.name} ×${node.count}` : node.kind === "task" ? node.name : `${node.kind} #${node.id}`);
const shownAs = (node: Fields) => (label(node).length > 24 ? `${label(node).slice(0, 23)}…` : label(node));

/** Laid out by a worker, anew only when other nodes are there. */
function useLayout(value: Fields | undefined): Laid | undefined {
  const [laid, setLaid] = useState<{ key: string; laid: Laid }>();
  const key = value ? JSON.stringify([value.nodes.map((node: Fields) => node.id), value.edges]) : "";
  useEffect(() => {
    if (!value || value.nodes.length === 0) return undefined;
    const worker = new Worker(document.getElementById("app")!.dataset.graph!);
    worker.onmessage = (event: MessageEvent<Laid>) => setLaid({ key, laid: event.data });
    worker.postMessage({
      nodes: value.nodes.map((node: Fields) => ({ id: String(node.id), width: shownAs(node).length * LETTER + 26, height: HEIGHT })),
      edges: value.edges.map(([from, to]: [unknown, unknown]) => [String(from), String(to)]),
    });
    return () => worker.terminate();
  }, [key]);
  return laid?.key === key ? laid.laid : undefined;
}

const MARKS: Record<string, string> = { failed: "✕", cancelled: "∅", done: "✓", running: "▶", queued: "…", waiting: "○", reported: "→" };

function Picture({ value, laid }: { value: Fields; laid: Laid }) {
  const nodes = new Map<string, Fields>(value.nodes.map((node: Fields) => [String(node.id), node]));
  const made = new Set(value.edges.filter((edge: string[]) => edge[2] === "made").map(([from, to]: [unknown, unknown]) => `${from} ${to}`));
  const failed = value.nodes.filter((node: Fields) => node.state === "failed").length;
  return (
    <div class="graph" tabIndex={0} role="group" aria-label="Graph">
      <svg
        width={laid.width}
        height={laid.height}
        role="img"
        aria-label={`${nodes.size} boxes and ${laid.edges.length} arrows; ${failed} failed. The same stands in the raw data.`}
      >
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path d="M0 0 8 4 0 8z" />
          </marker>
        </defs>
        {laid.edges.map((edge) => (
          <polyline
            class={made.has(`${edge.from} ${edge.to}`) ? "edge made" : "edge"}
            points={edge.points.map(({ x, y }) => `${x},${y}`).join(" ")}
            marker-end="url(#arrow)"
          />
        ))}
        {laid.nodes.map(({ id, x, y, width, height }) => {
          const node = nodes.get(id);
          if (!node) return null;
          return (
            <g class={`node ${node.kind} ${node.state ?? ""}`} transform={`translate(${x} ${y})`}>
              <title>{`${label(node)} #${node.id}${node.state ? `: ${node.state}` : ""}`}</title>
              <rect width={width} height={height} rx={node.kind === "task" || node.kind === "function" ? 3 : 17} />
              <text x={8} y={height / 2 + 4}>
                {MARKS[node.state] ?? ""} {shownAs(node)}
              </text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}
