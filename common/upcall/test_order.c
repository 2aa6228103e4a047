/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of the order of a construct's members: what contributions say makes one order, whichever
 * came first, and what does not fit makes none.
 */
#include "common/upcall/collective.h"
#include "common/util/test_cmocka.h"

#include <pmix.h>
#include <string.h>

/* Not called. */
int collective_add_proc(struct server *server, struct procset *set, const pmix_proc_t *proc)
{
    (void)server, (void)set, (void)proc;
    return -1;
}

enum { END = UINT32_MAX, MOST = 8 };

/* What one server says. */
struct said {
    uint32_t leaders[MOST], added[MOST]; /* ranks, and END */
};

static void list(struct proclist *list, const uint32_t *ranks)
{
    for (; *ranks != END; ranks++)
        assert_int_equal(proclist_add(list, "job", *ranks, *ranks), 0);
}

static void take(struct order *order, const struct said *said)
{
    struct proclist leaders = {0}, added = {0};
    struct wire_out out = {0};
    pmix_info_t info = {.value = {.type = PMIX_BYTE_OBJECT}};
    list(&leaders, said->leaders);
    list(&added, said->added);
    proclist_write(&leaders, &out);
    proclist_write(&added, &out);
    assert_false(order_take(order, &info));
    strcpy(info.key, "muster.grp.order");
    info.value.data.bo = (pmix_byte_object_t){.bytes = (char *)out.data, .size = out.len};
    assert_true(order_take(order, &info));
    proclist_free(&leaders);
    proclist_free(&added);
    wire_out_free(&out);
}

/* The members are the ranks 0 to @p last. */
static int make(struct order *order, uint32_t last, struct proclist *made)
{
    struct procset members = {0};
    assert_int_equal(procset_add(&members, "job", 0, last), 0);
    int rc = order_make(order, &members, made);
    procset_free(&members);
    return rc;
}

static void one_order_whichever_came_first(void **state)
{
    static const struct {
        struct said said[3];
        uint32_t n, last, made[MOST + 1];
    } rows[] = {
        {{{{3, 2, 1, 0, END}, {END}}}, 1, 3, {3, 2, 1, 0, END}},
        /* The leaders are sorted: that need not be said. */
        {{{{END}, {4, 3, END}}}, 1, 4, {0, 1, 2, 4, 3, END}},
        {{{{1, 0, END}, {END}}, {{END}, {5, 3, END}}, {{END}, {4, 2, END}}},
         3,
         5,
         {1, 0, 4, 2, 5, 3, END}},
        /* One that two servers add, and a leader that one adds. */
        {{{{1, 0, END}, {3, 2, END}}, {{END}, {2, 4, 1, END}}, {{END}, {END}}},
         3,
         4,
         {1, 0, 2, 4, 3, END}},
        /* In sorted order: none is kept. */
        {{{{END}, {2, 3, END}}, {{END}, {4, END}}}, 2, 4, {END}},
    };
    static const uint32_t ways[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                        {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t way = 0; way < 6; way++) {
            struct order order = {0};
            struct proclist made = {0}, expected = {0};
            for (uint32_t k = 0; k < 3; k++)
                if (ways[way][k] < rows[i].n)
                    take(&order, &rows[i].said[ways[way][k]]);
            list(&expected, rows[i].made);
            assert_int_equal(make(&order, rows[i].last, &made), 0);
            assert_int_equal(proclist_compare(&made, &expected), 0);
            proclist_free(&made);
            proclist_free(&expected);
            order_free(&order);
        }
}

static void what_does_not_fit_makes_none(void **state)
{
    static const struct said rows[] = {
        {{4, 0, END}, {END}},    /* no member */
        {{1, 0, 1, END}, {END}}, /* twice */
        {{END}, {4, END}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct order order = {0};
        struct proclist made = {0};
        take(&order, &rows[i]);
        assert_int_equal(make(&order, 3, &made), -1);
        proclist_free(&made);
        order_free(&order);
    }
}

static void nothing_said_is_the_order_of_the_set(void **state)
{
    struct order order = {0};
    struct proclist made = {0};
    (void)state;
    assert_int_equal(make(&order, 3, &made), 0);
    assert_int_equal(made.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_order_whichever_came_first),
        cmocka_unit_test(what_does_not_fit_makes_none),
        cmocka_unit_test(nothing_said_is_the_order_of_the_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
