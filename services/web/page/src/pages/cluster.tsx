import { bytes, span } from "../letters";
import type { Fields, Shown } from "../live";
import { elsewhere } from "../place";
import { JobList } from "./jobs";

/** The cluster's nodes, and its jobs. */
export function Cluster({ shown, find }: { shown: Shown; find: string }) {
  const cluster = shown.fields.cluster as Fields | undefined;
  if (!cluster) return <p>Nothing is known yet.</p>;
  const voters = cluster.members.filter((member: Fields) => member.voter).length;
  return (
    <>
      <h1>Cluster {cluster.id}</h1>
      <p class={cluster.leader === null ? "banner bad" : "banner"}>
        {cluster.leader === null ? "! nobody leads" : `node ${cluster.leader} leads`}, term {cluster.term}; {voters} voters;
        feature level {cluster.level}; told by node {cluster.node} ({cluster.role})
      </p>
      {troubles(cluster).map((text) => (
        <p class="banner bad">! {text}</p>
      ))}
      <div class="wide" role="region" aria-label="Nodes" tabIndex={0}>
        <table>
          <caption>Nodes</caption>
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col">Role</th>
              <th scope="col">Clients</th>
              <th scope="col">Page</th>
              <th scope="col">Lag</th>
              <th scope="col">Answered</th>
            </tr>
          </thead>
          <tbody>
            {cluster.members.map((member: Fields) => (
              <tr>
                <th scope="row">{member.node}</th>
                <td>
                  {member.node === cluster.leader ? "leader" : member.voter ? "voter" : "learner"}
                  {member.drained ? ", drained" : ""}
                </td>
                <td>{member.client ?? "not announced"}</td>
                <td>
                  <Page http={member.http} />
                </td>
                <td>{member.lag ?? "-"}</td>
                <td>{member.heard_ms_ago === null ? "-" : `${span(member.heard_ms_ago)} ago`}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {cluster.role === "leader" ? null : <p class="soft">Lag and answers of nodes are known on the leader's page.</p>}
      <dl class="facts">
        <dt>Connections of clients here</dt>
        <dd>{cluster.connections}</dd>
        <dt>Calls that wait here</dt>
        <dd>{cluster.waiting_calls}</dd>
        <dt>Sessions</dt>
        <dd>{cluster.sessions}</dd>
        <dt>State</dt>
        <dd>{bytes(cluster.state_bytes)}</dd>
        <dt>Slowest hundredth of flushes here</dt>
        <dd>{cluster.flush_p99_ms === null ? "none yet" : `${cluster.flush_p99_ms} ms`}</dd>
        <dt>Free on this node's disk</dt>
        <dd>{bytes(cluster.disk_free_bytes)}</dd>
      </dl>
      <h2>Jobs</h2>
      <JobList jobs={shown.fields.jobs ?? []} find={find} now={shown.fields.as_of?.now_ms} />
    </>
  );
}

function Page({ http }: { http: string | null }) {
  if (!http) return <>not announced</>;
  const address = elsewhere(http, "/ui/");
  return address ? <a href={address}>{http}</a> : <>{http}</>;
}

function troubles(cluster: Fields): string[] {
  const found: string[] = [];
  if (cluster.forming) found.push(`the cluster is being formed; these nodes have not answered: ${cluster.forming.join(", ")}`);
  if (cluster.divergence) found.push(cluster.divergence);
  if (cluster.growth_refused) found.push(`nothing may grow: ${cluster.growth_refused}`);
  if (cluster.disk_full) found.push("this node's disk is down to its reserve");
  return found;
}
