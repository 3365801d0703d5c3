import { Chart } from "../chart";
import { local, span } from "../letters";
import type { Fields } from "../live";
import { Table } from "../table";

/** Where tasks wait, how they came, and what has ended since somebody looked. */
export function Barriers({ fields }: { fields: Fields }) {
  const open = (fields.barriers ?? []) as Fields[];
  const failed = (fields.failed ?? []) as Fields[];
  const past = (fields.past ?? []) as Fields[];
  const now = fields.as_of?.now_ms as number | undefined;
  return (
    <section aria-label="Barriers">
      {open.length === 0 ? <p>Nobody waits at a barrier.</p> : null}
      {open.map((barrier, place) => (
        <Open key={`${barrier.name} ${barrier.instance}`} barrier={barrier} curve={fields.curves?.[place]} now={now} />
      ))}
      {failed.length > 0 ? <h2>Failed lately</h2> : null}
      {failed.map((barrier) => (
        <p>
          <strong>{barrier.name}</strong>, at <time title={new Date(barrier.failed_ms).toISOString()}>{local(barrier.failed_ms)}</time>
          : {barrier.why}; {barrier.arrived} had come, {barrier.missing} had not
          {barrier.missing_tasks ? `: ${barrier.missing_tasks}` : ""}.
        </p>
      ))}
      <h2>Ended since this node watches</h2>
      {past.length === 0 ? (
        <p class="soft">None. A barrier that opens and passes within a quarter of a second is not seen here.</p>
      ) : (
        <Table
          label="Barriers that ended"
          columns={["Barrier", "Ended", "Took", "Came last", "How"]}
          widths="minmax(8rem, 2fr) 9rem 6rem minmax(6rem, 1fr) 5rem"
          rows={past.length}
          cells={(row) => {
            const one = past[row]!;
            return [
              one.name,
              <time title={new Date(one.ended_ms).toISOString()}>{local(one.ended_ms)}</time>,
              span(Math.max(0, one.ended_ms - one.opened_ms)),
              one.last ? `${one.last}${one.last_unnamed ? ` and ${one.last_unnamed} more` : ""}` : "-",
              one.failed ? "! failed" : "passed",
            ];
          }}
        />
      )}
    </section>
  );
}

function Open({ barrier, curve, now }: { barrier: Fields; curve: [number, number][] | undefined; now: number | undefined }) {
  const all = barrier.arrived + barrier.missing;
  const points = curve ?? [];
  const since = barrier.opened_ms !== null && now !== undefined ? Math.max(0, now - barrier.opened_ms) : undefined;
  // A point now, so that the curve shows that nothing comes.
  const end = now !== undefined && points.length > 0 ? [[now, points.at(-1)![1]] as [number, number]] : [];
  const shown = [...points, ...end];
  return (
    <article class="barrier">
      <h2>
        {barrier.name}: {barrier.arrived} of {all}
      </h2>
      <progress value={barrier.arrived} max={all} aria-label={`${barrier.arrived} of ${all} have come`} />
      <p>
        Missing: {barrier.missing_tasks || "nobody who is named"}
        {barrier.missing_unnamed > 0 ? ` and ${barrier.missing_unnamed} more` : ""}.
        {since === undefined ? "" : ` Open for ${span(since)}`}
        {barrier.timeout_ms ? ` of ${span(barrier.timeout_ms)}.` : "."}
      </p>
      {shown.length > 0 ? (
        <Chart
          times={shown.map(([at]) => at / 1000)}
          values={shown.map(([, count]) => count)}
          label={`Arrivals at ${barrier.name}: ${shown[0]![1]} when this node began to look, ${barrier.arrived} now`}
          height={90}
          top={all}
          steps
        />
      ) : null}
    </article>
  );
}
