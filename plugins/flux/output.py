# SPDX-License-Identifier: BSD-3-Clause
"""flux python output.py URI JOB: what the tasks of a job print, from its beginning to its end, as whole lines with
"RANK: " in front. muster-server runs it as its printer (common/upcall/printer.h)."""
import base64
import sys

import flux
from flux.idset import IDset
from flux.job import JobID, event_watch

LINE_MAX = 1 << 20  # bytes; a longer line is cut


def data_of(context):
    data = context.get("data") or ""
    if context.get("encoding") == "base64":
        return base64.b64decode(data) * context.get("repeat", 1)
    return data.encode("utf-8", "surrogateescape") * context.get("repeat", 1)


def write(stream, lines):
    name, rank = stream
    out = sys.stderr.buffer if name == "stderr" else sys.stdout.buffer
    for line in lines:
        out.write(b"%d: %s\n" % (rank, line))
    out.flush()


def main(uri, job):
    begun = {}  # of each stream, the beginning of a line whose end has not come
    for event in event_watch(flux.Flux(uri), JobID(job), "guest.output"):
        context = event.context
        if event.name == "redirect":  # no line of a rank: it goes to the server's log
            print("%s of ranks %s goes to %s" % (context["stream"], context["rank"], context.get("path")), file=sys.stderr)
        if event.name != "data":
            continue
        data = data_of(context)
        for rank in IDset(context["rank"]):  # more than one where they have printed the same
            stream = (context["stream"], rank)
            *lines, rest = (begun.pop(stream, b"") + data).split(b"\n")
            if rest and (context.get("eof") or len(rest) > LINE_MAX):
                lines.append(rest)
            elif rest:
                begun[stream] = rest
            write(stream, lines)
    for stream, rest in begun.items():  # a task that was killed with its shell has no eof
        write(stream, [rest])


main(*sys.argv[1:])
