/* The image cache. A key is the SHA-256 of everything that an image depends on: source text, every file that
   the include scan finds, options, architecture, the compilers' and headers' identity, clusterlab's version.
   Under the cache folder:

       ab/ab12...cd.meta                    entry of a key: text lines, last of them the checksum of those
   before ab/cg.sm_90.1f2e3d4c5b6a7980.cubin   the image, named after source, architecture and its own
   checksum ab/cg.sm_90.77aa88bb99cc00dd.ptx     the PTX that came with a cubin

   Images are plain files that other tools read. An image is written before the entry that names it, each by a
   rename, and its name holds its checksum, so that two processes writing the same key cannot mix. Reading
   checks both sums; anything that does not fit counts as absent and is rebuilt. When the folder has grown
   past its limit (CLUSTERLAB_CACHE_LIMIT_MB, default 1024), the entries not read for longest go. */
#include "compile/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "compile/sha256.h"

static const size_t file_limit_bytes = (size_t)1 << 30;

void clab_cache_init(struct clab_cache *cache, const char *dir)
{
    memset(cache, 0, sizeof *cache);
    const char *given = dir != NULL ? dir : getenv("CLUSTERLAB_CACHE");
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = 0;
    if (given != NULL)
        length = snprintf(cache->dir, sizeof cache->dir, "%s", given);
    else if (xdg != NULL && xdg[0] == '/')
        length = snprintf(cache->dir, sizeof cache->dir, "%s/clusterlab", xdg);
    else if (home != NULL && home[0] == '/')
        length = snprintf(cache->dir, sizeof cache->dir, "%s/.cache/clusterlab", home);
    if (length >= (int)sizeof cache->dir - 256) {
        cache->dir[0] = '\0';
        snprintf(cache->note, sizeof cache->note, "the cache folder's name is too long");
    }
}

/* Folders given in raw options, and options that read further files. */
static bool scan_options(const struct clab_compile_request *request, const char **dirs, size_t *dir_count,
                         struct clab_str *includes)
{
    for (size_t i = 0; i < request->option_count; i++) {
        const char *option = request->options[i];
        const char *value = strchr(option, '=');
        if (strncmp(option, "-I", 2) == 0 && option[2] != '\0') {
            dirs[(*dir_count)++] = option + 2;
        } else if (strncmp(option, "--include-path=", 15) == 0 && value != NULL) {
            dirs[(*dir_count)++] = value + 1;
        } else if (strncmp(option, "-include", 8) == 0 || strncmp(option, "--pre-include", 13) == 0) {
            char quoted[4200];
            if (value == NULL)
                return false;
            snprintf(quoted, sizeof quoted, "#include \"%s\"\n", value + 1);
            if (!clab_scan_includes(request->source_path, quoted, request->include_dirs,
                                    request->include_dir_count, includes))
                return false;
        } else if (strcmp(option, "-I") == 0 || strncmp(option, "-optf", 5) == 0 ||
                   strncmp(option, "--options-file", 14) == 0 || strstr(option, "use-pch") != NULL) {
            return false;
        }
    }
    return true;
}

void clab_cache_key(const struct clab_toolkit *toolkit, const struct clab_compile_request *request,
                    char key[65])
{
    key[0] = '\0';
    struct clab_str includes = {0};
    size_t dir_count = 0;
    const char **dirs = calloc(request->include_dir_count + request->option_count + 1, sizeof *dirs);
    bool known = dirs != NULL && scan_options(request, dirs, &dir_count, &includes);
    for (size_t i = 0; known && i < request->include_dir_count; i++)
        dirs[dir_count++] = request->include_dirs[i];
    /* PTX has no includes; scanning it would only cost time. */
    size_t length = strlen(request->source_path);
    bool is_ptx = length > 4 && strcmp(request->source_path + length - 4, ".ptx") == 0;
    if (known && !is_ptx)
        known = clab_scan_includes(request->source_path, request->source_text, dirs, dir_count, &includes);
    if (known && !includes.failed) {
        struct clab_sha256 hash;
        char identity[4400];
        clab_sha256_init(&hash);
        clab_sha256_field(&hash, "clusterlab image 1");
        clab_sha256_field(&hash, CLAB_VERSION);
        clab_sha256_field(&hash, request->source_path);
        /* Line information names the file by its whole path. */
        char folder[4096] = "";
        if (request->line_info && request->source_path[0] != '/' && getcwd(folder, sizeof folder) == NULL)
            folder[0] = '\0';
        clab_sha256_field(&hash, folder);
        clab_sha256_field(&hash, request->source_text);
        clab_sha256_field(&hash, request->arch);
        clab_sha256_field(&hash, request->entry);
        clab_sha256_field(&hash, clab_image_kind_name(request->want));
        clab_sha256_field(&hash, request->line_info ? "lineinfo" : "");
        if (request->per_chip)
            clab_sha256_field(&hash, "per chip");
        for (size_t i = 0; i < request->include_dir_count; i++)
            clab_sha256_field(&hash, request->include_dirs[i]);
        clab_sha256_field(&hash, NULL);
        for (size_t i = 0; i < request->define_count; i++)
            clab_sha256_field(&hash, request->defines[i]);
        clab_sha256_field(&hash, NULL);
        for (size_t i = 0; i < request->option_count; i++)
            clab_sha256_field(&hash, request->options[i]);
        clab_sha256_field(&hash, NULL);
        for (int id = 0; id <= CLAB_PART_CCCL_INCLUDE; id++) {
            clab_toolkit_identity(toolkit, (enum clab_part_id)id, identity, sizeof identity);
            clab_sha256_field(&hash, identity);
        }
        clab_sha256_field(&hash, includes.text != NULL ? includes.text : "");
        clab_sha256_hex(&hash, key);
    }
    clab_str_free(&includes);
    free((void *)dirs);
}

/* --- reading
 * ------------------------------------------------------------------------------------------------ */

/* "NAME VALUE" line at *at: VALUE as heap text, *at moved behind the line. NULL where the name is another
 * one. */
static char *take_field(const char **at, const char *name)
{
    size_t length = strlen(name);
    if (strncmp(*at, name, length) != 0 || (*at)[length] != ' ')
        return NULL;
    const char *value = *at + length + 1;
    size_t bytes = strcspn(value, "\n");
    if (value[bytes] != '\n')
        return NULL;
    *at = value + bytes + 1;
    return strndup(value, bytes);
}

static void take_into(const char **at, const char *name, char *to, size_t bytes)
{
    char *value = take_field(at, name);
    snprintf(to, bytes, "%s", value != NULL ? value : "");
    free(value);
}

/* A file of the entry's folder whose content has the given checksum, or NULL. */
static char *read_checked(const char *folder, const char *name, const char *sha256, size_t *out_bytes)
{
    char path[5000], hex[65];
    if (name[0] == '\0' || strchr(name, '/') != NULL)
        return NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *data = clab_file_read(path, file_limit_bytes, out_bytes);
    if (data == NULL)
        return NULL;
    clab_sha256_of(data, *out_bytes, hex);
    if (strcmp(hex, sha256) == 0) {
        utimensat(AT_FDCWD, path, NULL, 0); /* read now: what the trim goes by */
        return data;
    }
    free(data);
    return NULL;
}

static bool parse_entry(const char *folder, const char *meta, struct clab_image *out)
{
    const char *at = meta;
    char name[1024], sum[65], numbers[128], word[32];
    take_into(&at, "kind", word, sizeof word);
    out->kind = strcmp(word, "cubin") == 0 ? CLAB_IMAGE_CUBIN
                : strcmp(word, "ptx") == 0 ? CLAB_IMAGE_PTX
                                           : CLAB_IMAGE_NONE;
    take_into(&at, "arch", out->arch, sizeof out->arch);
    take_into(&at, "version", word, sizeof word);
    out->ptx_version = atoi(word);
    take_into(&at, "compiler", out->compiler, sizeof out->compiler);
    out->source_path = take_field(&at, "source");
    out->entry = take_field(&at, "entry");
    out->lowered = take_field(&at, "lowered");
    take_into(&at, "resources", numbers, sizeof numbers);
    struct clab_image_resources *r = &out->resources;
    r->known = sscanf(numbers, "%d %d %d %d %d %d", &r->registers, &r->barriers, &r->static_smem_bytes,
                      &r->stack_bytes, &r->spill_store_bytes, &r->spill_load_bytes) == 6;
    take_into(&at, "image", name, sizeof name);
    take_into(&at, "sha256", out->sha256, sizeof out->sha256);
    out->data = read_checked(folder, name, out->sha256, &out->bytes);
    take_into(&at, "ptx", name, sizeof name);
    take_into(&at, "ptx-sha256", sum, sizeof sum);
    if (name[0] != '\0') {
        out->ptx = read_checked(folder, name, sum, &out->ptx_bytes);
        if (out->ptx == NULL)
            return false;
    }
    if (strncmp(at, "log\n", 4) == 0 && at[4] != '\0')
        out->log = strdup(at + 4);
    out->cached = true;
    return out->kind != CLAB_IMAGE_NONE && out->data != NULL && out->source_path != NULL;
}

bool clab_cache_get(struct clab_cache *cache, const char *key, struct clab_image *out)
{
    char folder[4200], path[4400], hex[65];
    size_t bytes;
    memset(out, 0, sizeof *out);
    if (cache->dir[0] == '\0' || key[0] == '\0')
        return false;
    snprintf(folder, sizeof folder, "%s/%.2s", cache->dir, key);
    snprintf(path, sizeof path, "%s/%s.meta", folder, key);
    char *meta = clab_file_read(path, (size_t)64 << 20, &bytes);
    if (meta == NULL) {
        if (errno != ENOENT && errno != ENOTDIR)
            snprintf(cache->note, sizeof cache->note, "cannot read %s: %s", path, strerror(errno));
        return false;
    }
    bool good = false;
    /* The last line is the sum of all before it. */
    if (bytes > 65 && strlen(meta) == bytes && meta[bytes - 1] == '\n' && meta[bytes - 66] == '\n') {
        clab_sha256_of(meta, bytes - 65, hex);
        good = memcmp(meta + bytes - 65, hex, 64) == 0;
        meta[bytes - 66] = '\0'; /* with the newline before the sum, which ends the log */
    }
    if (good)
        good = parse_entry(folder, meta, out);
    if (good)
        utimensat(AT_FDCWD, path, NULL, 0);
    else
        clab_image_free(out);
    free(meta);
    return good;
}

/* --- writing
 * ------------------------------------------------------------------------------------------------ */

/* mkdir -p. */
static int make_folders(const char *path)
{
    char partial[4200];
    snprintf(partial, sizeof partial, "%s", path);
    for (char *slash = partial + 1;; slash++) {
        slash += strcspn(slash, "/");
        char kept = *slash;
        *slash = '\0';
        if (mkdir(partial, 0777) != 0 && errno != EEXIST)
            return -1;
        if (kept == '\0')
            return 0;
        *slash = kept;
    }
}

/* "cg.sm_90.1f2e3d4c5b6a7980.cubin", with the source's stem reduced to letters that any file system takes. */
static void file_name(const struct clab_image *image, const char *sha256, const char *ending, char *name,
                      size_t bytes)
{
    const char *slash = strrchr(image->source_path, '/');
    const char *stem = slash != NULL ? slash + 1 : image->source_path;
    char plain[64];
    size_t length = 0;
    for (; stem[length] != '\0' && stem[length] != '.' && length + 1 < sizeof plain; length++) {
        char c = stem[length];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                    c == '-';
        plain[length] = good ? c : '_';
    }
    plain[length] = '\0';
    snprintf(name, bytes, "%s.%s.%.16s.%s", plain, image->arch, sha256, ending);
}

static bool write_part(struct clab_cache *cache, const char *folder, const char *name, const char *data,
                       size_t bytes)
{
    char path[5000];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (clab_file_write_quick(path, data, bytes) == 0)
        return true;
    snprintf(cache->note, sizeof cache->note, "cannot write %s: %s", path, strerror(errno));
    return false;
}

static void trim(const struct clab_cache *cache);

void clab_cache_put(struct clab_cache *cache, const char *key, const struct clab_image *image)
{
    if (cache->dir[0] == '\0' || key[0] == '\0' || image->data == NULL || image->source_path == NULL)
        return;
    /* A name with a newline has no place in a file of lines. */
    if (strchr(image->source_path, '\n') != NULL ||
        (image->entry != NULL && strchr(image->entry, '\n') != NULL))
        return;
    char folder[4200], name[256], ptx_name[256] = "", ptx_sum[65] = "", hex[65];
    snprintf(folder, sizeof folder, "%s/%.2s", cache->dir, key);
    if (make_folders(folder) != 0) {
        snprintf(cache->note, sizeof cache->note, "cannot create %s: %s", folder, strerror(errno));
        return;
    }
    file_name(image, image->sha256, clab_image_kind_name(image->kind), name, sizeof name);
    if (!write_part(cache, folder, name, image->data, image->bytes))
        return;
    if (image->ptx != NULL) {
        clab_sha256_of(image->ptx, image->ptx_bytes, ptx_sum);
        file_name(image, ptx_sum, "ptx", ptx_name, sizeof ptx_name);
        if (!write_part(cache, folder, ptx_name, image->ptx, image->ptx_bytes))
            return;
    }
    struct clab_str meta = {0};
    const struct clab_image_resources *r = &image->resources;
    clab_str_addf(&meta, "kind %s\narch %s\nversion %d\ncompiler %s\nsource %s\n",
                  clab_image_kind_name(image->kind), image->arch, image->ptx_version, image->compiler,
                  image->source_path);
    if (image->entry != NULL && image->lowered != NULL)
        clab_str_addf(&meta, "entry %s\nlowered %s\n", image->entry, image->lowered);
    if (r->known)
        clab_str_addf(&meta, "resources %d %d %d %d %d %d\n", r->registers, r->barriers, r->static_smem_bytes,
                      r->stack_bytes, r->spill_store_bytes, r->spill_load_bytes);
    clab_str_addf(&meta, "image %s\nsha256 %s\n", name, image->sha256);
    if (ptx_name[0] != '\0')
        clab_str_addf(&meta, "ptx %s\nptx-sha256 %s\n", ptx_name, ptx_sum);
    clab_str_addf(&meta, "log\n%s\n", image->log != NULL ? image->log : "");
    if (!meta.failed) {
        clab_sha256_of(meta.text, meta.bytes, hex);
        clab_str_addf(&meta, "%s\n", hex);
    }
    snprintf(name, sizeof name, "%s.meta", key);
    if (!meta.failed && write_part(cache, folder, name, meta.text, meta.bytes))
        trim(cache);
    clab_str_free(&meta);
}

/* --- trimming
 * ----------------------------------------------------------------------------------------------- */

struct kept_file {
    char path[600]; /* below the cache folder */
    long long bytes, used;
};

static int by_use(const void *a, const void *b)
{
    const struct kept_file *x = a, *y = b;
    return x->used < y->used ? -1 : x->used > y->used;
}

/* Runs on one write in sixteen or so, by the clock, so that its folder walk is not part of every compile.
   Files go by the age of their last use; an entry whose image went first is rebuilt when asked for. */
static void trim(const struct clab_cache *cache)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_nsec / 1000 % 16 != 0 && getenv("CLUSTERLAB_CACHE_LIMIT_MB") == NULL)
        return;
    const char *setting = getenv("CLUSTERLAB_CACHE_LIMIT_MB");
    long long limit = (setting != NULL ? atoll(setting) : 1024) << 20, total = 0;
    struct kept_file *files = NULL;
    size_t count = 0, capacity = 0;
    for (int byte = 0; byte < 256; byte++) {
        char folder[4200], path[5000];
        snprintf(folder, sizeof folder, "%s/%02x", cache->dir, (unsigned)byte);
        DIR *list = opendir(folder);
        struct dirent *item;
        while (list != NULL && (item = readdir(list)) != NULL) {
            struct stat info;
            snprintf(path, sizeof path, "%s/%s", folder, item->d_name);
            if (item->d_name[0] == '.' || stat(path, &info) != 0 || !S_ISREG(info.st_mode))
                continue;
            if (count == capacity) {
                capacity = capacity ? capacity * 2 : 256;
                struct kept_file *grown = realloc(files, capacity * sizeof *files);
                if (grown == NULL)
                    break;
                files = grown;
            }
            snprintf(files[count].path, sizeof files[count].path, "%02x/%s", (unsigned)byte, item->d_name);
            files[count].bytes = (long long)info.st_size;
            files[count].used = (long long)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
            total += files[count++].bytes;
        }
        if (list != NULL)
            closedir(list);
    }
    if (total > limit && count > 0) {
        qsort(files, count, sizeof *files, by_use);
        for (size_t i = 0; i < count && total > limit * 3 / 4; i++) {
            char path[5000];
            snprintf(path, sizeof path, "%s/%s", cache->dir, files[i].path);
            if (unlink(path) == 0)
                total -= files[i].bytes;
        }
    }
    free(files);
}
