/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_family: parents spawn three children. Then each side does what its word says, a letter each,
 * and MPI_Finalize:
 *
 *     m  merge both sides into one communicator     i  MPI_Comm_disconnect from the other side
 *     u  use that communicator                      I  MPI_Comm_free of that intercommunicator
 *     b  a barrier of it                            d  MPI_Comm_disconnect of the merged one
 *     f  MPI_Comm_free of the merged one            s  one second passes
 *     S  a child's alone: the children spawn three more, as their parents have
 *     x  the side ends, without MPI_Finalize        k  the side's last rank is killed
 */
#include "mpi_client.h"

enum { CHILDREN = 3 };

/* What a side has, and how many processes both sides are. */
struct side {
    MPI_Comm inter, all;
    int high, total;
};

static const char *option_word(char **argv, const char *option, const char *otherwise)
{
    for (int i = 1; argv[i] && argv[i + 1]; i++)
        if (!strcmp(argv[i], option))
            return argv[i + 1];
    return otherwise;
}

static void spawn(char **argv);

static void act(struct side *side, char **argv, char what)
{
    int size;
    switch (what) {
    case 'm':
        step("MPI_Intercomm_merge");
        CHECK_EQ(MPI_Intercomm_merge(side->inter, side->high, &side->all), MPI_SUCCESS,
                 "MPI_Intercomm_merge");
        break;
    case 'u':
        use_comm(side->all, side->total, "MPI_Allreduce of parents and children");
        break;
    case 'b':
        step("MPI_Barrier of parents and children");
        CHECK_EQ(MPI_Barrier(side->all), MPI_SUCCESS, "MPI_Barrier");
        break;
    case 'f':
        step("MPI_Comm_free of the merged communicator");
        CHECK_EQ(MPI_Comm_free(&side->all), MPI_SUCCESS, "MPI_Comm_free");
        break;
    case 'd':
        step("MPI_Comm_disconnect of the merged communicator");
        CHECK_EQ(MPI_Comm_disconnect(&side->all), MPI_SUCCESS, "MPI_Comm_disconnect");
        break;
    case 'i':
        step("MPI_Comm_disconnect");
        CHECK_EQ(MPI_Comm_disconnect(&side->inter), MPI_SUCCESS, "MPI_Comm_disconnect");
        break;
    case 'I':
        step("MPI_Comm_free of the intercommunicator");
        CHECK_EQ(MPI_Comm_free(&side->inter), MPI_SUCCESS, "MPI_Comm_free");
        break;
    case 's':
        sleep(1);
        break;
    case 'S':
        spawn(argv);
        break;
    case 'x':
        fflush(NULL);
        _exit(0);
    case 'k':
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        if (my_rank == size - 1)
            raise(SIGKILL);
        break;
    default:
        CHECK_EQ(what, 'm', "a letter of a word");
    }
}

static void act_all(struct side *side, char **argv, const char *word)
{
    for (; *word; word++)
        act(side, argv, *word);
}

/* Children that a child spawns do what its siblings do, but spawn none. */
static void spawn(char **argv)
{
    struct side side = {.high = 0};
    const char *own = option_word(argv, "--parents-do", "mubi");
    const char *theirs = option_word(argv, "--children-do", "mubi");
    char n[16], word[64] = "", *at = word;
    char *args[] = {(char *)"--parents",
                    n,
                    (char *)"--parents-do",
                    (char *)own,
                    (char *)"--children-do",
                    word,
                    NULL};
    int size, is_child = option_number(argv, "--parents", 0);
    for (; *theirs && at < word + sizeof word - 1; theirs++)
        if (!is_child || *theirs != 'S')
            *at++ = *theirs;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(n, sizeof n, "%d", size);
    side.total = size + CHILDREN;
    step("MPI_Comm_spawn");
    CHECK_EQ(MPI_Comm_spawn(argv[0], args, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &side.inter,
                            MPI_ERRCODES_IGNORE),
             MPI_SUCCESS, "MPI_Comm_spawn");
    act_all(&side, argv, own);
}

int main(int argc, char **argv)
{
    struct side side = {.total = option_number(argv, "--parents", 0) + CHILDREN};
    int size;
    arm_watchdog((unsigned)option_number(argv, "--seconds", 60));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&side.inter);
    side.high = side.inter != MPI_COMM_NULL;
    if (!side.high)
        spawn(argv);
    else
        act_all(&side, argv, option_word(argv, "--children-do", "mubi"));
    step("MPI_Finalize");
    MPI_Finalize();
    if (my_rank == 0 && side.high == 0)
        printf("PASS mpi_family: %d parents\n", size);
    else if (my_rank == 0)
        printf("DONE mpi_family: %d children\n", size);
    return 0;
}
