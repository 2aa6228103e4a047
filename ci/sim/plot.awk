# SPDX-License-Identifier: BSD-3-Clause
# Draws results of ci/sim/scale (lines of JSON) as SVG: four panels, each over the number of servers, both
# axes logarithmic. Lower is better.
function value(key,   at) {
  at = index($0, "\"" key "\":")
  return at == 0 ? "" : substr($0, at + length(key) + 3) + 0
}
function name(   s) { s = $0; sub(/.*"operation":"/, "", s); sub(/".*/, "", s); return s }
function log10(x) { return log(x) / log(10) }
function x_of(p, servers) { return left[p] + (log10(servers) - 3) / 2 * width }
function y_of(p, v) { return top[p] + height - (log10(v) - low[p]) / (high[p] - low[p]) * height }
function text(x, y, s, more) { printf "<text x=\"%.1f\" y=\"%.1f\"%s>%s</text>\n", x, y, more, s }
function si(e) { return e < 3 ? 10 ^ e : e < 6 ? 10 ^ (e - 3) " k" : e < 9 ? 10 ^ (e - 6) " M" : 10 ^ (e - 9) " G" }

BEGIN {
  width = 330; height = 200
  split("bytes_in_max bytes_out_max memory_max frame_us", keys)
  split("Bytes to one server, at most|Bytes out of one server (the root)|Memory of one server, at most, bytes|Processor time of a frame, µs", titles, "|")
  for (p = 1; p <= 4; p++) {
    left[p] = 70 + (p - 1) % 2 * 430; top[p] = 76 + int((p - 1) / 2) * 290
    low[p] = p == 4 ? 0 : 3; high[p] = p == 4 ? 1 : 9
  }
  nlines = split("fence construct lost-construct fence-data", lines)
  split("#8fc3ee #1b6e3a #d0752a #7a4fb0", colours)
  split("8 2 2 2", widths)   # a line that another one covers is seen on both of its sides
  split("5 2.5 2.5 2.5", radii)
  split("a fence without data|a construct|a construct, a server lost|a fence with 100 bytes of each server", names, "|")
}
{
  for (p = 1; p <= 4; p++) {
    v = value(keys[p])
    id = name() SUBSEP p
    if (v > 0) points[id] = points[id] " " value("servers") ":" v
  }
}
function line(p, id, l,   n, i, at, list, xy) {
  n = split(points[id], list, " ")
  for (i = 1; i <= n; i++) {
    split(list[i], at, ":")
    xy = xy sprintf("%.1f,%.1f ", x_of(p, at[1]), y_of(p, at[2]))
    printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%s\" fill=\"%s\"/>\n", x_of(p, at[1]), y_of(p, at[2]), radii[l], colours[l]
  }
  if (n > 1) printf "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"%s\"/>\n", xy, colours[l], widths[l]
}
END {
  print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"860\" height=\"640\" viewBox=\"0 0 860 640\" font-family=\"sans-serif\" font-size=\"12\">"
  print "<rect width=\"860\" height=\"640\" fill=\"white\"/>"
  x = 70
  for (i = 1; i <= nlines; i++) {
    printf "<rect x=\"%d\" y=\"%.1f\" width=\"22\" height=\"%s\" fill=\"%s\"/>\n", x, 22 - widths[i] / 2, widths[i], colours[i]
    text(x + 28, 26, names[i])
    x += 50 + 6.6 * length(names[i])
  }
  for (p = 1; p <= 4; p++) {
    text(left[p], top[p] - 12, titles[p], " font-weight=\"bold\"")
    printf "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#888\"/>\n", left[p], top[p], width, height
    for (e = low[p]; e <= high[p]; e++) {
      printf "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", left[p], left[p] + width, y_of(p, 10 ^ e), y_of(p, 10 ^ e)
      text(left[p] - 6, y_of(p, 10 ^ e) + 4, si(e), " text-anchor=\"end\"")
    }
    for (n = 1024; n <= 65536; n *= 4)
      text(x_of(p, n), top[p] + height + 16, n, " text-anchor=\"middle\"")
    for (i = 1; i <= nlines; i++)
      line(p, lines[i] SUBSEP p, i)
    text(left[p] + width / 2, top[p] + height + 34, "servers of the step", " text-anchor=\"middle\"")
  }
  print "</svg>"
}
