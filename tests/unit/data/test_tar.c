/* Tar archives: the formats of GNU and pax, folders, damaged ones. */
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "kiln/files/tar.h"
#include "tests/support/cmocka.h"

#define TARS "tests/data/tars/"

static const char long_name[] =
    "deep/folder-folder-folder-folder-folder-folder-folder-folder-folder-folder-folder-folder-"
    "folder-folder-/name-name-name-name-name-name-name-name-name-name-name-name-name-name-name-"
    "name-name-name-name-name-.txt";

static void assert_file(const KilnTar *tar, const char *name, const char *content, size_t size)
{
    const int64_t i = kiln_tar_find(tar, name);

    if (i < 0)
        fail_msg("%s is missing", name);
    const KilnTarMember member = kiln_tar_member(tar, i);
    assert_string_equal(member.name, name);
    assert_int_equal(member.size, size);
    assert_memory_equal(member.data, content, strlen(content));
}

static void test_formats(void **unused)
{
    static const char *const names[] = { "gnu.tar", "pax.tar", "packed.tar.gz" };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(names); i++) {
        KilnTar *tar = NULL;
        KilnError err = { 0 };
        char path[128];

        snprintf(path, sizeof(path), TARS "%s", names[i]);
        assert_true(kiln_is_tar(path));
        if (kiln_tar_open(path, NULL, NULL, &tar, &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(kiln_tar_count(tar), 7);
        assert_string_equal(kiln_tar_member(tar, 0).name, "a-b/1.txt");
        assert_file(tar, "a-b/1.txt", "one", 3);
        assert_file(tar, "a/2.txt", "newer", 5);
        assert_file(tar, "a/empty", "", 0);
        assert_file(tar, "b/\xc3\xbc.txt", "three", 5);
        assert_file(tar, "a/2.txt ", "blank", 5);
        assert_file(tar, long_name, "long", 4);
        assert_int_equal(kiln_tar_find(tar, "a/3.txt"), -1);
        assert_int_equal(kiln_tar_find(tar, "a/link"), -1);
        kiln_tar_close(tar);
    }
    assert_false(kiln_is_tar("x.tar.png"));
    kiln_tar_close(NULL);
}

static void test_folders(void **unused)
{
    static const struct {
        const char *folder, *children;
    } cases[] = { { "", "a-b/ a/ b/ deep/ " },
                  { "a", "2.txt 2.txt  empty " },
                  { "a-b", "1.txt " },
                  { "a/2.txt", "" },
                  { "c", "" } };
    KilnTar *tar = NULL;

    (void)unused;
    assert_int_equal(kiln_tar_open(TARS "gnu.tar", NULL, NULL, &tar, NULL), KILN_OK);
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnTarChild child = { 0 };
        char text[128] = "";

        while (kiln_tar_child(tar, cases[i].folder, &child))
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%.*s%s ", (int)child.length,
                     child.name, child.is_folder ? "/" : "");
        assert_string_equal(text, cases[i].children);
        assert_int_equal(kiln_tar_has_folder(tar, cases[i].folder), text[0] != '\0');
    }
    kiln_tar_close(tar);
}

static void test_damaged(void **unused)
{
    static const struct {
        const char *name, *words;
    } cases[] = {
        { "bad_cut.tar", "at byte 512: the file ends before the archive does" },
        { "bad_no_end.tar", "at byte 512: the file ends before the archive does" },
        { "bad_checksum.tar", "at byte 512: the header's checksum is wrong" },
        { "bad_text.tar", "at byte 0: no tar header" },
        { "bad_size.tar", "the file ends before the archive does" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnTar *tar = NULL;
        KilnError err = { 0 };
        char path[128];

        snprintf(path, sizeof(path), TARS "%s", cases[i].name);
        KilnStatus status = kiln_tar_open(path, NULL, NULL, &tar, &err);
        if (status != KILN_E_FORMAT || strstr(err.text, cases[i].words) == NULL ||
            strncmp(err.text, path, strlen(path)) != 0)
            fail_msg("%s: status %d: %s", path, status, err.text);
    }
    assert_int_equal(kiln_tar_open(TARS "none.tar", NULL, NULL, &(KilnTar *) { NULL }, NULL),
                     KILN_E_IO);
}

/* Flipped bits and cut files are read or refused (the sanitizers watch). */
static void test_mutations(void **unused)
{
    static const char *const names[] = { TARS "gnu.tar", TARS "pax.tar" };
    char folder[] = "/tmp/kiln-test-tar-XXXXXX", path[64];

    (void)unused;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/x.tar", folder);
    for (size_t round = 0; round < 4000; round++) {
        char *data;
        size_t size;
        KilnTar *tar = NULL;

        assert_int_equal(kiln_file_read(names[round % 2], 1 << 20, &data, &size, NULL), KILN_OK);
        const size_t at = round * 7919 % (size < 8000 ? size : 8000);
        data[at] = (char)(data[at] ^ 1 << round % 8);
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(data, 1, round % 16 == 0 ? at : size, file),
                         round % 16 == 0 ? at : size);
        assert_int_equal(fclose(file), 0);
        const KilnStatus status = kiln_tar_open(path, NULL, NULL, &tar, NULL);
        assert_true(status == KILN_OK || status == KILN_E_FORMAT);
        kiln_tar_close(tar);
        free(data);
    }
    assert_int_equal(kiln_path_remove(folder, NULL), KILN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_mutations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
