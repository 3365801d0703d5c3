import type { Fields } from "../live";
import { Table } from "../table";

/** A job's object stores and workers. */
export function Stores({ fields }: { fields: Fields }) {
  const stores = (fields.stores ?? []) as Fields[];
  const workers = (fields.workers ?? []) as Fields[];
  const most = Math.max(1, ...stores.map((store) => store.objects));
  return (
    <section aria-label="Stores">
      <h2>Object stores</h2>
      <Table
        label="Object stores"
        columns={["Store", "Address", "State", "Objects", "", "Coming"]}
        widths="5rem minmax(9rem, 2fr) 6rem 6rem minmax(5rem, 1fr) 6rem"
        rows={stores.length}
        cells={(row) => {
          const store = stores[row]!;
          return [
            store.store,
            store.address,
            store.alive ? "alive" : "! dead",
            store.objects,
            <meter value={store.objects} max={most} aria-label={`${store.objects} objects`} />,
            store.coming,
          ];
        }}
      />
      <h2>Workers and drivers</h2>
      <Table
        label="Workers and drivers"
        columns={["Worker", "Kind", "Address", "Store", "State", "Tasks"]}
        widths="5rem 6rem minmax(9rem, 2fr) 5rem minmax(6rem, 2fr) 5rem"
        rows={workers.length}
        cells={(row) => {
          const worker = workers[row]!;
          return [
            worker.worker,
            worker.driver ? "driver" : "worker",
            worker.address,
            worker.store,
            worker.state === "dead" ? `! dead: ${worker.why}` : worker.state,
            worker.running,
          ];
        }}
      />
    </section>
  );
}
