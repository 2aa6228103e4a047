#include "common/nspace/binding.h"

#include "common/nspace/maps.h"
#include "common/util/log.h"

#include <errno.h>
#include <pmix.h>
#include <pmix_server.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CPUS_MAX = 16384 /* the kernel refuses a set that is smaller than its own */ };

static void store(const pmix_proc_t *proc, const char *key, char *text)
{
    pmix_value_t value = {.type = PMIX_STRING, .data.string = text};
    pmix_status_t rc = PMIx_Store_internal(proc, key, &value);
    if (rc != PMIX_SUCCESS && rc != PMIX_OPERATION_SUCCEEDED)
        log_warning("libpmix does not take %s of rank %u: %s", key, proc->rank,
                    PMIx_Error_string(rc));
}

/* @param text "hwloc:0-3,8", the form that libpmix itself writes */
static void store_binding(const pmix_proc_t *proc, char *text)
{
    pmix_cpuset_t cpuset = {0};
    char *locality = NULL;
    pmix_status_t rc = PMIx_Parse_cpuset_string(text, &cpuset);
    store(proc, PMIX_CPUSET, text);
    if (rc == PMIX_SUCCESS)
        rc = PMIx_server_generate_locality_string(&cpuset, &locality);
    if (rc == PMIX_SUCCESS && locality != NULL)
        store(proc, PMIX_LOCALITY_STRING, locality);
    else
        log_warning("libpmix gives rank %u no locality: %s", proc->rank, PMIx_Error_string(rc));
    PMIx_Cpuset_destruct(&cpuset);
    free(locality);
    log_debug("rank %u is bound: %s", proc->rank, text);
}

static void learn(const pmix_proc_t *proc, pid_t pid, cpu_set_t *task, cpu_set_t *own)
{
    size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
    char *list = NULL, *text;
    if (sched_getaffinity(pid, size, task) != 0) {
        if (errno != ESRCH) /* it has ended already */
            log_warning("where rank %u may run is not known: %s", proc->rank, strerror(errno));
        return;
    }
    if (sched_getaffinity(0, size, own) == 0 && CPU_EQUAL_S(size, task, own))
        return;
    list = map_cpus(task, size);
    if (list != NULL && asprintf(&text, "hwloc:%s", list) >= 0) {
        store_binding(proc, text);
        free(text);
    }
    free(list);
}

void binding_learn(const struct nspace *ns, uint32_t slot, pid_t pid)
{
    const struct boot_node *here = &ns->boot->nodes[ns->boot->node];
    pmix_proc_t proc;
    if (slot >= here->ntasks || pid <= 0)
        return;
    cpu_set_t *task = calloc(1, CPU_ALLOC_SIZE(CPUS_MAX)),
              *own = calloc(1, CPU_ALLOC_SIZE(CPUS_MAX));
    PMIX_LOAD_PROCID(&proc, ns->boot->nspace, here->ranks[slot]);
    if (task != NULL && own != NULL)
        learn(&proc, pid, task, own);
    free(task);
    free(own);
}
