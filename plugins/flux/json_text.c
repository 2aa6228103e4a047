/* SPDX-License-Identifier: BSD-3-Clause */
/* Strings of JSON: quotes, backslashes and control characters are escaped. */
#include "plugins/flux/json_text.h"

void json_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < ' ')
            fprintf(out, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}
