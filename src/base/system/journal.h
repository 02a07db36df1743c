/* A journal, of a sweep or a run: one JSON object a line, appended and synced; everything
 * that must not be forgotten. */
#ifndef KILN_BASE_SYSTEM_JOURNAL_H
#define KILN_BASE_SYSTEM_JOURNAL_H

#include <jansson.h>

#include "kiln/base.h"

#define KILN_JOURNAL_FILE "journal.jsonl"

typedef struct KilnJournal KilnJournal;

/* Open the journal of the folder `dir`, made when it is not there, and own it: no
 * other process can have it until this one and all its forks are gone or have
 * closed it. KILN_E_IO says who has it. A torn last line is cut off. */
KILN_NODISCARD KilnStatus kiln_journal_open(const char *dir, KilnJournal **ret, KilnError *err);
/* Accepts NULL. */
void kiln_journal_close(KilnJournal *journal);
/* Whether nothing stood in it when it was opened. */
bool kiln_journal_is_new(const KilnJournal *journal);
/* Call `record` for each object that was in the journal when it was opened, in
 * order; lines that are none are left out, and counted in *ret_skipped. */
KILN_NODISCARD KilnStatus kiln_journal_replay(const KilnJournal *journal,
                                              KilnStatus (*record)(void *ctx, const json_t *line,
                                                                   KilnError *err),
                                              void *ctx, size_t *ret_skipped, KilnError *err);
/* Append a record, which is consumed; NULL says that memory was out when it was made. */
KILN_NODISCARD KilnStatus kiln_journal_append(KilnJournal *journal, json_t *record, KilnError *err);
/* Bring what was appended to disk. */
KILN_NODISCARD KilnStatus kiln_journal_sync(KilnJournal *journal, KilnError *err);
/* The first record of the journal of `dir`, read without owning it: what it began
 * with. The caller owns it (json_decref). */
KILN_NODISCARD KilnStatus kiln_journal_peek(const char *dir, json_t **ret, KilnError *err);
/* The time as records have it: "2026-11-20T21:03:11+0100". */
#define KILN_TIME_TEXT 32
const char *kiln_time_text(char buf[KILN_TIME_TEXT]);

#endif
