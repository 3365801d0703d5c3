"""Renders the chart with Helm, and compares with `rendered/`: `--write` writes it anew.

    python -m pip install --requirement deploy/kubernetes/requirements.txt
    python deploy/kubernetes/check_chart.py

Tests without Helm read what is in `rendered/`. Its first line is a hash of the chart, so that they notice when the chart
was changed and not rendered.
"""

import hashlib
import pathlib
import sys

import helm_python

HERE = pathlib.Path(__file__).parent
CHART = HERE / "tripod"
RENDERED = HERE / "rendered"

# Name of the file, of the release and of its namespace, and values.
CASES = [
    ("default", "tripod", "default", {}),
    (
        "joining",
        "train",
        "ml",
        {
            "replicas": 5,
            "firstStart": False,
            "antiAffinity": "soft",
            "settings": {"timing": "fast", "tasks": "8"},
            "storage": {"size": "20Gi", "className": "local"},
            "nodeSelector": {"pool": "control"},
            "tolerations": [{"key": "control", "operator": "Exists"}],
            "networkPolicy": {"enabled": True, "clients": {"team": "vision"}},
            "image": {"repository": "registry.example.org/tripod", "tag": "0.1.0"},
        },
    ),
    (
        "protected",
        "tripod",
        "ml",
        {
            "tls": {
                "volume": {
                    "secret": {
                        "secretName": "tripod-tls",
                        "defaultMode": 0o440,
                        "items": [
                            {"key": f"tripod-{node}.{ending}", "path": f"tripod-{node}/tls.{ending}"}
                            for node in (1, 2, 3)
                            for ending in ("crt", "key")
                        ]
                        + [{"key": "ca.crt", "path": f"tripod-{node}/ca.crt"} for node in (1, 2, 3)],
                    }
                },
                "directory": "$(POD_NAME)",
            },
        },
    ),
]

# Values that the schema must refuse, and a word of the reason.
REFUSED = [
    ({"replicas": 2}, "replicas"),
    ({"replicas": "3"}, "replicas"),
    ({"settings": {"node": "2"}}, "node"),
    ({"ports": {"client": 40000}}, "client"),
    ({"antiAfinity": "soft"}, "antiAfinity"),
    ({"pauseBeforeStop": 0}, "pauseBeforeStop"),
    ({"settings": {"insecure": "true"}}, "insecure"),
    ({"tls": {"directory": "../node"}}, "directory"),
]


def hash_of_chart():
    """Of every file of the chart: its path, a zero, its bytes, a zero; in the order of the paths."""
    digest = hashlib.sha256()
    for path in sorted(path for path in CHART.rglob("*") if path.is_file()):
        digest.update(path.relative_to(CHART).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def render(chart, release, namespace, values):
    """All manifests as one text, without the notes."""
    manifests = chart.render(values, name=release, namespace=namespace)
    parts = [f"# chart {hash_of_chart()}\n"]
    for path, text in sorted(manifests.items()):
        if path.endswith(".yaml") and text.strip():
            parts.append(f"---\n# Source: {path}\n{text.strip()}\n")
    return "".join(parts)


def main():
    """Ends with 1 if something is not as it should be."""
    wrong = [finding for finding in helm_python.lint(str(CHART))["messages"] if finding["severity"] > 1]
    wrong = [f"{finding['path']}: {finding['error']}" for finding in wrong]
    with helm_python.Chart.load(str(CHART)) as chart:
        for values, word in REFUSED:
            try:
                chart.validate_schema(values)
            except helm_python.HelmError as error:
                if word not in str(error):
                    wrong.append(f"values {values} were refused without naming {word}: {error}")
            else:
                wrong.append(f"values {values} were taken")
        for name, release, namespace, values in CASES:
            chart.validate_schema(values)
            text = render(chart, release, namespace, values)
            file = RENDERED / f"{name}.yaml"
            if "--write" in sys.argv[1:]:
                RENDERED.mkdir(exist_ok=True)
                file.write_text(text)
            elif not file.exists() or file.read_text() != text:
                wrong.append(f"{file} is not what the chart renders; to write it: python {sys.argv[0]} --write")
    for line in wrong:
        print(line, file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
