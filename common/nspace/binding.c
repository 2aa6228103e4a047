/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Reads the processors of a task from the kernel (sched_getaffinity) when it is there, compares
 * them with our own, and stores cpuset, locality and package with libpmix.
 */
#include "common/nspace/binding.h"

#include "common/nspace/maps.h"
#include "common/nspace/register.h"
#include "common/util/log.h"
#include "common/util/text.h"

#include <errno.h>
#include <pmix.h>
#include <pmix_server.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CPUS_MAX = 16384, /* the kernel refuses a set that is smaller than its own */
    NO_PACKAGE = -1,
};

static pmix_value_t string(char *text)
{
    return (pmix_value_t){.type = PMIX_STRING, .data.string = text};
}

/* A task that is not bound has a locality all the same: by it a program sees that tasks share the
 * node.
 * @param text "hwloc:0-3,8", the form that libpmix itself writes */
static void store_binding(const pmix_proc_t *proc, char *text, bool bound)
{
    pmix_cpuset_t cpuset = {0};
    char *locality = NULL;
    pmix_status_t rc = PMIx_Parse_cpuset_string(text, &cpuset);
    if (bound)
        register_store(proc, PMIX_CPUSET, string(text));
    if (rc == PMIX_SUCCESS)
        rc = PMIx_server_generate_locality_string(&cpuset, &locality);
    if (rc == PMIX_SUCCESS && locality != NULL)
        register_store(proc, PMIX_LOCALITY_STRING, string(locality));
    else
        log_warning("libpmix gives rank %u no locality: %s", proc->rank, PMIx_Error_string(rc));
    PMIx_Cpuset_destruct(&cpuset);
    free(locality);
    log_debug("rank %u %s: %s", proc->rank, bound ? "is bound" : "may run anywhere", text);
}

/* @return the package that a processor is of, or NO_PACKAGE where the kernel does not say */
static int package_of(size_t cpu)
{
    char path[80];
    int package = NO_PACKAGE;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/topology/physical_package_id", cpu);
    FILE *in = fopen(path, "re");
    if (in != NULL && (fscanf(in, "%d", &package) != 1 || package < 0))
        package = NO_PACKAGE;
    if (in != NULL)
        fclose(in);
    return package;
}

/* @return the package that all of them are of, or NO_PACKAGE */
static int common_package(const cpu_set_t *set, size_t size)
{
    int common = NO_PACKAGE;
    for (size_t cpu = 0; cpu < size * 8; cpu++) {
        if (!CPU_ISSET_S(cpu, size, set))
            continue;
        int package = package_of(cpu);
        if (package == NO_PACKAGE || (common != NO_PACKAGE && package != common))
            return NO_PACKAGE;
        common = package;
    }
    return common;
}

/* @return the package that the task is bound to, or NO_PACKAGE */
static int learn(const pmix_proc_t *proc, pid_t pid, cpu_set_t *task, cpu_set_t *own)
{
    size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
    if (sched_getaffinity(pid, size, task) != 0) {
        if (errno != ESRCH) /* it has ended already */
            log_warning("where rank %u may run is not known: %s", proc->rank, strerror(errno));
        return NO_PACKAGE;
    }
    bool bound = sched_getaffinity(0, size, own) != 0 || !CPU_EQUAL_S(size, task, own);
    char *list = map_cpus(task, size), *text = text_format("hwloc:%s", list);
    store_binding(proc, text, bound);
    free(text);
    free(list);
    return bound ? common_package(task, size) : NO_PACKAGE;
}

static int *new_packages(uint32_t ntasks)
{
    int *packages = malloc((ntasks + 1) * sizeof *packages);
    for (uint32_t k = 0; k < ntasks; k++)
        packages[k] = NO_PACKAGE;
    return packages;
}

void binding_learn(struct nspace *ns, uint32_t slot, pid_t pid)
{
    const struct boot_node *here = boot_here(ns->boot);
    pmix_proc_t proc;
    if (slot >= here->ntasks || pid <= 0)
        return;
    if (ns->packages == NULL)
        ns->packages = new_packages(here->ntasks);
    cpu_set_t *task = calloc(1, CPU_ALLOC_SIZE(CPUS_MAX)),
              *own = calloc(1, CPU_ALLOC_SIZE(CPUS_MAX));
    PMIX_LOAD_PROCID(&proc, ns->boot->nspace, here->ranks[slot]);
    ns->packages[slot] = learn(&proc, pid, task, own);
    free(task);
    free(own);
}

void binding_complete(const struct nspace *ns)
{
    const struct boot_node *here = boot_here(ns->boot);
    pmix_proc_t proc;
    for (uint32_t k = 0; ns->packages != NULL && k < here->ntasks; k++) {
        pmix_value_t value = {.type = PMIX_UINT16};
        if (ns->packages[k] == NO_PACKAGE)
            continue;
        for (uint32_t other = 0; other < k; other++)
            value.data.uint16 += ns->packages[other] == ns->packages[k];
        PMIX_LOAD_PROCID(&proc, ns->boot->nspace, here->ranks[k]);
        register_store(&proc, PMIX_PACKAGE_RANK, value);
    }
}
