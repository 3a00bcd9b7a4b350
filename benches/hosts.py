#!/usr/bin/env python3
"""Measures `stvc watch --all-users` with generated users (docs/hosting.md).

    benches/hosts.py target/release/stvc USERS [FOLDER]

Each user has 20 chats of 10 messages in 5 folders. Prints the time until all are watched, threads,
open files, memory, the time on the processor while nobody writes, and the delay from a save to its
snapshot at 50 saves a second.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

CHATS, FOLDERS, MESSAGES = 20, 5, 10
IDLE_SECONDS, SAVE_SECONDS, SAVES_PER_SECOND = 60, 30, 50


def chat(user, number, messages):
    lines = ['{"user_name":"Ann","character_name":"Mira","chat_metadata":{}}']
    text = "All that was said at sea was written into the book of the harbour. " * 6
    for n in range(messages):
        lines.append(json.dumps({"name": "Mira", "is_user": n % 2 == 0, "mes": f"{user} {number} {n} {text}"}))
    return "\n".join(lines)


def path(data, user, number):
    return data / f"user-{user:05}" / "chats" / f"Mira {number % FOLDERS}" / f"chat {number}.jsonl"


def generate(data, users):
    for user in range(users):
        root = data / f"user-{user:05}"
        for folder in ["worlds", "characters", "groups", "group chats", "User Avatars", "user/files"]:
            (root / folder).mkdir(parents=True, exist_ok=True)
        (root / "settings.json").write_text("{}")
        for number in range(CHATS):
            file = path(data, user, number)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(chat(user, number, MESSAGES))


class Watch:
    """A running watch, with the time of each event by user."""

    def __init__(self, program, data):
        self.begin = time.monotonic()
        self.started, self.saved, self.snapshots = set(), {}, 0
        self.delays, self.user = [], None
        self.process = subprocess.Popen(
            [program, "--data", data, "--json", "watch", "--all-users", "--metrics", "0"],
            stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            now, event = time.monotonic(), json.loads(line)
            if event["type"] == "user":
                self.user = event["user"]
            elif event.get("event") == "started":
                self.started.add(self.user)
            elif event["type"] == "snapshot":
                self.snapshots += 1
                when = self.saved.pop((self.user, event["timeline"]), None)
                if when is not None:
                    self.delays.append(now - when)

    def status(self, key):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1])

    def cpu(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def wait(self, fits):
        while not fits():
            time.sleep(0.02)
        return time.monotonic() - self.begin

    def stop(self):
        begin = time.monotonic()
        self.process.terminate()
        self.process.wait()
        return time.monotonic() - begin


def quiet(watch):
    """Waits until the watch does nothing any more."""
    while True:
        before = watch.cpu()
        time.sleep(5)
        if watch.cpu() - before < 0.1:
            return


def main():
    program, users = sys.argv[1], int(sys.argv[2])
    folder = sys.argv[3] if len(sys.argv) > 3 else None
    with tempfile.TemporaryDirectory(dir=folder) as folder:
        data = pathlib.Path(folder)
        generate(data, users)
        first = Watch(program, data)
        print(f"{users} users, {users * CHATS} chats")
        print(f"first start: watched after {first.wait(lambda: len(first.started) == users):.1f} s")
        total = first.wait(lambda: first.snapshots >= users * CHATS)
        print(f"first start: {first.snapshots} snapshots after {total:.1f} s")
        quiet(first)
        first.stop()
        watch = Watch(program, data)
        print(f"start: watched after {watch.wait(lambda: len(watch.started) == users):.1f} s")
        quiet(watch)
        print(f"threads {watch.status('Threads')}, open files {watch.files()}, "
              f"memory {watch.status('VmRSS') / 1000:.0f} MB, peak {watch.status('VmHWM') / 1000:.0f} MB")
        before = watch.cpu()
        time.sleep(IDLE_SECONDS)
        print(f"idle: {(watch.cpu() - before) / IDLE_SECONDS * 100:.2f} % of a core")
        before, begin = watch.cpu(), time.monotonic()
        counts, missed = {}, 0
        for n in range(SAVE_SECONDS * SAVES_PER_SECOND):
            user, number = random.randrange(users), random.randrange(CHATS)
            file, key = path(data, user, number), (user, number)
            counts[key] = counts.get(key, MESSAGES) + 1
            temporary = file.with_suffix(".tmp")
            temporary.write_text(chat(user, number, counts[key]))
            watch.saved[(f"user-{user:05}", f"chats/Mira {number % FOLDERS}/chat {number}")] = time.monotonic()
            temporary.rename(file)
            time.sleep(max(0, begin + (n + 1) / SAVES_PER_SECOND - time.monotonic()))
        took = time.monotonic() - begin
        cpu = watch.cpu() - before
        time.sleep(10)
        delays = sorted(watch.delays)
        print(f"{len(delays) / took:.0f} saves a second: {cpu / took * 100:.0f} % of a core, snapshot after "
              f"{delays[len(delays) // 2]:.2f} s (median), {delays[len(delays) * 99 // 100]:.2f} s (99 %), "
              f"{delays[-1]:.2f} s (slowest), {len(watch.saved)} missing; "
              f"peak memory {watch.status('VmHWM') / 1000:.0f} MB, threads {watch.status('Threads')}")
        print(f"stopped after {watch.stop():.1f} s")


main()
