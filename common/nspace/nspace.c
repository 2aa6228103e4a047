#include "common/nspace/nspace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct nspace *nspace_new(const struct boot *boot)
{
    struct nspace *ns = calloc(1, sizeof *ns);
    if (ns == NULL)
        return NULL;
    ns->boot = boot;
    ns->node_of = calloc(boot->ntasks + 1, sizeof *ns->node_of);
    ns->local_of = calloc(boot->ntasks + 1, sizeof *ns->local_of);
    if (ns->node_of == NULL || ns->local_of == NULL) {
        nspace_free(ns);
        return NULL;
    }
    for (uint32_t i = 0; i < boot->nnodes; i++)
        for (uint32_t k = 0; k < boot->nodes[i].ntasks; k++) {
            ns->node_of[boot->nodes[i].ranks[k]] = i;
            ns->local_of[boot->nodes[i].ranks[k]] = k;
        }
    return ns;
}

int nspace_node(const struct nspace *ns, const char *name, uint32_t rank, uint32_t *node)
{
    if (strcmp(name, ns->boot->nspace) != 0 || rank >= ns->boot->ntasks)
        return -1;
    *node = ns->node_of[rank];
    return 0;
}

int nspace_servers(const struct nspace *ns, const struct signature *sig, uint32_t **nodes,
                   uint32_t *n)
{
    bool *here = calloc(ns->boot->nnodes, sizeof *here);
    *nodes = calloc(ns->boot->nnodes, sizeof **nodes);
    *n = 0;
    int rc = here == NULL || *nodes == NULL ? -1 : 0;
    for (uint32_t i = 0; rc == 0 && i < sig->members.nparts; i++) {
        const struct procset_part *part = &sig->members.parts[i];
        if (strcmp(part->nspace, ns->boot->nspace) != 0)
            rc = -1;
        for (uint32_t j = 0; rc == 0 && j < part->nranges; j++) {
            if (part->ranges[j].last >= ns->boot->ntasks)
                rc = -1;
            for (uint32_t r = part->ranges[j].first; rc == 0 && r <= part->ranges[j].last; r++)
                here[ns->node_of[r]] = true;
        }
    }
    for (uint32_t i = 0; rc == 0 && i < ns->boot->nnodes; i++)
        if (here[i])
            (*nodes)[(*n)++] = i;
    free(here);
    return rc;
}

/* Appends what fits; once something did not, the text ends in "..." for good. */
static void append(char *buf, size_t cap, const char *text)
{
    size_t len = strlen(buf);
    if (len >= 3 && strcmp(buf + len - 3, "...") == 0)
        return;
    if (len + strlen(text) + 4 <= cap)
        strcpy(buf + len, text);
    else if (len + 4 <= cap)
        strcpy(buf + len, "...");
}

void nspace_missing(const struct nspace *ns, const struct signature *sig, const uint32_t *nodes,
                    uint32_t n, char *buf, size_t cap)
{
    char text[300];
    if (cap == 0)
        return;
    buf[0] = '\0';
    for (uint32_t i = 0; i < n && nodes[i] < ns->boot->nnodes; i++) {
        const struct boot_node *node = &ns->boot->nodes[nodes[i]];
        const char *before = "";
        append(buf, cap, i > 0 ? ", ranks " : "ranks ");
        for (uint32_t k = 0; k < node->ntasks; k++) {
            if (!procset_has(&sig->members, ns->boot->nspace, node->ranks[k]))
                continue;
            snprintf(text, sizeof text, "%s%u", before, node->ranks[k]);
            append(buf, cap, text);
            before = ",";
        }
        snprintf(text, sizeof text, " on %s", node->name);
        append(buf, cap, text);
    }
}

void nspace_free(struct nspace *ns)
{
    if (ns == NULL)
        return;
    free(ns->node_of);
    free(ns->local_of);
    free(ns);
}
