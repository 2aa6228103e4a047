/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Lines on their way from a program to one of our outputs, or to a function.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct lines {
    FILE *to; /**< NULL: each is given to take() */
    void (*take)(void *arg, const char *line);
    void *arg;
    const char *tag; /**< "[TAG] " before each; NULL: nothing; borrowed */
    bool mask;       /**< what would harm a terminal becomes '?' */
    size_t len;
    char text[4096]; /**< a longer line becomes several */
};

/** Reads once, and hands on the lines that are whole, at the end of all also the last one. @param
 * fd closed, and set to -1, at the end
 * @thread any */
void lines_read(struct lines *lines, int *fd);
