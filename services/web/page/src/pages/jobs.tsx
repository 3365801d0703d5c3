import { decode, span } from "../letters";
import type { Fields } from "../live";
import { fresh, go } from "../place";
import { SmallStrip } from "../strip";
import { Table } from "../table";

const ORDER = ["waits", "failed", "runs", "empty"];

/** Who waits longest comes first, and what nobody waits for last. */
function ordered(jobs: Fields[]): Fields[] {
  const rank = (job: Fields) => {
    const place = ORDER.indexOf(job.headline?.kind ?? "empty");
    return place < 0 ? ORDER.length : place;
  };
  const since = (job: Fields) => job.headline?.since_ms ?? Number.MAX_SAFE_INTEGER;
  return [...jobs].sort((one, other) => rank(one) - rank(other) || since(one) - since(other) || one.name.localeCompare(other.name));
}

export function JobList({ jobs, find, now }: { jobs: Fields[]; find: string; now: number | undefined }) {
  const shown = ordered(jobs.filter((job) => job.name.includes(find)));
  if (shown.length === 0) {
    return <p>{jobs.length === 0 ? "There are no jobs." : `No job has “${find}” in its name.`}</p>;
  }
  const age = (job: Fields) =>
    job.headline?.since_ms !== undefined && now !== undefined ? span(Math.max(0, now - job.headline.since_ms)) : "-";
  return (
    <Table
      label="Jobs"
      columns={["Job", "Tasks", "State", "Waits for", "Strip"]}
      widths="minmax(7rem, 1fr) 4rem minmax(10rem, 3fr) 6rem 17rem"
      rows={shown.length}
      open={(row) => go(fresh("job", shown[row]!.name))}
      cells={(row) => {
        const job = shown[row]!;
        return [
          <a href={`/ui/job/${encodeURIComponent(job.name)}`}>{job.name}</a>,
          job.tasks,
          <span title={job.headline?.text}>
            {job.headline?.kind === "waits" || job.headline?.kind === "failed" ? "! " : ""}
            {job.headline?.text ?? `${job.connected} connected, ${job.in_error} in error`}
          </span>,
          age(job),
          job.strip ? <SmallStrip states={decode(job.strip)} /> : "",
        ];
      }}
    />
  );
}

export function Jobs({ fields, find }: { fields: Fields; find: string }) {
  return (
    <>
      <h1>Jobs</h1>
      <JobList jobs={fields.jobs ?? []} find={find} now={fields.as_of?.now_ms} />
    </>
  );
}
