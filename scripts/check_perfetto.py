#!/usr/bin/env python3
"""Checks a Perfetto export against the schedule and the result of the same run.

The file is decoded with the schema inside the PyPI package `perfetto`, which shares no code with our encoder:
    pip install perfetto protobuf
    ptosim run bgemm --perfetto run.pftrace --schedule run.csv --json run.json
    scripts/check_perfetto.py run.pftrace run.csv run.json
"""

import csv
import json
import sys
from collections import defaultdict

try:
    from google.protobuf.message import DecodeError
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
except ImportError:
    sys.exit("check_perfetto.py: NOTHING WAS CHECKED: the PyPI packages perfetto and protobuf are not installed")


def read_tracks(trace):
    """Names and parents of tracks by identity, and interned names of slices and of the numbers beside them."""
    tracks, names, facts = {}, {}, {}
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            name = descriptor.process.process_name if descriptor.HasField("process") else descriptor.name
            assert descriptor.uuid not in tracks, f"track {descriptor.uuid} is described twice"
            tracks[descriptor.uuid] = (name, descriptor.parent_uuid, descriptor.HasField("counter"))
        for entry in packet.interned_data.event_names:
            names[entry.iid] = entry.name
        for entry in packet.interned_data.debug_annotation_names:
            facts[entry.iid] = entry.name
    return tracks, names, facts


def read_events(trace, tracks, names, fact_names):
    """Slices and counters by track name, in the order in which they begin."""
    events = sorted((p for p in trace.packet if p.HasField("track_event")), key=lambda p: p.timestamp)
    slices, counters, open_slices, flows = defaultdict(list), defaultdict(list), {}, defaultdict(list)
    for packet in events:
        event, now = packet.track_event, packet.timestamp
        track = tracks[event.track_uuid][0]
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            assert track not in open_slices, f"{track}: slices overlap at {now}"
            facts = {fact_names[a.name_iid]: a.uint_value for a in event.debug_annotations if a.HasField("uint_value")}
            open_slices[track] = (now, names[event.name_iid], facts)
            for flow in event.flow_ids:
                flows[flow].append(("from", facts["task"]))
            for flow in event.terminating_flow_ids:
                flows[flow].append(("to", facts["task"]))
        elif event.type == TrackEvent.TYPE_SLICE_END:
            start, name, facts = open_slices.pop(track)
            slices[track].append((start, now, name, facts))
        elif event.type == TrackEvent.TYPE_COUNTER:
            counters[track].append((now, event.counter_value))
    assert not open_slices, f"slices without end: {open_slices}"
    return slices, counters, flows


def check_workers(slices, result, rows):
    """Every row of the schedule is a slice of its worker, and there are no others."""
    numbers = defaultdict(int)
    expected = defaultdict(list)
    labels = {}
    for worker in result["workers"]:
        kind = worker["type"]
        labels[worker["id"]] = f"{kind} {numbers[kind]}"
        numbers[kind] += 1
    for row in rows:
        row = {key: int(value) for key, value in row.items()}
        facts = {key: row[key] for key in ("task", "block", "submit", "ready")}
        expected[labels[row["worker"]]].append((row["start"], row["end"], facts))
    for label in labels.values():
        # A slice without a block is block 0, and one without ready was ready when it started.
        found = sorted((s, e, sorted(({"block": 0, "ready": s} | f).items())) for s, e, _, f in slices.get(label, []))
        wanted = sorted((s, e, sorted(f.items())) for s, e, f in expected[label])
        wrong = next((pair for pair in zip(found, wanted) if pair[0] != pair[1]), None)
        assert wrong is None, f"{label}: the slice {wrong[0]} should be {wrong[1]}"
        assert len(found) == len(wanted), f"{label}: {len(found)} slices, {len(wanted)} rows"
    return len(labels)


def check_runtime(slices, result):
    """Busy cycles of orchestrator and scheduler are those of the result."""
    by_job = defaultdict(int)
    for track, list_ in slices.items():
        if track.startswith("scheduler thread"):
            for start, end, name, _ in list_:
                by_job[name] += end - start
    for job in ("admit", "complete", "dispatch"):
        assert by_job[job] == result["scheduler"][job], f"{job}: {by_job[job]} != {result['scheduler'][job]}"
    working = sum(end - start for start, end, name, _ in slices.get("orchestrator", []) if name == "submit")
    assert working == result["orchestrator"]["working"], f"orchestrator: {working}"


def check_counters(counters, result):
    """Window and heap stay within their limits, reach what the result says, and end empty; ready queues end empty."""
    limits, rings = result["machine"]["limits"], result["high_water"]["rings"]
    for index, ring in enumerate(rings):
        suffix = f" of ring {index}" if len(rings) > 1 else ""
        for name, limit, most in (("window", limits["window"], ring["window"]), ("heap", limits["heap"], ring["heap"])):
            values = [value for _, value in counters[name + suffix]]
            assert values and max(values) <= most <= limit, f"{name}{suffix}: {max(values)} of {most}"
            if result["outcome"] == "completed":
                assert values[-1] == 0, f"{name}{suffix} ends with {values[-1]}"
    for kind, most in result["high_water"]["ready"].items():
        values = [value for _, value in counters.get(f"ready {kind}", [(0, 0)])]
        assert max(values) <= max(most, 0), f"ready {kind}: {max(values)} of {most}"
        if result["outcome"] == "completed":
            assert values[-1] == 0, f"ready {kind} ends with {values[-1]}"
    for name, list_ in counters.items():
        assert all(a[0] < b[0] for a, b in zip(list_, list_[1:])), f"{name}: two values at one moment"


def check_flows(flows, rows, result):
    """Every arrow has two ends, and leads from a task that ended to one that starts later or at once."""
    starts, ends = {}, {}
    for row in rows:
        task, start, end = int(row["task"]), int(row["start"]), int(row["end"])
        starts[task] = min(start, starts.get(task, start))
        ends[task] = max(end, ends.get(task, end))
    for flow, found in flows.items():
        tasks = dict(found)
        if len(found) == 2 and len(tasks) == 2:
            assert ends[tasks["from"]] <= starts[tasks["to"]], f"flow {flow}: {found} runs against time"
        else:
            assert result["outcome"] != "completed", f"flow {flow} has not two ends: {found}"


def main(trace_path, schedule_path, result_path):
    trace = Trace()
    with open(trace_path, "rb") as file:
        trace.ParseFromString(file.read())
    with open(schedule_path, newline="") as file:
        rows = list(csv.DictReader(file))
    with open(result_path) as file:
        result = json.load(file)
    tracks, names, fact_names = read_tracks(trace)
    for name, parent, _ in tracks.values():
        assert parent == 0 or parent in tracks, f"{name}: its parent {parent} is not described"
    slices, counters, flows = read_events(trace, tracks, names, fact_names)
    workers = check_workers(slices, result, rows)
    check_runtime(slices, result)
    check_counters(counters, result)
    check_flows(flows, rows, result)
    print(f"{trace_path}: {len(trace.packet)} packets, {workers} workers, {len(rows)} slices, "
          f"{sum(map(len, counters.values()))} counter values, {len(flows)} arrows: as scheduled")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except (AssertionError, DecodeError) as problem:
        sys.exit(f"check_perfetto.py: FAILED: {sys.argv[1]}: {problem}")
