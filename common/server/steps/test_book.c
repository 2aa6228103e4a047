/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of book.c: what is open, and what ends it.
 */
#include "common/server/steps/book.h"

#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <string.h>

static struct procset set_of(const char *nspace, uint32_t last, const char *other)
{
    struct procset set = {0};
    procset_add(&set, nspace, 0, last);
    if (other != NULL)
        procset_add(&set, other, 0, 0);
    procset_canonical(&set);
    return set;
}

static unsigned count(const struct book *book)
{
    const struct book_entry *c;
    unsigned n = 0;
    LIST_FOREACH (c, &book->open, link)
        n++;
    return n;
}

static void a_connection_ends_once(void **state)
{
    struct book book = {0};
    struct procset set = set_of("a", 3, "b"), less = set_of("a", 2, "b");
    (void)state;
    assert_false(book_close(&book, "", &set));
    assert_non_null(book_open(&book, "", &set, 0));
    assert_non_null(book_open(&book, "x", &set, BOOK_EARLY_TERM));
    assert_null(book_find(&book, "", &less));
    assert_null(book_find(&book, "y", &set));
    assert_int_equal(book_find(&book, "x", &set)->directives, BOOK_EARLY_TERM);
    assert_true(book_close(&book, "x", &set));
    assert_false(book_close(&book, "x", &set));
    assert_non_null(book_find(&book, "", &set));
    assert_int_equal(count(&book), 1);
    book_free(&book);
    procset_free(&set);
    procset_free(&less);
}

static void a_second_connect_is_the_same(void **state)
{
    struct book book = {0};
    struct procset set = set_of("a", 3, NULL);
    (void)state;
    assert_non_null(book_open(&book, "", &set, BOOK_NOTIFY_EACH));
    assert_non_null(book_open(&book, "", &set, BOOK_EARLY_TERM));
    assert_int_equal(count(&book), 1);
    assert_int_equal(LIST_FIRST(&book.open)->directives, BOOK_EARLY_TERM);
    book_free(&book);
    assert_int_equal(count(&book), 0);
    procset_free(&set);
}

static void those_of_a_process(void **state)
{
    struct book book = {0};
    struct procset one = set_of("a", 3, "b"), two = set_of("a", 1, NULL);
    (void)state;
    book_open(&book, "one", &one, 0);
    book_open(&book, "two", &two, 0);
    const struct book_entry *c = book_next(&book, NULL, "a", 0);
    assert_string_equal(c->id, "two");
    c = book_next(&book, c, "a", 0);
    assert_string_equal(c->id, "one");
    assert_null(book_next(&book, c, "a", 0));
    assert_string_equal(book_next(&book, NULL, "a", 2)->id, "one");
    assert_null(book_next(&book, NULL, "b", 1));
    book_free(&book);
    procset_free(&one);
    procset_free(&two);
}

static void a_namespace_ends(void **state)
{
    bool was_open;
    struct book book = {0};
    struct procset one = set_of("a", 3, "b"), two = set_of("a", 1, NULL),
                   three = set_of("b", 1, "c");
    (void)state;
    book_open(&book, "one", &one, 0);
    book_open(&book, "two", &two, 0);
    book_open(&book, "three", &three, 0);
    for (uint32_t n = 0; n < 2; n++) {
        struct book_entry *c = book_take(&book, "b", &was_open);
        assert_non_null(c);
        assert_true(was_open);
        book_drop(c);
    }
    assert_null(book_take(&book, "b", &was_open));
    assert_int_equal(count(&book), 1);
    assert_string_equal(LIST_FIRST(&book.open)->id, "two");
    book_free(&book);
    procset_free(&one);
    procset_free(&two);
    procset_free(&three);
}

/* The name is that of the processes and the id, and outlives the disconnect. */
static void a_name(void **state)
{
    struct book book = {0}, other = {0};
    struct procset set = set_of("a", 3, "b"), found = {0};
    struct book_entry *c = book_open(&book, "one", &set, BOOK_NAMED);
    bool is_open, was_open;
    int rc;
    (void)state;
    assert_null(book_named(&book, "", NULL));
    assert_true(book_name(c));
    assert_false(book_name(c));
    assert_ptr_equal(book_named(&book, c->name, &is_open), c);
    assert_true(is_open);
    struct book_entry *d = book_open(&other, "two", &set, 0),
                      *e = book_open(&other, "one", &set, 0);
    assert_true(book_name(d) && book_name(e));
    assert_string_not_equal(c->name, d->name);
    assert_string_equal(c->name, e->name);

    assert_true(book_expand(&book, &found, c->name, 4, false, &rc));
    assert_int_equal(rc, 0);
    assert_true(procset_has(&found, "b", 0) && procset_size(&found) == 1);
    assert_true(book_expand(&book, &found, c->name, 5, false, &rc));
    assert_int_equal(rc, -1);
    assert_true(book_expand(&book, &found, c->name, 0, true, &rc));
    assert_true(rc == 0 && procset_equal(&found, &set));
    assert_false(book_expand(&book, &found, "a", 0, false, &rc));

    assert_true(book_close(&book, "one", &set));
    assert_int_equal(count(&book), 0);
    assert_false(book_close(&book, "one", &set));
    assert_ptr_equal(book_named(&book, c->name, &is_open), c);
    assert_false(is_open);
    assert_ptr_equal(book_open(&book, "one", &set, BOOK_NAMED), c);
    assert_false(book_name(c));
    assert_int_equal(count(&book), 1);
    assert_true(book_close(&book, "one", &set));
    assert_ptr_equal(book_take(&book, "b", &was_open), c);
    assert_false(was_open);
    book_drop(c);
    book_free(&book);
    book_free(&other);
    procset_free(&set);
    procset_free(&found);
}

/* A job may connect its own processes again and again, by another id each time. */
static void names_of_the_closed_end(void **state)
{
    struct book book = {0};
    struct procset set = set_of("a", 3, "a");
    struct book_entry *c;
    bool was_open;
    char id[16], first[sizeof c->name] = "";
    (void)state;
    for (int i = 0; i <= BOOK_CLOSED_MAX; i++) {
        assert_null(book_take_oldest(&book));
        snprintf(id, sizeof id, "%d", i);
        assert_non_null(c = book_open(&book, id, &set, BOOK_NAMED));
        assert_true(book_name(c));
        if (i == 0)
            strcpy(first, c->name);
        assert_true(book_close(&book, id, &set));
    }
    assert_non_null(c = book_take_oldest(&book));
    assert_string_equal(c->name, first);
    book_drop(c);
    assert_null(book_take_oldest(&book));
    assert_non_null(book_open(&book, "1", &set, BOOK_NAMED)); /* again */
    assert_int_equal(book.nclosed, BOOK_CLOSED_MAX - 1);
    assert_true(book_close(&book, "1", &set));
    while ((c = book_take(&book, "a", &was_open)) != NULL)
        book_drop(c);
    assert_int_equal(book.nclosed, 0);
    procset_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_ends_once),
        cmocka_unit_test(a_second_connect_is_the_same),
        cmocka_unit_test(those_of_a_process),
        cmocka_unit_test(a_namespace_ends),
        cmocka_unit_test(a_name),
        cmocka_unit_test(names_of_the_closed_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
