/* Reads the files of tests/record/models.py; fills parameters with its pattern instead of trained
 * weights. */
#ifndef KILN_TESTS_SUPPORT_RECORDED_FILE_H
#define KILN_TESTS_SUPPORT_RECORDED_FILE_H

#include <stdbool.h>

#include "kiln/nn.h"

enum { RECORD_WORDS = 4096 };

/* A text file that is read line by line, each split at blanks. */
typedef struct Record {
    char *text, *next;
    char *word[RECORD_WORDS];
    size_t words;
} Record;

void record_open(Record *record, const char *name);

void record_close(Record *record);

/* Split the next line; false at the end of the file. */
bool record_line(Record *record);

bool record_is(const Record *record, const char *keyword);

/* Open a file and go to the line of that keyword and name. */
void record_find(Record *record, const char *file, const char *keyword, const char *name);

double record_f64(const Record *record, size_t i);

int64_t record_i64(const Record *record, size_t i);

/* An element of the pattern of tests/record/models.py, in [-1, 1). */
double pattern(uint32_t key, uint32_t index);

/* Fill entry k of the state dict from pattern(k), as fill() of the recording does. */
void params_fill(KilnParams *params);

#endif
