import type { Fields } from "../live";

/** Everything that the page was told. */
export function Raw({ fields }: { fields: Fields }) {
  return (
    <pre class="raw" tabIndex={0} aria-label="Everything that the page was told, as JSON">
      {JSON.stringify(fields, null, 1)}
    </pre>
  );
}
