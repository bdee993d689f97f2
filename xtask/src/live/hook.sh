#!/usr/bin/env bash
# Runs beside a real Dynamo, in its network: starts Radixscope, and asks it for everything when told to.
# LIVE is the folder of questions and answers, RADIXSCOPE the binary.
set -u
"$RADIXSCOPE" serve --nats nats://127.0.0.1:4222 --listen 127.0.0.1:8321 >"$LIVE/serve.log" 2>&1 &
until [ -e "$LIVE/ask" ]; do sleep 0.2; done
for page in cluster decisions; do
  query=; [ $page = decisions ] && query='?limit=10000'
  curl --silent --show-error --fail --max-time 10 --output "$LIVE/$page.json" \
    "http://127.0.0.1:8321/api/v1/$page$query" 2>>"$LIVE/curl.log"
done
curl --silent --show-error --max-time 10 --output "$LIVE/readyz.txt" http://127.0.0.1:8321/readyz 2>>"$LIVE/curl.log"
touch "$LIVE/answered"
wait
