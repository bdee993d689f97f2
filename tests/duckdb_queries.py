"""Runs the queries of docs/duckdb.md by DuckDB and prints their results as JSON, by heading.

Arguments: the document, DuckDB's extension for S3, the address to put in place of s3://BUCKET, a request's id. The store's endpoint and
credentials are in the variables that Radixscope reads.
"""

import json
import os
import sys

import duckdb

document, extension, bucket, request = sys.argv[1:]


def blocks():
    """Headings and the SQL below them."""
    heading, lines = None, None
    for line in open(document, encoding="utf-8"):
        line = line.rstrip("\n")
        if lines is not None and line == "```":
            yield heading, "\n".join(lines)
            lines = None
        elif lines is not None:
            lines.append(line)
        elif line.startswith("## "):
            heading = line[3:]
        elif line == "```sql":
            lines = []


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


connection = duckdb.connect(config={"autoinstall_known_extensions": False})
connection.execute(f"LOAD {quoted(extension)}")
endpoint = os.environ["AWS_ENDPOINT_URL"].removeprefix("http://")
key, secret, region = (os.environ[f"AWS_{name}"] for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "REGION"))
connection.execute(
    f"CREATE SECRET (TYPE s3, KEY_ID {quoted(key)}, SECRET {quoted(secret)}, REGION {quoted(region)}, "
    f"ENDPOINT {quoted(endpoint)}, URL_STYLE 'path', USE_SSL false)"
)
results = {}
for heading, sql in blocks():
    sql = sql.replace("s3://BUCKET", bucket).replace("'REQUEST'", quoted(request))
    # The document's own way to the extension and to a bucket of a cloud.
    if sql.startswith("INSTALL"):
        continue
    cursor = connection.execute(sql)
    if heading == "Set up":
        continue
    names = [column[0] for column in cursor.description]
    results[heading] = [dict(zip(names, row)) for row in cursor.fetchall()]
results["columns"] = [row[0] for row in connection.execute("DESCRIBE decisions").fetchall()]
duplicates = "SELECT count(*) - count(DISTINCT (cluster, request_id, worker_id, decision_id)) FROM decisions"
results["duplicates"] = connection.execute(duplicates).fetchone()[0]
json.dump(results, sys.stdout, default=str)
