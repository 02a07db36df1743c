/* Says what became of a request to a sweep. */
#include <stdio.h>

#include "cli/sweep/verbs.h"

void kiln_sweep_print_answer(const char *dir, const KilnSweepAnswer *answer, const char *taken)
{
    switch (answer->state) {
    case KILN_REQUEST_TAKEN:
        puts(taken);
        break;
    case KILN_REQUEST_LATE:
        puts("the launcher of the sweep is busy; it takes the request later");
        break;
    case KILN_REQUEST_WAITING:
        printf("the sweep does not run now; it takes the request with: train -m --resume %s\n",
               dir);
        break;
    }
}
