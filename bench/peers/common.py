"""What every peer script shares: the command line, the clock and the one JSON line.

A peer hands `run()` an object with:
  name, package           its name, and the distribution whose version is quoted
  stores                  the accepted values of --store (first one is the default)
  async open(args)        make what conversations share (pools, tables, clients)
  async converse(cid, turns, on_turn, resume=False)
                          run `turns` turns round-robin over 3 agents; call on_turn() after
                          each one that is as durable as the peer makes it
  async done(cid)         how many turns the peer finds stored for cid (for --resume)
  stored_bytes()          bytes on disk of everything stored
  counters()              (optional) dict of other growing numbers, such as WAL bytes
  async pause(cid)        (optional) start a conversation and leave it waiting for a human
  async close()
"""
import argparse
import asyncio
import gc
import json
import os
import random
import signal
import statistics
import time

AGENTS = ("ada", "bob", "cyd")
CHARS = 1024

def _texts(n=256):
    """Different 1 KB answers that compress about as well as prose does, so that stored bytes are honest."""
    r = random.Random(7)
    words = ["".join(r.choices("etaoinshrdlucmfwypvbgkqjxz", k=r.randint(2, 9))) for _ in range(3000)]
    return [" ".join(r.choices(words, k=400))[:CHARS] for _ in range(n)]


TEXTS = _texts()
TASK = "Discuss the plan."
BASE_URL = os.environ.get("FAKE_URL", "http://127.0.0.1:8099/v1")
PG_DSN = os.environ.get("PG_DSN", "postgresql://postgres@127.0.0.1:5545/postgres")
DATA = os.environ.get("PEER_DATA", os.path.join(os.path.dirname(os.path.abspath(__file__)), "data"))
DELAY_S = float(os.environ.get("FAKE_DELAY_S", "0"))  # the in-process model's delay (langgraph only)
MARKS = (10, 100, 300, 1000)

os.environ.setdefault("OPENAI_API_KEY", "fake")
KILL = {"at_call": 0, "calls": 0}


def answer():
    """The in-process fake model: each peer's own model class returns this (and --kill-in-call dies in it)."""
    KILL["calls"] += 1
    if KILL["at_call"] and KILL["calls"] == KILL["at_call"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return TEXTS[KILL["calls"] % len(TEXTS)]


def rss_mb():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def machine_cpu_s():
    """Busy seconds of the whole machine: the peer, PostgreSQL and the fake server together."""
    with open("/proc/stat") as f:
        v = [int(x) for x in f.readline().split()[1:9]]
    return (sum(v) - v[3] - v[4]) / os.sysconf("SC_CLK_TCK")


def process_age_s():
    with open("/proc/self/stat") as f:
        start = int(f.read().rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
    with open("/proc/uptime") as f:
        return float(f.read().split()[0]) - start


def tree_bytes(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, fs in os.walk(path) for f in fs)


def parse(stores):
    ap = argparse.ArgumentParser()
    ap.add_argument("--turns", type=int, default=30, help="turns of each conversation")
    ap.add_argument("--conversations", type=int, default=1, help="how many run concurrently")
    ap.add_argument("--model", choices=("inproc", "http"), default="inproc")
    ap.add_argument("--store", choices=stores, default=stores[0])
    ap.add_argument("--repeat", type=int, default=1, help="runs in this process; medians are quoted")
    ap.add_argument("--repeat-s", type=float, default=15, help="no further repeat after this")
    ap.add_argument("--per-run", action="store_true", help="one run per turn instead of one run of N turns (langgraph)")
    ap.add_argument("--warm", type=int, default=3, help="turns of an unmeasured warm-up conversation")
    ap.add_argument("--max-s", type=float, default=90, help="stop a long conversation after this")
    ap.add_argument("--paused", type=int, default=0, help="leave this many conversations paused for a human, quote memory")
    ap.add_argument("--kill-in-call", type=int, default=0, help="kill -9 oneself inside the Nth model call (inproc)")
    ap.add_argument("--resume", default="", help="conversation to continue; quotes the time to its first new turn")
    ap.add_argument("--id", default="", help="prefix of conversation names")
    return ap.parse_args()


class Stop(Exception):
    pass


def run(peer, import_s):
    args = parse(peer.stores)
    args.id = args.id or f"c{os.getpid()}x{int(time.time())}"
    os.makedirs(DATA, exist_ok=True)
    line = asyncio.run(_run(peer, args, import_s))
    print(json.dumps(line), flush=True)
    os._exit(0)


async def _run(peer, args, import_s):
    from importlib.metadata import distributions, version
    await peer.open(args)
    base = {"peer": peer.name, "version": version(peer.package), "store": args.store, "model": args.model,
            "turns": args.turns, "conversations": args.conversations, "import_s": round(import_s, 2),
            "distributions": len({d.metadata["Name"] for d in distributions()})}

    if args.resume:
        have = await peer.done(args.resume)
        first = []

        def on_turn():
            if not first:
                first.append(process_age_s())
        await peer.converse(args.resume, args.turns, on_turn, resume=True)
        now = await peer.done(args.resume)
        return base | {"stored_turns_found": have, "turns_after": now, "model_calls_after": KILL["calls"],
                       "process_start_to_first_new_turn_s": round(first[0], 2) if first else None}
    if args.warm and not args.kill_in_call:
        await peer.converse(args.id + "-warm", args.warm, lambda: None)
    if args.kill_in_call:
        KILL["at_call"] = args.kill_in_call
        KILL["calls"] = 0
        await peer.converse(args.id, args.turns, lambda: None)
        return base | {"error": "not killed"}
    if args.paused:
        gc.collect()
        r0, t0 = rss_mb(), time.perf_counter()
        for i in range(0, args.paused, 50):
            await asyncio.gather(*(peer.pause(f"{args.id}-p{j}") for j in range(i, min(i + 50, args.paused))))
        gc.collect()
        return base | {"paused": args.paused, "rss_mb": round(rss_mb(), 1), "rss_before_mb": round(r0, 1),
                       "kb_per_paused": round((rss_mb() - r0) * 1024 / args.paused, 2),
                       "pause_s": round(time.perf_counter() - t0, 2)}

    runs = []
    started = time.perf_counter()
    for rep in range(args.repeat):
        if rep and time.perf_counter() - started > args.repeat_s:
            break
        gc.collect()
        stamps = [[] for _ in range(args.conversations)]
        k0 = peer.counters() if hasattr(peer, "counters") else {}
        b0, c0, m0, t0 = peer.stored_bytes(), time.process_time(), machine_cpu_s(), time.perf_counter()

        def make(i):
            def on_turn():
                now = time.perf_counter()
                stamps[i].append(now)
                if args.conversations == 1 and now - t0 > args.max_s:
                    raise Stop
            return on_turn
        try:
            await asyncio.gather(*(peer.converse(f"{args.id}-{rep}-{i}", args.turns, make(i))
                                   for i in range(args.conversations)))
        except Stop:
            pass
        wall, cpu, mach = time.perf_counter() - t0, time.process_time() - c0, machine_cpu_s() - m0
        n = sum(map(len, stamps))
        content = n * CHARS
        r = {"wall_s": wall, "turns_per_s": n / wall, "ms_per_turn": wall / n * 1000,
             "cpu_ms_per_turn": cpu / n * 1000, "machine_cpu_ms_per_turn": mach / n * 1000,
             "stored_bytes": peer.stored_bytes() - b0, "content_bytes": content, "done": n}
        if k0:
            r |= {k: v - k0[k] for k, v in peer.counters().items()}
        r["stored_per_content"] = r["stored_bytes"] / content
        if args.conversations == 1 and args.turns >= 100:
            s = [t0] + stamps[0]
            d = [(b - a) * 1000 for a, b in zip(s, s[1:])]
            w = 5
            for m in MARKS:
                if len(d) >= m:
                    r[f"ms_at_{m}"] = statistics.median(d[max(0, m - 1 - w):m + w])
        runs.append(r)
    if any(r["done"] != args.turns * args.conversations for r in runs):
        base["note"] = f"stopped early or miscounted: {[r['done'] for r in runs]}"
    med = {k: round(statistics.median(r[k] for r in runs if k in r), 3) for k in runs[-1]}
    await peer.close()
    return base | {"repeat": len(runs)} | med | {"rss_mb": round(rss_mb(), 1)}
