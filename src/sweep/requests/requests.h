/* Requests to a sweep: files in its folder, which its launcher takes. */
#ifndef KILN_SWEEP_REQUESTS_REQUESTS_H
#define KILN_SWEEP_REQUESTS_REQUESTS_H

#include "sweep/jobs/jobs.h"

/* The folder of requests in a sweep's. A request is NAME.json; names rise with the time. */
#define KILN_REQUESTS ".kiln/requests"
#define KILN_REQUEST_ENDING ".json"
/* The reason of a job that a request has stopped. */
#define KILN_ON_REQUEST "on request"

/* Can a request stop the job? KILN_E_KEY: there is no such job, or it has ended. */
KILN_NODISCARD KilnStatus kiln_request_check_stop(const KilnJobs *jobs, size_t number,
                                                  KilnError *err);

#endif
