/* Unicode's normal forms, with how many characters each new character replaces. */
#ifndef KILN_TEXT_UNICODE_NORMAL_FORM_H
#define KILN_TEXT_UNICODE_NORMAL_FORM_H

#include "kiln/base.h"

/* A character of a changed text. change 0: it replaces one character; 1: it is additional; -n: it
 * replaces one and n that follow. */
typedef struct KilnCharChange {
    uint32_t character;
    int32_t change;
} KilnCharChange;

typedef struct KilnCharChanges {
    KilnCharChange *items;
    size_t n, capacity;
    bool failed; /* memory ran out */
} KilnCharChanges;

void kiln_char_changes_add(KilnCharChanges *changes, uint32_t character, int32_t change);

typedef enum KilnNormalForm { KILN_NFC, KILN_NFD, KILN_NFKC, KILN_NFKD } KilnNormalForm;

/* Append the normal form of valid UTF-8. */
void kiln_normal_form(KilnNormalForm form, const char *text, size_t n, KilnCharChanges *ret);

#endif
