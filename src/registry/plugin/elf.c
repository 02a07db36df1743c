/* Reads the headers of a shared object before dlopen does. */
#include "registry/plugin/elf.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool read_at(FILE *file, uint64_t at, void *data, size_t size)
{
    return at <= INT64_MAX && fseek(file, (long)at, SEEK_SET) == 0 &&
           fread(data, size, 1, file) == 1;
}

static KilnStatus check_segments(FILE *file, const Elf64_Ehdr *header, uint64_t size,
                                 KilnError *err)
{
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        uint64_t at = header->e_phoff + (uint64_t)i * sizeof(segment);

        if (!read_at(file, at, &segment, sizeof(segment)) ||
            (segment.p_type == PT_LOAD &&
             (segment.p_offset > size || segment.p_filesz > size - segment.p_offset)))
            return kiln_error_set(err, KILN_E_PLUGIN,
                                  "not a shared object that can be loaded: the file is cut short");
    }
    return KILN_OK;
}

/* Does the symbol table define a symbol of that name? */
static bool has_symbol(FILE *file, const Elf64_Shdr *symbols, const Elf64_Shdr *names,
                       const char *name)
{
    const size_t length = strlen(name) + 1;
    char text[64];

    for (uint64_t i = 0; i < symbols->sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym symbol;

        if (!read_at(file, symbols->sh_offset + i * sizeof(symbol), &symbol, sizeof(symbol)))
            return false;
        if (symbol.st_shndx != SHN_UNDEF && symbol.st_name < names->sh_size &&
            read_at(file, names->sh_offset + symbol.st_name, text, length) &&
            memcmp(text, name, length) == 0)
            return true;
    }
    return false;
}

/* Does it export `name`? Without a section table only the loader knows. */
static bool may_export(FILE *file, const Elf64_Ehdr *header, const char *name)
{
    if (header->e_shoff == 0 || header->e_shentsize != sizeof(Elf64_Shdr))
        return true;
    for (unsigned i = 0; i < header->e_shnum; i++) {
        Elf64_Shdr symbols, names;

        if (!read_at(file, header->e_shoff + i * sizeof(symbols), &symbols, sizeof(symbols)))
            return true;
        if (symbols.sh_type == SHT_DYNSYM && symbols.sh_link < header->e_shnum &&
            read_at(file, header->e_shoff + symbols.sh_link * sizeof(names), &names, sizeof(names)))
            return has_symbol(file, &symbols, &names, name);
    }
    return false;
}

static KilnStatus check_file(FILE *file, uint64_t size, const char *symbol, KilnError *err)
{
    Elf64_Ehdr header;

    if (fread(&header, sizeof(header), 1, file) != 1 ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return kiln_error_set(err, KILN_E_PLUGIN,
                              "not a shared object that can be loaded: no ELF header");
    /* For another machine, or unusual: the loader reports that. */
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
        return KILN_OK;
    KilnStatus status = check_segments(file, &header, size, err);
    if (status >= 0 && !may_export(file, &header, symbol))
        status = kiln_error_set(err, KILN_E_PLUGIN,
                                "no %s symbol: this is no kiln plugin (its file ends with "
                                "KILN_PLUGIN_DEFINE; if that is in an #ifdef, compile it with "
                                "-DKILN_BUILD_PLUGIN)",
                                symbol);
    return status;
}

KilnStatus kiln_elf_check(const char *path, const char *symbol, KilnError *err)
{
    FILE *file = fopen(path, "rb");
    struct stat st;

    if (file == NULL || fstat(fileno(file), &st) != 0) {
        KilnStatus status = kiln_error_set(err, KILN_E_PLUGIN, "%s", strerror(errno));

        if (file != NULL)
            fclose(file);
        return status;
    }
    KilnStatus status = check_file(file, (uint64_t)st.st_size, symbol, err);
    fclose(file);
    return status;
}
