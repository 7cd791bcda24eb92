#!/usr/bin/env python3
"""Figures of a mail queue for Prometheus, from `postqueue -j`: what exporters of
this kind do, and nothing that is peculiar to one mail system.

    queue_exporter.py    print the metrics once"""
import collections
import json
import subprocess
import sys
import time

BUCKETS = (60, 300, 3600, 86400)


def read(stream, now):
    messages, sizes, forced = collections.Counter(), collections.Counter(), 0
    ages = collections.defaultdict(lambda: [0] * (len(BUCKETS) + 1))
    domains, reasons, senders = collections.Counter(), collections.Counter(), collections.Counter()
    for line in stream:
        item = json.loads(line)
        queue = item["queue_name"]
        assert item["queue_id"].isalnum(), item["queue_id"]
        messages[queue] += 1
        sizes[queue] += item["message_size"]
        forced += item["forced_expire"] is True
        senders[item["sender"].rpartition("@")[2]] += 1
        age = now - item["arrival_time"]
        for n, limit in enumerate((*BUCKETS, float("inf"))):
            ages[queue][n] += age <= limit
        for rcpt in item["recipients"]:
            domains[rcpt["address"].rpartition("@")[2]] += 1
            if "delay_reason" in rcpt:
                reasons[rcpt["delay_reason"].split()[0]] += 1
    return messages, sizes, forced, ages, senders, domains, reasons


def tell(name, label, figures):
    for key, value in sorted(figures.items()):
        print(f'mailqueue_{name}{{{label}="{key}"}} {value}')


def main():
    with subprocess.Popen(["postqueue", "-j"], stdout=subprocess.PIPE, text=True) as listing:
        messages, sizes, forced, ages, senders, domains, reasons = read(listing.stdout, time.time())
    tell("messages", "queue", messages)
    tell("bytes", "queue", sizes)
    print(f"mailqueue_forced_expire {forced}")
    for queue, counts in sorted(ages.items()):
        for limit, count in zip((*BUCKETS, "+Inf"), counts):
            print(f'mailqueue_age_seconds_bucket{{queue="{queue}",le="{limit}"}} {count}')
    tell("senders", "domain", senders)
    tell("recipients", "domain", domains)
    tell("reasons", "code", reasons)
    print(f"mailqueue_up {int(listing.returncode == 0)}")
    return listing.returncode


if __name__ == "__main__":
    sys.exit(main())
