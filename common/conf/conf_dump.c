/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Settings as text, with a comment for each key.
 */
#include "common/conf/conf_schema.h"

static void dump_value(const struct conf_row *row, const struct conf *conf, FILE *out)
{
    char value[CONF_PATH_SIZE];
    conf_row_show(row, conf, value, sizeof(value));
    const char *quote = row->kind == CONF_NUMBER ? ""
                        : row->kind == CONF_WORD ? conf_word_quote(value)
                                                 : "\"";
    fprintf(out, "%s%s%s", quote, value, quote);
}

static void dump_comment(const struct conf_row *row, const char *indent, FILE *out)
{
    char range[96];
    fprintf(out, "%s// %s\n", indent, row->help);
    if (row->kind == CONF_SECTION)
        return;
    conf_row_range(row, range, sizeof(range));
    fprintf(out, "%s// %s; default ", indent, range);
    struct conf defaults;
    conf_defaults(&defaults);
    dump_value(row, &defaults, out);
    fprintf(out, "\n");
}

void conf_dump(const struct conf *conf, const struct conf_sources *sources, FILE *out)
{
    const struct conf_row *section = NULL;
    fprintf(out, "// Settings of muster. A key that is left out has its default.\n{\n");
    for (const struct conf_row *row = conf_rows; row->key; row++) {
        bool more = row[1].key && (!section || conf_row_in(row + 1, section));
        const char *indent = section ? "        " : "    ";
        dump_comment(row, indent, out);
        if (sources && sources->of[row - conf_rows] != CONF_DEFAULT)
            fprintf(out, "%s// by: %s\n", indent,
                    conf_source_name((enum conf_source)sources->of[row - conf_rows]));
        fprintf(out, "%s\"%s\": ", indent, conf_row_leaf(row));
        if (row->kind == CONF_SECTION) {
            fprintf(out, "{\n");
            section = row;
            continue;
        }
        dump_value(row, conf, out);
        fprintf(out, "%s\n", more ? "," : "");
        if (section && !more) {
            fprintf(out, "    }%s\n", row[1].key ? "," : "");
            section = NULL;
        }
    }
    fprintf(out, "}\n");
}
