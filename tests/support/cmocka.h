/* cmocka with the headers it needs before it. */
#ifndef KILN_TESTS_SUPPORT_CMOCKA_H
#define KILN_TESTS_SUPPORT_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
