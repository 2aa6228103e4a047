/* SPDX-License-Identifier: BSD-3-Clause */
/* The boot message of a wide step. */
#include "ci/wide/wide.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *need(void *p)
{
    if (p != NULL)
        return p;
    fputs("wide: out of memory\n", stderr);
    exit(1);
}

static char *text(const char *format, unsigned number)
{
    char *made = NULL;
    if (asprintf(&made, format, number) < 0)
        made = NULL;
    return need(made);
}

void step_lay_out(struct boot *boot, uint32_t nnodes, uint32_t tasks, const char *tmpdir)
{
    *boot = (struct boot){.session = text("%u", 1),
                          .nspace = text("wide.%u.0", 1),
                          .label = text("%u.0", 1),
                          .tmpdir = need(strdup(tmpdir)),
                          .nnodes = nnodes,
                          .ntasks = nnodes * tasks,
                          .nodes = need(calloc(nnodes, sizeof *boot->nodes))};
    for (uint32_t i = 0; i < nnodes; i++) {
        struct boot_node *node = &boot->nodes[i];
        *node = (struct boot_node){.name = text("node%05u", i),
                                   .ntasks = tasks,
                                   .slots = tasks,
                                   .ranks = need(calloc(tasks, sizeof *node->ranks))};
        for (uint32_t k = 0; k < tasks; k++)
            node->ranks[k] = i * tasks + k;
    }
    boot->allocation = (struct boot_allocation){.rm = text("wide", 0),
                                                .rm_version = text("1", 0),
                                                .cluster = text("wide", 0),
                                                .nodes = text("", 0),
                                                .slots = nnodes * tasks};
    boot_set(boot, "backend", "alone");
    boot_set(boot, "unit", "step");
}
