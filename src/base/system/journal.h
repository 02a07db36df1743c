/* The journal of a sweep or a run: one JSON object per line, appended and synced to disk. */
#ifndef KILN_BASE_SYSTEM_JOURNAL_H
#define KILN_BASE_SYSTEM_JOURNAL_H

#include <jansson.h>

#include "kiln/base.h"

#define KILN_JOURNAL_FILE "journal.jsonl"

typedef struct KilnJournal KilnJournal;

/* Open and lock the journal of the folder `dir`, which is made if it does not exist. No other
 * process can open it until this one and all its forks have ended or closed it; KILN_E_IO names the
 * owner. A torn last line is cut off. */
KILN_NODISCARD KilnStatus kiln_journal_open(const char *dir, KilnJournal **ret, KilnError *err);
/* Accepts NULL. */
void kiln_journal_close(KilnJournal *journal);
/* Whether it was empty when it was opened. */
bool kiln_journal_is_new(const KilnJournal *journal);
/* Call `record` for each object that the journal had when it was opened, in order; other lines are
 * skipped and counted in *ret_skipped. */
KILN_NODISCARD KilnStatus kiln_journal_replay(const KilnJournal *journal,
                                              KilnStatus (*record)(void *ctx, const json_t *line,
                                                                   KilnError *err),
                                              void *ctx, size_t *ret_skipped, KilnError *err);
/* Append a record, which is consumed; NULL: memory ran out when it was made. */
KILN_NODISCARD KilnStatus kiln_journal_append(KilnJournal *journal, json_t *record, KilnError *err);
/* Sync to disk. */
KILN_NODISCARD KilnStatus kiln_journal_sync(KilnJournal *journal, KilnError *err);
/* The same for all whole lines of the journal of `dir`, which another process may own. */
KILN_NODISCARD KilnStatus kiln_journal_read(const char *dir,
                                            KilnStatus (*record)(void *ctx, const json_t *line,
                                                                 KilnError *err),
                                            void *ctx, KilnError *err);
/* Does a process own the journal of `dir`? */
bool kiln_journal_is_owned(const char *dir);
/* The first record of the journal of `dir`, without locking it. Owned by the caller (json_decref).
 */
KILN_NODISCARD KilnStatus kiln_journal_peek(const char *dir, json_t **ret, KilnError *err);
/* The current time in the format of records: "2026-11-20T21:03:11+0100". */
#define KILN_TIME_TEXT 32
const char *kiln_time_text(char buf[KILN_TIME_TEXT]);

#endif
