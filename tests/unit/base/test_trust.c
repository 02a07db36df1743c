/* Trusted plugins and folders: what a user has allowed. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/system/file.h"
#include "base/system/trust.h"

static void test_allowed(void **unused)
{
    const KilnTrust one = { { "plugin", "/x/a", "1" } }, glued = { { "plugin", "/x/a1" } },
                    other = { { "plugin", "/x/a", "2" } };
    char state[] = "/tmp/kiln-trust-XXXXXX", folder[64];

    (void)unused;
    assert_non_null(mkdtemp(state));
    assert_int_equal(setenv("XDG_STATE_HOME", state, 1), 0);
    assert_false(kiln_trust_allowed(&one));
    kiln_trust_allow(&one);
    kiln_trust_allow(&one);
    assert_true(kiln_trust_allowed(&one));
    assert_false(kiln_trust_allowed(&glued));
    assert_false(kiln_trust_allowed(&other));

    /* Where others may write, nothing counts and nothing is written. */
    snprintf(folder, sizeof(folder), "%s/kiln/allowed", state);
    assert_int_equal(chmod(folder, 0770), 0);
    assert_false(kiln_trust_allowed(&one));
    kiln_trust_allow(&other);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_true(kiln_trust_allowed(&one));
    assert_false(kiln_trust_allowed(&other));

    /* Not a path that depends on the folder that the program is started in. */
    assert_int_equal(setenv("XDG_STATE_HOME", "relative", 1), 0);
    assert_int_equal(unsetenv("HOME"), 0);
    kiln_trust_allow(&one);
    assert_false(kiln_trust_allowed(&one));
    assert_false(kiln_is_dir("relative"));
    assert_int_equal(kiln_path_remove(state, NULL), KILN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_allowed) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
