/* Records as JSON Lines (schema clusterlab/1): one object a line, written as soon as it is complete. */
#ifndef CLAB_REPORT_RECORD_H
#define CLAB_REPORT_RECORD_H

#include <jansson.h>
#include <stdio.h>

#include "base/error.h"
#include "report/output.h"

#define CLAB_SCHEMA "clusterlab/1"

struct clab_record_writer {
    struct clab_output output; /* not open: records go nowhere */
    char run[40];              /* identifier shared by the records of one invocation */
    size_t lost;               /* records that could not be written; told once by clab_records_close */
    int code;                  /* errno of the first of them */
};

/* path NULL: no file; "-": standard output. An existing file is replaced when the first record is written,
   and left as it is when none is. CLAB_OUTPUT when it cannot be written. Makes the run identifier (random) in
   every case. */
clab_status clab_records_open(struct clab_record_writer *writer, const char *path, struct clab_error *error);
/* Writes `record` as type `type`, with "schema" and "run" in front and `extra` (may be NULL) merged in;
   flushes. A failed write is remembered, so that a run on a full disk goes on; no part of the line stays in
   the file, whose lines are whole. */
void clab_record_write(struct clab_record_writer *writer, const char *type, const json_t *extra,
                       const json_t *record);
/* Closes. CLAB_OUTPUT, naming the file and how many records it lacks, when any write had failed. */
clab_status clab_records_close(struct clab_record_writer *writer, struct clab_error *error);

/* The run record: version, command line, host, and what else the caller knows (`more`, reference stolen, may
 * be NULL). */
json_t *clab_run_record(int argc, char *const *argv, json_t *more);

/* Reads a JSON Lines file. Lines that are not JSON give CLAB_USAGE with file and line. New reference to an
 * array. */
clab_status clab_records_read(const char *path, json_t **out_records, struct clab_error *error);

/* Row records as CSV with one header line, parameters as "param:NAME", into an open output, which is closed.
   No rows: nothing is written, and an existing file stays as it is. CLAB_OUTPUT on failure. */
clab_status clab_rows_write_csv(struct clab_output *output, const json_t *rows, struct clab_error *error);

#endif
