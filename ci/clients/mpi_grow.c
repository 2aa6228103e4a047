/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_grow: an MPI program whose job grows: rank 0 asks for a node, all start a worker there
 * (MPI_Comm_spawn), compute with it and part from it, and the node is given back. docs/grow.md has
 * it. */
#include "mpi_client.h"

#include <pmix.h>
#include <unistd.h>

enum { TEXT_MAX = 1024 };

/* @param node of a release the node to give back; of an extension becomes the name of the new one,
 * TEXT_MAX bytes */
static pmix_status_t ask(pmix_alloc_directive_t directive, char *node)
{
    pmix_info_t info[1], *results = NULL;
    size_t n = 0;
    uint64_t one = 1;
    if (directive == PMIX_ALLOC_EXTEND)
        PMIX_INFO_LOAD(&info[0], PMIX_ALLOC_NUM_NODES, &one, PMIX_UINT64);
    else
        PMIX_INFO_LOAD(&info[0], PMIX_ALLOC_NODE_LIST, node, PMIX_STRING);
    pmix_status_t rc = PMIx_Allocation_request(directive, info, 1, &results, &n);
    for (size_t i = 0; i < n; i++)
        if (PMIX_CHECK_KEY(&results[i], PMIX_ALLOC_NODE_LIST))
            snprintf(node, TEXT_MAX, "%s", results[i].value.data.string);
    if (results != NULL)
        PMIX_INFO_FREE(results, n);
    return rc;
}

static void worker(MPI_Comm parents)
{
    MPI_Comm all;
    char host[TEXT_MAX] = "";
    int one = 1, sum = 0;
    gethostname(host, sizeof host - 1);
    printf("WORKER on %s\n", host);
    fflush(stdout);
    MPI_Intercomm_merge(parents, 1, &all);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&parents);
}

static void grow(char *self, int size)
{
    MPI_Comm inter, all;
    MPI_Info where;
    char node[TEXT_MAX] = "";
    int one = 1, sum = 0, rc = PMIX_SUCCESS;
    step("a request for a node");
    if (my_rank == 0)
        rc = ask(PMIX_ALLOC_EXTEND, node);
    MPI_Bcast(&rc, 1, MPI_INT, 0, MPI_COMM_WORLD);
    CHECK_EQ(rc, PMIX_SUCCESS, "PMIX_ALLOC_EXTEND");
    MPI_Bcast(node, TEXT_MAX, MPI_CHAR, 0, MPI_COMM_WORLD);
    step("MPI_Comm_spawn on it");
    MPI_Info_create(&where);
    MPI_Info_set(where, "host", node);
    CHECK_EQ(MPI_Comm_spawn(self, MPI_ARGV_NULL, 1, where, 0, MPI_COMM_WORLD, &inter,
                            MPI_ERRCODES_IGNORE),
             MPI_SUCCESS, "MPI_Comm_spawn");
    MPI_Info_free(&where);
    step("a sum of all");
    MPI_Intercomm_merge(inter, 0, &all);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
    CHECK_EQ(sum, size + 1, "the sum");
    MPI_Comm_free(&all);
    step("MPI_Comm_disconnect");
    MPI_Comm_disconnect(&inter);
    step("a release of the node, once the worker has ended");
    if (my_rank == 0)
        while ((rc = ask(PMIX_ALLOC_RELEASE, node)) == PMIX_ERR_RESOURCE_BUSY)
            usleep(100000);
    if (my_rank == 0)
        printf("RELEASED %s: %s\n", node, PMIx_Error_string(rc));
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Comm parents;
    pmix_proc_t me;
    int size;
    arm_watchdog((unsigned)option_number(argv, "--seconds", 120));
    MPI_Init(&argc, &argv);
    CHECK_EQ(PMIx_Init(&me, NULL, 0), PMIX_SUCCESS, "PMIx_Init, which counts the calls");
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parents);
    if (parents != MPI_COMM_NULL)
        worker(parents);
    else
        grow(argv[0], size);
    step("the end");
    PMIx_Finalize(NULL, 0);
    MPI_Finalize();
    if (my_rank == 0 && parents == MPI_COMM_NULL)
        printf("PASS mpi_grow: %d ranks\n", size);
    return 0;
}
