/* malloc, calloc and realloc that fail on request. Include it in one file of a test that the linker
 * is told to redirect them in (-Wl,--wrap=malloc,...; LDFLAGS_test_... in the Makefile), and define
 * `allocation_fails` there, which is called for each allocation of kiln's own code, in any thread.
 */
#ifndef KILN_TESTS_SUPPORT_FAILING_MALLOC_H
#define KILN_TESTS_SUPPORT_FAILING_MALLOC_H

#include <stdbool.h>
#include <stddef.h>

bool allocation_fails(void);

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
    return allocation_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return allocation_fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return allocation_fails() ? NULL : __real_realloc(old, size);
}

#endif
