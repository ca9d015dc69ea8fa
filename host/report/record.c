/* JSON Lines out and in. Every line is flushed by itself: what was measured before a crash, an interrupt or a
   full disk is in the file. */
#include "report/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/process.h"
#include "base/str.h"

#define RECORD_FILE_LIMIT_BYTES (UINT64_C(1) << 32)

clab_status clab_records_open(struct clab_record_writer *writer, const char *path, struct clab_error *error)
{
    unsigned char bytes[8] = {0};
    memset(writer, 0, sizeof *writer);
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        uint64_t now = clab_now_ns();
        memcpy(bytes, &now, sizeof now);
    }
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(writer->run + 2 * i, 3, "%02x", bytes[i]);
    if (path == NULL)
        return CLAB_OK;
    return clab_output_open(&writer->output, path, "records", error);
}

/* One write for a whole line: what kills this process leaves no half of it. What a full disk took of a line
   is taken back where the output is a file. */
static bool write_line(struct clab_output *output, const char *text, size_t bytes)
{
    const int fd = fileno(output->file);
    if (output->is_stdout)
        return fwrite(text, 1, bytes, output->file) == bytes && fflush(output->file) == 0;
    const off_t at = lseek(fd, 0, SEEK_CUR);
    if (clab_write_all(fd, text, bytes) == 0)
        return true;
    const int code = errno;
    if (at >= 0 && ftruncate(fd, at) == 0)
        (void)lseek(fd, at, SEEK_SET);
    errno = code;
    return false;
}

void clab_record_write(struct clab_record_writer *writer, const char *type, const json_t *extra,
                       const json_t *record)
{
    if (writer->output.file == NULL)
        return;
    json_t *line = json_pack("{s:s,s:s,s:s}", "type", type, "schema", CLAB_SCHEMA, "run", writer->run);
    char *text = NULL;
    errno = ENOMEM;
    if (line != NULL && (extra == NULL || json_object_update(line, (json_t *)(uintptr_t)extra) == 0) &&
        json_object_update(line, (json_t *)(uintptr_t)record) == 0)
        text = json_dumps(line, JSON_COMPACT | JSON_PRESERVE_ORDER);
    const size_t bytes = text != NULL ? strlen(text) : 0;
    if (text != NULL)
        text[bytes] = '\n'; /* in place of the end */
    if (text == NULL || !clab_output_begin(&writer->output) ||
        !write_line(&writer->output, text, bytes + 1)) {
        writer->code = writer->lost == 0 ? errno : writer->code;
        writer->lost++;
    }
    free(text);
    json_decref(line);
}

clab_status clab_records_close(struct clab_record_writer *writer, struct clab_error *error)
{
    if (!clab_output_close(&writer->output) && writer->lost == 0) {
        writer->code = errno;
        writer->lost = 1;
    }
    if (writer->lost == 0 || (writer->output.is_stdout && clab_is_unread(STDOUT_FILENO)))
        return CLAB_OK;
    clab_error_set(error, CLAB_OUTPUT, "records could not be written to %s: %s (%zu %s missing)",
                   writer->output.is_stdout ? "standard output" : writer->output.path, strerror(writer->code),
                   writer->lost, writer->lost == 1 ? "is" : "are");
    return clab_error_remedy(
        error, "free some space, or name another file with --json; the table above is complete");
}

json_t *clab_run_record(int argc, char *const *argv, json_t *more)
{
    json_t *command = json_array(), *record = json_object();
    for (int i = 0; i < argc; i++) {
        json_t *word = json_string(clab_path_shown(argv[i]));
        json_array_append_new(command, word != NULL ? word : json_string("(not UTF-8)"));
    }
    char when[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc) != NULL)
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    struct utsname system;
    json_object_set_new(record, "version", json_string(CLAB_VERSION));
    json_object_set_new(record, "time", json_string(when));
    json_object_set_new(record, "command", command);
    if (uname(&system) == 0)
        json_object_set_new(record, "host",
                            json_pack("{s:s,s:s,s:I}", "system", system.sysname, "machine", system.machine,
                                      "processors", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN)));
    if (more != NULL)
        json_object_update(record, more);
    json_decref(more);
    return record;
}

clab_status clab_records_read(const char *path, json_t **out_records, struct clab_error *error)
{
    size_t bytes;
    char *text = clab_file_read(path, RECORD_FILE_LIMIT_BYTES, &bytes);
    *out_records = NULL;
    if (text == NULL)
        return clab_error_set(error, CLAB_USAGE, "cannot read %s: %s", path, strerror(errno));
    json_t *records = json_array();
    uint32_t number = 0;
    for (char *line = text; *line != '\0';) {
        char *end = strchr(line, '\n');
        size_t length = end != NULL ? (size_t)(end - line) : strlen(line);
        json_error_t why;
        number++;
        if (length != 0) {
            json_t *record = json_loadb(line, length, 0, &why);
            if (!json_is_object(record)) {
                json_decref(record);
                json_decref(records);
                free(text);
                clab_error_set(error, CLAB_USAGE, "not a record: %s", why.text);
                return clab_error_at(error, path, number, 0);
            }
            json_array_append_new(records, record);
        }
        line += length + (end != NULL);
    }
    free(text);
    *out_records = records;
    return CLAB_OK;
}

/* What stands between the quotes of a cell (RFC 4180): quotes doubled, line breaks as blanks. */
static void csv_text(FILE *file, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '"')
            fputc('"', file);
        fputc(*p == '\n' ? ' ' : *p, file);
    }
}

static void csv_cell(FILE *file, const json_t *value)
{
    if (json_is_string(value)) {
        fputc('"', file);
        csv_text(file, json_string_value(value));
        fputc('"', file);
    } else if (json_is_integer(value)) {
        fprintf(file, "%lld", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        fprintf(file, "%.9g", json_real_value(value));
    } else if (json_is_boolean(value)) {
        fputs(json_is_true(value) ? "true" : "false", file);
    } else if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++)
            fprintf(file, "%s%lld", i != 0 ? "x" : "",
                    (long long)json_integer_value(json_array_get(value, i)));
    }
}

/* The union of keys of one member over all rows, in the order first seen. */
static json_t *keys_of(const json_t *rows, const char *member)
{
    json_t *keys = json_object();
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const char *key;
        json_t *value;
        json_object_foreach(json_object_get(json_array_get(rows, i), member), key, value)
        {
            json_object_set_new(keys, key, json_true());
        }
    }
    return keys;
}

clab_status clab_rows_write_csv(struct clab_output *output, const json_t *rows, struct clab_error *error)
{
    if (json_array_size(rows) == 0) {
        (void)clab_output_close(output);
        return CLAB_OK;
    }
    FILE *file = output->file;
    bool failed = !clab_output_begin(output);
    json_t *params = keys_of(rows, "params"), *columns = keys_of(rows, "columns");
    const char *key;
    json_t *ignored;
    fputs("variant,status,reason,device,emulated,grid,block,cluster", file);
    json_object_foreach(params, key, ignored)
    {
        fputs(",\"param:", file);
        csv_text(file, key);
        fputc('"', file);
    }
    json_object_foreach(columns, key, ignored)
    {
        fputs(",\"", file);
        csv_text(file, key);
        fputc('"', file);
    }
    fputs(",time_kind,cold_median_ns,cold_min_ns,cold_p05_ns,cold_p95_ns,samples,gb_per_s,vs_baseline,vs_low,"
          "vs_high\n",
          file);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i), *device = json_object_get(row, "device");
        const json_t *launch = json_object_get(row, "launch"), *time = json_object_get(row, "time");
        const json_t *cold = json_object_get(time, "cold_ns"), *rates = json_object_get(row, "rates");
        const json_t *ratio = json_object_get(rates, "vs_baseline");
        const json_t *head[] = {json_object_get(row, "variant"),     json_object_get(row, "status"),
                                json_object_get(row, "reason"),      json_object_get(device, "id"),
                                json_object_get(device, "emulated"), json_object_get(launch, "grid"),
                                json_object_get(launch, "block"),    json_object_get(launch, "cluster")};
        for (size_t j = 0; j < sizeof head / sizeof *head; j++) {
            if (j != 0)
                fputc(',', file);
            csv_cell(file, head[j]);
        }
        json_object_foreach(params, key, ignored)
        {
            fputc(',', file);
            csv_cell(file, json_object_get(json_object_get(row, "params"), key));
        }
        json_object_foreach(columns, key, ignored)
        {
            fputc(',', file);
            csv_cell(file, json_object_get(json_object_get(row, "columns"), key));
        }
        const json_t *tail[] = {json_object_get(time, "kind"),      json_object_get(cold, "median"),
                                json_object_get(cold, "min"),       json_object_get(cold, "p05"),
                                json_object_get(cold, "p95"),       json_object_get(cold, "samples"),
                                json_object_get(rates, "gb_per_s"), json_object_get(ratio, "ratio"),
                                json_object_get(ratio, "low"),      json_object_get(ratio, "high")};
        for (size_t j = 0; j < sizeof tail / sizeof *tail; j++) {
            fputc(',', file);
            csv_cell(file, tail[j]);
        }
        fputc('\n', file);
    }
    json_decref(params);
    json_decref(columns);
    failed = failed || ferror(file) != 0;
    if (!clab_output_close(output))
        failed = true;
    if (output->is_stdout && clab_is_unread(STDOUT_FILENO))
        return CLAB_OK;
    return failed ? clab_error_set(error, CLAB_OUTPUT, "%s could not be written: %s",
                                   output->is_stdout ? "standard output" : output->path, strerror(errno))
                  : CLAB_OK;
}
