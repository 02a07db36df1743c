/* SHA-256 against the standard's examples, and what a user has allowed. */
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

#include "base/file.h"
#include "base/sha256.h"
#include "base/trust.h"

static void check_sum(const char *text, size_t times, size_t piece, const char *want)
{
    const size_t length = strlen(text);
    char got[KILN_SHA256_TEXT];
    KilnSha256 hash;

    kiln_sha256_init(&hash);
    for (size_t i = 0; i < times; i++)
        for (size_t at = 0; at < length; at += piece)
            kiln_sha256_add(&hash, text + at, length - at < piece ? length - at : piece);
    kiln_sha256_text(&hash, got);
    assert_string_equal(got, want);
}

/* The examples of FIPS 180-2, whole and in pieces. */
static void test_sums(void **unused)
{
    static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

    (void)unused;
    check_sum("", 1, 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_sum("abc", 1, 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    for (size_t piece = 1; piece < 60; piece += 7)
        check_sum(two, 1, piece,
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    check_sum("a", 1000000, 1, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    check_sum("aaaaaaaaaa", 100000, 9,
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

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
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_sums),
                                        cmocka_unit_test(test_allowed) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
