/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Tests of what is read out of eu-stack's and gdb's words, and of the one line of it. The texts are
 * those of Debian 12 (elfutils 0.188, gdb 13.1), 13 (0.192, 16.3) and testing (0.196, 18.1).
 */
#include "common/status/stack.h"
#include "common/util/test_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect(const char *text, bool full, const char *line)
{
    char *copy = strdup(text);
    json_object *stack = stack_read(copy);
    char *got = stack != NULL ? stack_line(stack, full) : NULL;
    if (line == NULL)
        assert_null(got);
    else
        assert_string_equal(got, line);
    free(got);
    json_object_put(stack);
    free(copy);
}

static void eu_stack_of_c(void **state)
{
    (void)state;
    expect("TID 27:\n#0  0x00007fbd597dd2ec read\n#1  0x0000562d047ca17a read_input\n"
           "#2  0x0000562d047ca18c solve\n#3  0x0000562d047ca1b9 main\n"
           "#4  0x00007fbd5970c24a __libc_start_call_main\n"
           "#5  0x00007fbd5970c305 __libc_start_main@@GLIBC_2.34\n#6  0x0000562d047ca091 _start\n",
           false, "main > solve > read_input > read");
    expect("TID 468:\n#0  0x00007f04625d172e\n#1  0x00007f04625c6388\n#2  0x00007f04625c63cd\n"
           "#3  0x00007f046263ade6 read\n#4  0x000056185b01e17a read_input\n"
           "#5  0x000056185b01e18c solve\n#6  0x000056185b01e1b9 main\n#7  0x00007f0462560ca8\n"
           "#8  0x00007f0462560d65 __libc_start_main\n#9  0x000056185b01e091 _start\n",
           false, "main > solve > read_input > read");
}

static void eu_stack_of_cpp(void **state)
{
    (void)state;
    expect("TID 566:\n#0  0x00007f2d2f525a02\n#1  0x00007f2d2f525a1d\n#2  0x00007f2d2f59a4d6 read\n"
           "#3  0x000055a6a6f501b8 ice::(anonymous namespace)::hidden(int)\n"
           "#4  0x000055a6a6f501ce ice::Field::wait(std::__cxx11::basic_string<char, "
           "std::char_traits<char>, std::allocator<char> > const&) const\n"
           "#5  0x000055a6a6f5020a std::_Function_handler<int (int), "
           "main::{lambda(int)#1}>::_M_invoke(std::_Any_data const&, int&&)\n"
           "#6  0x000055a6a6f50344 int apply<std::function<int (int)> >(std::function<int (int)>)\n"
           "#7  0x000055a6a6f502b1 main\n#8  0x00007f2d2f4bdfba\n"
           "#9  0x00007f2d2f4be0d7 __libc_start_main\n#10 0x000055a6a6f500b1 _start\n",
           false,
           "main > int apply<std::function<int (int)> > > std::_Function_handler<int (int), "
           "main::{lambda(int)#1}>::_M_invoke > ice::Field::wait > ice::(anonymous "
           "namespace)::hidden > read");
}

static void gdb_of_c(void **state)
{
    (void)state;
    expect(
        "[New LWP 28]\n[Thread debugging using libthread_db enabled]\n"
        "__GI___libc_read (nbytes=..., buf=..., fd=...) at ../sysdeps/unix/sysv/linux/read.c:26\n"
        "26\t../sysdeps/unix/sysv/linux/read.c: No such file or directory.\n"
        "#0  __GI___libc_read (nbytes=..., buf=..., fd=...) at "
        "../sysdeps/unix/sysv/linux/read.c:26\n"
        "#1  __GI___libc_read (fd=..., buf=..., nbytes=...) at "
        "../sysdeps/unix/sysv/linux/read.c:24\n"
        "#2  0x0000562d047ca17a in read_input (fd=...) at t.c:4\n"
        "#3  0x0000562d047ca18c in solve (x=...) at t.c:5\n"
        "#4  0x0000562d047ca1b9 in main () at t.c:7\n[Inferior 1 (process 27) detached]\n",
        false, "main > solve > read_input > read");
    expect("[New LWP 554 (id 2)]\n[Switching to thread 1 (Thread 0x7f3d9d790740 (LWP 553))]\n"
           "0x00007f3d9d82fefe in ?? () from /usr/lib/x86_64-linux-gnu/libc.so.6\n"
           "#0  0x00007f3d9d82fefe in ?? () from /usr/lib/x86_64-linux-gnu/libc.so.6\n"
           "#1  0x00007f3d9d8249d4 in ?? () from /usr/lib/x86_64-linux-gnu/libc.so.6\n"
           "#2  0x00007f3d9d824a1d in ?? () from /usr/lib/x86_64-linux-gnu/libc.so.6\n"
           "#3  0x00007f3d9d8994d6 in read () from /usr/lib/x86_64-linux-gnu/libc.so.6\n"
           "#4  0x0000556866f0d17a in read_input (fd=...) at t.c:4\n"
           "#5  0x0000556866f0d18c in solve (x=...) at t.c:5\n"
           "#6  0x0000556866f0d1b9 in main () at t.c:7\n[Inferior 1 (process 553) detached]\n",
           false, "main > solve > read_input > read");
}

static void gdb_of_cpp(void **state)
{
    (void)state;
    expect("#2  0x00007faa2fdc5de6 in read () from /lib/x86_64-linux-gnu/libc.so.6\n"
           "#3  0x00005590520e71b8 in ice::(anonymous namespace)::hidden (fd=...) at t.cc:5\n"
           "#4  0x00005590520e71ce in ice::Field::wait (this=..., name=...) at t.cc:6\n"
           "#5  0x00005590520e7209 in operator() (__closure=..., x=...) at "
           "/usr/include/c++/14/bits/basic_string.tcc:242\n"
           "#6  std::__invoke_impl<int, main()::<lambda(int)>&, int> (__f=...) at "
           "/usr/include/c++/14/bits/invoke.h:61\n"
           "#8  std::_Function_handler<int(int), main()::<lambda(int)> >::_M_invoke(const "
           "std::_Any_data &, int &&) (__functor=..., __args#0=...) at "
           "/usr/include/c++/14/bits/std_function.h:290\n"
           "#9  0x00005590520e7322 in std::function<int(int)>::operator() (this=..., "
           "__args#0=...) at /usr/include/c++/14/bits/std_function.h:591\n"
           "#10 apply<std::function<int(int)> > (f=...) at t.cc:7\n"
           "#11 0x00005590520e72ac in main () at t.cc:8\n",
           false,
           "main > apply<std::function<int(int)> > > std::function<int(int)>::operator() > "
           "std::_Function_handler<int(int), main()::<lambda(int)> >::_M_invoke > "
           "std::__invoke_impl<int, main()::<lambda(int)>&, int> > operator() > ice::Field::wait > "
           "ice::(anonymous namespace)::hidden > read");
}

static void without_names(void **state)
{
    (void)state;
    expect("TID 493:\n#0  0x00007f5e58c843a7\n#1  0x00007f5e58c843cd\n#2  0x00007f5e58cf8de6 read\n"
           "#3  0x00005606e62561b8\n#4  0x00005606e62561ce\n#8  0x00007f5e58c1eca8\n"
           "#9  0x00007f5e58c1ed65 __libc_start_main\n#10 0x00005606e62560b1\n",
           false, "?? > read");
    expect("#0  0x00005606e62561b8 in ?? ()\n", false, "??");
    expect("#1  0x00005606e62561b8\n#2  0x1 main\n", true, "main > ??");
}

static void inside_of_mpi(void **state)
{
    static const char text[] = "TID 4:\n#0  0x1 epoll_wait\n#1  0x2 opal_progress.part.0\n"
                               "#2  0x3 PMPI_Barrier\n#3  0x4 MPI_helper\n#4  0x5 step\n"
                               "#5  0x6 step\n#6  0x7 main\n";
    (void)state;
    expect(text, false, "main > step > MPI_helper");
    expect(text, true, "main > step > MPI_helper > PMPI_Barrier > opal_progress > epoll_wait");
}

static void no_stack(void **state)
{
    (void)state;
    expect("eu-stack: dwfl_linux_proc_report pid 999999: No such file or directory\n", false, NULL);
    expect("ptrace: Operation not permitted.\nNo stack.\n", false, NULL);
    expect("", false, NULL);
    expect("#\n#x\n#1x main\n", false, NULL);
}

static void other_threads(void **state)
{
    (void)state;
    expect("PID 4 - process\nTID 4:\n#0  0x1 read\n#1  0x2 main\nTID 5:\n#0  0x3 poll\n", false,
           "main > read");
}

/* Deep ones have their middle left out; a name has no control characters. */
static void long_and_hostile(void **state)
{
    char text[8192] = "", deep[8192] = "";
    (void)state;
    for (int i = 0; i < 100; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "#%d  0x1 f%d\n", i, 100 - i);
    char *copy = strdup(text);
    json_object *stack = stack_read(copy);
    char *line = stack_line(stack, false), *whole = stack_line(stack, true);
    for (int i = 1; i <= 8; i++)
        snprintf(deep + strlen(deep), sizeof deep - strlen(deep), "f%d > ", i);
    assert_memory_equal(line, deep, strlen(deep));
    assert_string_equal(line + strlen(deep),
                        "... > f85 > f86 > f87 > f88 > f89 > f90 > f91 > f92 > "
                        "f93 > f94 > f95 > f96 > f97 > f98 > f99 > f100");
    assert_null(strstr(whole, "..."));
    free(line);
    free(whole);
    free(copy);
    json_object_put(stack);
    expect("#0  0x1 a\033[2Jb\n", false, "a?[2Jb");
    json_object *odd = json_object_new_array();
    json_object_array_add(odd, json_object_new_int(3));
    line = stack_line(odd, false);
    assert_string_equal(line, "??");
    free(line);
    json_object_put(odd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eu_stack_of_c),    cmocka_unit_test(eu_stack_of_cpp),
        cmocka_unit_test(gdb_of_c),         cmocka_unit_test(gdb_of_cpp),
        cmocka_unit_test(without_names),    cmocka_unit_test(inside_of_mpi),
        cmocka_unit_test(no_stack),         cmocka_unit_test(other_threads),
        cmocka_unit_test(long_and_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
