/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Frames are lines: "#1  0x000055e26e5ac17a read_input" of eu-stack, "#1  0x000055e26e5ac17a in
 * read_input (fd=3) at in.c:4" or "#1  read_input (fd=3) at in.c:4" of gdb.
 */
#include "common/status/stack.h"

#include "common/status/fields.h"
#include "common/util/log.h"
#include "common/util/text.h"

#include <string.h>

enum { FRAMES_MAX = 256, NAME_MAX_BYTES = 200, SHOWN_MAX = 24, SHOWN_FIRST = 8 };

/* Where gdb's arguments begin: the first " (" that is not in a template's or a lambda's brackets.
 */
static size_t name_length(const char *text)
{
    int depth = 0;
    for (size_t i = 0; text[i] != '\0'; i++) {
        bool opens = strchr("<{", text[i]) != NULL, closes = strchr(">}", text[i]) != NULL;
        if (opens && !(i >= 8 && strncmp(text + i - 8, "operator", 8) == 0))
            depth++;
        else if (closes && depth > 0)
            depth--;
        else if (depth == 0 && strncmp(text + i, " (", 2) == 0)
            return i;
    }
    return strlen(text);
}

/* "solve(int, char) const" is "solve". */
static void cut_arguments(char *name)
{
    static const char constant[] = " const", operator[] = "operator";
    size_t len = strlen(name);
    if (len > sizeof constant && strcmp(name + len - (sizeof constant - 1), constant) == 0)
        len -= sizeof constant - 1;
    if (len == 0 || name[len - 1] != ')')
        return;
    int depth = 0;
    size_t open = len;
    while (open > 0) {
        open--;
        depth += (name[open] == ')') - (name[open] == '(');
        if (depth == 0)
            break;
    }
    if (depth == 0 && open > 0 && name[open - 1] != ' ' &&
        !(open >= sizeof operator- 1 &&
              strncmp(name + open - (sizeof operator- 1), operator, sizeof operator- 1) ==
          0))
        name[open] = '\0';
}

static bool starts_program(const char *name)
{
    return strcmp(name, "_start") == 0 || strncmp(name, "__libc_start_", 13) == 0;
}

/* What a compiler or a library adds to a name. */
static char *plain_name(char *name)
{
    static const char *const made[] = {".isra.", ".part.",     ".constprop.",
                                       ".cold",  ".lto_priv.", "@"};
    static const char *const inner[] = {"__GI_", "__libc_"};
    cut_arguments(name);
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        char *at = strstr(name, made[i]);
        if (at != NULL && at != name)
            *at = '\0';
    }
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++) {
        size_t len = strlen(inner[i]);
        if (strncmp(name, inner[i], len) == 0 && name[len] != '\0' && !starts_program(name))
            name += len;
    }
    if (strlen(name) > NAME_MAX_BYTES)
        name[NAME_MAX_BYTES] = '\0';
    return name[0] != '\0' ? name : (char *)"??";
}

/* @param line after '#' @return the function's name, in it; NULL: it is no frame */
static char *frame_name(char *line)
{
    size_t digits = strspn(line, "0123456789");
    char *at = line + digits;
    if (digits == 0 || (*at != ' ' && *at != '\0'))
        return NULL;
    at += strspn(at, " ");
    bool gdb = strncmp(at, "0x", 2) != 0;
    if (!gdb) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
        gdb = strncmp(at, "in ", 3) == 0;
        at += gdb ? 3 : 0;
    }
    if (gdb)
        at[name_length(at)] = '\0';
    return plain_name(at);
}

/* The other way round. */
static json_object *turned(json_object *frames)
{
    size_t n = json_object_array_length(frames);
    json_object *stack = n > 0 ? json_object_new_array() : NULL;
    for (size_t i = n; i > 0; i--)
        json_object_array_add(stack, json_object_get(json_object_array_get_idx(frames, i - 1)));
    json_object_put(frames);
    return stack;
}

json_object *stack_read(char *text)
{
    json_object *frames = json_object_new_array();
    char *line, *name;
    while ((line = strsep(&text, "\n")) != NULL) {
        size_t n = json_object_array_length(frames);
        if (n == FRAMES_MAX || (n > 0 && strncmp(line, "TID ", 4) == 0))
            break; /* the next thread */
        if (line[0] != '#' || (name = frame_name(line + 1)) == NULL)
            continue;
        log_mask(name);
        json_object_array_add(frames, json_object_new_string(name));
    }
    return turned(frames);
}

/* ---- one line ---- */

static const char *name_at(json_object *stack, size_t i)
{
    json_object *name = json_object_array_get_idx(stack, i);
    return json_object_is_type(name, json_type_string) ? json_object_get_string(name) : "??";
}

/* main, else what the C library has called first. */
static size_t first_of(json_object *stack, size_t n)
{
    enum { BEFORE_MAX = 4 };
    size_t first = 0;
    for (size_t i = 0; i < n; i++)
        if (strcmp(name_at(stack, i), "main") == 0)
            return i;
    for (size_t i = 0; i + 1 < n && i < BEFORE_MAX; i++)
        if (starts_program(name_at(stack, i)))
            first = i + 1;
    return first;
}

static bool is_library_call(const char *name)
{
    static const char *const begins[] = {"MPI_", "PMPI_", "MPIX_", "PMIx_", "shmem_"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

/* @return the number of frames from the start to the first call of MPI and the like */
static size_t until_call(json_object *stack, size_t first, size_t n)
{
    for (size_t i = first; i < n; i++)
        if (is_library_call(name_at(stack, i)))
            return i + 1;
    return n;
}

char *stack_line(json_object *stack, bool full)
{
    size_t n = field_length(stack);
    if (n == 0)
        return NULL;
    size_t first = first_of(stack, n), end = full ? n : until_call(stack, first, n);
    while (!full && end > first + 1 && strcmp(name_at(stack, end - 1), "??") == 0)
        end--; /* inside of the C library, whose names are not installed */
    bool cut = !full && end - first > SHOWN_MAX;
    char *line = strdup("");
    for (size_t i = first; i < end; i++) {
        size_t at = i - first;
        const char *name = name_at(stack, i);
        if (cut && at >= SHOWN_FIRST && end - i > SHOWN_MAX - SHOWN_FIRST) {
            if (at == SHOWN_FIRST)
                line = text_append(line, " > ", "...");
        } else if (at == 0 || strcmp(name, name_at(stack, i - 1)) != 0) { /* a recursion once */
            line = text_append(line, " > ", name);
        }
    }
    if (line != NULL)
        log_mask(line);
    return line;
}
