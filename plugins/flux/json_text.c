/* SPDX-License-Identifier: BSD-3-Clause */
/* Strings of JSON: quotes, backslashes and control characters are escaped. */
#include "plugins/flux/json_text.h"

#include <string.h>

void json_escape(FILE *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < ' ')
            fprintf(out, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else
            fputc(c, out);
    }
}

void json_text(FILE *out, const char *text)
{
    fputc('"', out);
    json_escape(out, text, strlen(text));
    fputc('"', out);
}
