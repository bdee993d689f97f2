"""Sends conversations with shared beginnings to a frontend, some of them with a session or a class of policy, and writes what it sent."""

import argparse
import json
import random
import threading
import time
import urllib.request

WORDS = "system value index module function return buffer string object class method error state table record cluster worker".split()
FRONTEND = "http://127.0.0.1:8000"


def words(rng, count):
    return " ".join(rng.choice(WORDS) for _ in range(count))


def call(path, body, headers=None, method="POST"):
    headers = {"content-type": "application/json", **(headers or {})}
    request = urllib.request.Request(FRONTEND + path, body and json.dumps(body).encode(), headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.loads(response.read())


def patch(parameters):
    """Changes the settings of the frontend's router. Radixscope never does that."""
    router = call("/router_policy", None, method="GET")["routers"][0]
    return call(
        "/router_policy",
        {
            "router_id": router["router_id"],
            "expected_revision": router["configuration"]["revision"],
            "parameters": parameters,
        },
        method="PATCH",
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--conversations", type=int, default=24)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--sessions", type=int, default=0, help="conversations that name their session")
    parser.add_argument("--classes", default="", help="classes of policy, by turns; '-' is none")
    parser.add_argument("--patch", default="", help="parameters that apply from half of the conversations on")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    classes = args.classes.split(",") if args.classes else ["-"]
    waiting = list(range(args.conversations))[::-1]
    lock = threading.Lock()
    out = open(args.out, "w")

    def write(record):
        with lock:
            out.write(json.dumps(record) + "\n")
            out.flush()

    def converse(conversation):
        rng = random.Random(conversation)
        start = words(random.Random(1000 + conversation % 6), 900)
        messages = [{"role": "system", "content": start}]
        for turn in range(args.turns):
            messages.append({"role": "user", "content": words(rng, 60)})
            headers = {}
            if conversation < args.sessions:
                headers["X-Dynamo-Session-ID"] = f"session-{conversation}"
            if classes[conversation % len(classes)] != "-":
                headers["x-dynamo-meta-policy-class"] = classes[conversation % len(classes)]
            body = {"model": "models/tiny-llama", "messages": messages, "max_tokens": 24}
            sent = {"turn": turn, "in_session": conversation < args.sessions}
            answer = call("/v1/chat/completions", body, headers)
            write({**sent, "request_id": answer["id"].split("-", 1)[1]})
            messages.append({"role": "assistant", "content": answer["choices"][0]["message"].get("content") or "ok"})
            time.sleep(rng.random() * 0.2)

    def work():
        while True:
            with lock:
                if not waiting:
                    return
                conversation = waiting.pop()
                is_half = conversation == args.conversations // 2
            if args.patch and is_half:
                write({"patched": patch(json.loads(args.patch))})
            converse(conversation)

    threads = [threading.Thread(target=work) for _ in range(args.concurrency)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


main()
