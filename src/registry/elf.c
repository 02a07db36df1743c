/* Looks into a shared object before the loader does. */
#include "registry/elf.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static KilnStatus cut_short(KilnError *err)
{
    return kiln_error_set(err, KILN_E_PLUGIN,
                          "not a shared object that can be loaded: the file is cut short");
}

static KilnStatus check_segments(FILE *file, const Elf64_Ehdr *header, uint64_t size,
                                 KilnError *err)
{
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        uint64_t at = header->e_phoff + (uint64_t)i * sizeof(segment);

        if (at > size || fseek(file, (long)at, SEEK_SET) != 0 ||
            fread(&segment, sizeof(segment), 1, file) != 1)
            return cut_short(err);
        if (segment.p_type == PT_LOAD &&
            (segment.p_offset > size || segment.p_filesz > size - segment.p_offset))
            return cut_short(err);
    }
    return KILN_OK;
}

static KilnStatus check_file(FILE *file, uint64_t size, KilnError *err)
{
    Elf64_Ehdr header;

    if (fread(&header, sizeof(header), 1, file) != 1 ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return kiln_error_set(err, KILN_E_PLUGIN,
                              "not a shared object that can be loaded: no ELF header");
    /* Another machine's, or something odd: the loader says so well. */
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
        return KILN_OK;
    return check_segments(file, &header, size, err);
}

KilnStatus kiln_elf_check(const char *path, KilnError *err)
{
    FILE *file = fopen(path, "rb");
    struct stat st;

    if (file == NULL || fstat(fileno(file), &st) != 0) {
        KilnStatus status = kiln_error_set(err, KILN_E_PLUGIN, "%s", strerror(errno));

        if (file != NULL)
            fclose(file);
        return status;
    }
    KilnStatus status = check_file(file, (uint64_t)st.st_size, err);
    fclose(file);
    return status;
}
