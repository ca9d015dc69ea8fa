/* Precompiled headers of NVRTC (NVRTC 13.0 manual, "Precompiled Header Support"). cooperative_groups.h takes
   0.31 s with the rest of a small kernel, 0.15 s from a precompiled header, and 0.49 s where one is made on
   the way: that pays from the third source on, in one run or over several. So one is made when at least two
   more sources of a batch want the same, or when an earlier run has asked for it, which an empty file
   KEY.seen notes. Measured: NVRTC 13.0.88, 17 architectures, 2026-11-30.

   A precompiled header is an image of the front end's memory, 70 MB for cooperative_groups.h, that holds
   addresses of NVRTC's heap and of the library. NVRTC itself takes none whose heap was elsewhere or whose
   options and directives differ; headers it takes as they were (13.0.88), so that the key has their content,
   and of the toolkit's its identity, as the image cache does. To be of use in another process, addresses must
   be the same there: the parent starts workers without address space randomisation (personality), the worker
   takes no large block by mmap and sets address space aside for the heap before anything else. Where the
   system forbids that (containers whose seccomp filter knows no personality), files stay in the worker's own
   scratch folder and go with it. In CACHE/pch lie, for a LAYOUT (where NVRTC and the C library lie in the
   process that made it, and whether it was given texts for host headers):

   - KEY-LAYOUT.pch;
   - KEY-LAYOUT.sum: its size, checksum and time, and the system's boot; written last, its own time is that of
   the last use;
   - KEY.seen: the key was asked for.

   A file that does not fit its sum is removed. Two processes that make the same file at once: the first one's
   stays. What is used longest ago goes when the folder has more than CLUSTERLAB_PCH_LIMIT_MB. */
#include "compile/pch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "compile/cache.h"
#include "compile/sha256.h"

#define LEAST_FREE_BYTES  ((uint64_t)2 << 30)
#define LIMIT_DEFAULT_MB  2048
#define HEAP_BYTES        ((size_t)320 << 20) /* NVRTC's is 256 MiB unless told otherwise; and some room */
#define LONGEST_MARK_DAYS 30

/* --- keys */

/* The next character behind white space and comments; directives' own lines are the caller's. */
static const char *skip_blank(const char *at)
{
    for (;;) {
        at += strspn(at, " \t\r\n\f\v");
        if (at[0] == '/' && at[1] == '/') {
            at += strcspn(at, "\n");
        } else if (at[0] == '/' && at[1] == '*') {
            const char *end = strstr(at + 2, "*/");
            at = end != NULL ? end + 2 : at + strlen(at);
        } else {
            return at;
        }
    }
}

/* The directives before the first declaration, one a line, without what stands between them. */
static void leading_directives(const char *text, struct clab_str *out)
{
    for (const char *at = skip_blank(text); *at == '#'; at = skip_blank(at)) {
        size_t bytes = strcspn(at, "\n");
        while (at[bytes] == '\n' && bytes > 0 &&
               (at[bytes - 1] == '\\' || (bytes > 1 && at[bytes - 1] == '\r' && at[bytes - 2] == '\\')))
            bytes += 1 + strcspn(at + bytes + 1, "\n");
        /* A comment that goes on behind the line takes its rest along. */
        const char *open = memmem(at, bytes, "/*", 2);
        const char *close = open != NULL ? strstr(open + 2, "*/") : NULL;
        if (close != NULL && close > at + bytes)
            bytes = (size_t)(close + 2 - at);
        clab_str_add_bytes(out, at, bytes);
        clab_str_add(out, "\n");
        at += bytes;
    }
}

/* Whether headers are named that take the front end long. Conditionals are ignored. */
static bool names_heavy(const char *text)
{
    static const char *const heavy[] = {"<cooperative_groups", "<cuda/", "<cub/", "<thrust/"};
    for (size_t i = 0; i < sizeof heavy / sizeof heavy[0]; i++)
        if (strstr(text, heavy[i]) != NULL)
            return true;
    return false;
}

/* The same of the files in lines "PATH SHA256". */
static bool files_heavy(const char *list)
{
    bool heavy = false;
    for (const char *at = list; at != NULL && *at != '\0' && !heavy;) {
        const size_t bytes = strcspn(at, "\n");
        char path[8192];
        if (bytes > 65 && bytes - 65 < sizeof path) {
            size_t read;
            snprintf(path, sizeof path, "%.*s", (int)(bytes - 65), at);
            char *text = clab_file_read(path, (size_t)64 << 20, &read);
            heavy = text != NULL && names_heavy(text);
            free(text);
        }
        at += bytes;
        at += *at == '\n';
    }
    return heavy;
}

static void add_list(struct clab_sha256 *hash, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        clab_sha256_field(hash, list[i]);
    clab_sha256_field(hash, NULL);
}

void clab_pch_key(const struct clab_toolkit *toolkit, const struct clab_compile_request *request,
                  char key[65])
{
    struct clab_str leading = {0}, files = {0};
    key[0] = '\0';
    leading_directives(request->source_text, &leading);
    bool wanted = leading.text != NULL && !leading.failed && !request->no_pch;
    /* -I in raw options, and what reads options from files, is left to the plain way. */
    for (size_t i = 0; i < request->option_count && wanted; i++)
        wanted = strstr(request->options[i], "pch") == NULL && strncmp(request->options[i], "-I", 2) != 0 &&
                 strstr(request->options[i], "include") == NULL && strstr(request->options[i], "opt") == NULL;
    wanted = wanted && clab_scan_includes(request->source_path, leading.text, request->include_dirs,
                                          request->include_dir_count, &files);
    wanted = wanted && (names_heavy(leading.text) || files_heavy(files.text));
    if (wanted) {
        struct clab_sha256 hash;
        char identity[4400], folder[4096] = "";
        const char *slash = strrchr(request->source_path, '/');
        clab_sha256_init(&hash);
        clab_sha256_field(&hash, "clusterlab precompiled header 1");
        clab_sha256_field(&hash, CLAB_VERSION);
        for (int id = 0; id <= CLAB_PART_CCCL_INCLUDE; id++) {
            clab_toolkit_identity(toolkit, (enum clab_part_id)id, identity, sizeof identity);
            clab_sha256_field(&hash, identity);
        }
        clab_sha256_field(&hash, request->arch);
        clab_sha256_field(&hash, getcwd(folder, sizeof folder)); /* NVRTC takes none of another folder */
        snprintf(folder, sizeof folder, "%.*s", slash != NULL ? (int)(slash - request->source_path) : 0,
                 request->source_path);
        clab_sha256_field(&hash, folder);
        clab_sha256_field(&hash, request->line_info ? "lineinfo" : "");
        /* nvrtc.c sets a macro where the text does not speak of it. */
        clab_sha256_field(&hash,
                          strstr(request->source_text, "_CCCL_META_UNROLL_LIMIT") != NULL ? "own" : "");
        add_list(&hash, request->include_dirs, request->include_dir_count);
        add_list(&hash, request->defines, request->define_count);
        add_list(&hash, request->options, request->option_count);
        clab_sha256_field(&hash, leading.text);
        clab_sha256_field(&hash, files.text);
        clab_sha256_hex(&hash, key);
    }
    clab_str_free(&leading);
    clab_str_free(&files);
}

/* --- the folder */

long long clab_pch_limit_bytes(void)
{
    const char *setting = getenv("CLUSTERLAB_PCH_LIMIT_MB");
    return (setting != NULL ? atoll(setting) : LIMIT_DEFAULT_MB) << 20;
}

static bool make_folder(const char *dir)
{
    char parent[4400];
    snprintf(parent, sizeof parent, "%s", dir);
    char *slash = strrchr(parent, '/');
    if (mkdir(dir, 0777) == 0 || errno == EEXIST)
        return true;
    if (errno != ENOENT || slash == NULL || slash == parent)
        return false;
    *slash = '\0';
    return make_folder(parent) && (mkdir(dir, 0777) == 0 || errno == EEXIST);
}

bool clab_pch_seen(const char *kept_dir, const char *key, time_t since)
{
    char path[4400];
    struct stat info;
    if (kept_dir == NULL || kept_dir[0] == '\0' || key[0] == '\0' || !make_folder(kept_dir))
        return false;
    snprintf(path, sizeof path, "%s/%s.seen", kept_dir, key);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0)
        close(fd);
    return fd < 0 && stat(path, &info) == 0 && info.st_mtim.tv_sec < since;
}

/* Calls `each` with the path of every file in the folder. */
static void walk(const char *dir, void (*each)(const char *path, const char *name, void *context),
                 void *context)
{
    DIR *list = opendir(dir);
    struct dirent *item;
    while (list != NULL && (item = readdir(list)) != NULL) {
        char path[5000];
        snprintf(path, sizeof path, "%s/%s", dir, item->d_name);
        if (item->d_name[0] != '.')
            each(path, item->d_name, context);
    }
    if (list != NULL)
        closedir(list);
}

static void forget_one(const char *path, const char *name, void *context)
{
    const char *key = context;
    if (strncmp(name, key, strlen(key)) == 0 && name[strlen(key)] == '-')
        unlink(path);
}

void clab_pch_forget(const char *kept_dir, const char *key)
{
    char copy[65];
    snprintf(copy, sizeof copy, "%s", key);
    if (kept_dir != NULL && kept_dir[0] != '\0' && copy[0] != '\0')
        walk(kept_dir, forget_one, copy);
}

/* The sum's file of a kept one. */
static void sum_path(const char *path, char *out, size_t bytes)
{
    snprintf(out, bytes, "%.*s.sum", (int)(strlen(path) - strlen(".pch")), path);
}

static void remove_kept(const char *path)
{
    char sum[4440];
    sum_path(path, sum, sizeof sum);
    unlink(sum);
    unlink(path);
}

struct room {
    long long total, seconds;
    char oldest[5000];
    struct timespec oldest_use;
};

static void look(const char *path, const char *name, void *context)
{
    struct room *room = context;
    struct stat info, used;
    const size_t length = strlen(name);
    if (stat(path, &info) != 0 || length < 6)
        return;
    if (strcmp(name + length - 5, ".seen") == 0 || strcmp(name + length - 5, ".part") == 0) {
        const long long limit = name[length - 1] == 'n' ? LONGEST_MARK_DAYS * 86400LL : 3600;
        if (room->seconds - (long long)info.st_mtim.tv_sec > limit)
            unlink(path);
        return;
    }
    if (strcmp(name + length - 4, ".pch") != 0)
        return;
    char sum[4440];
    sum_path(path, sum, sizeof sum);
    const struct timespec use = stat(sum, &used) == 0 ? used.st_mtim : info.st_mtim;
    room->total += (long long)info.st_size;
    if (room->oldest[0] == '\0' || use.tv_sec < room->oldest_use.tv_sec ||
        (use.tv_sec == room->oldest_use.tv_sec && use.tv_nsec < room->oldest_use.tv_nsec)) {
        snprintf(room->oldest, sizeof room->oldest, "%s", path);
        room->oldest_use = use;
    }
}

static void make_room(const char *dir)
{
    for (int i = 0; i < 1000; i++) {
        struct room room = {.seconds = (long long)time(NULL)};
        walk(dir, look, &room);
        if (room.total <= clab_pch_limit_bytes() || room.oldest[0] == '\0')
            return;
        remove_kept(room.oldest);
    }
}

/* --- sums */

static uint64_t mix(uint64_t state, uint64_t word)
{
    state = (state ^ word) * 0x9e3779b97f4a7c15u;
    return state ^ state >> 29;
}

/* Of a whole file, for damage only: four lanes of multiplications, some 10 GB/s. False when it cannot be
   read. */
static bool sum_of(const char *path, char text[64])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (fd < 0)
        return false;
    const unsigned char *data = MAP_FAILED;
    if (fstat(fd, &info) == 0 && info.st_size > 0)
        data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    close(fd);
    if (data == MAP_FAILED)
        return false;
    const size_t bytes = (size_t)info.st_size;
    uint64_t lanes[4] = {1, 2, 3, 4};
    size_t at = 0;
    for (; at + 32 <= bytes; at += 32)
        for (size_t i = 0; i < 4; i++) {
            uint64_t word;
            memcpy(&word, data + at + 8 * i, sizeof word);
            lanes[i] = mix(lanes[i], word);
        }
    for (; at < bytes; at++)
        lanes[0] = mix(lanes[0], data[at]);
    munmap((void *)(uintptr_t)data, bytes);
    snprintf(text, 64, "%zu %016" PRIx64, bytes, mix(mix(mix(lanes[0], lanes[1]), lanes[2]), lanes[3]));
    return true;
}

/* --- the worker's side */

void clab_pch_store_init(struct clab_pch_store *store)
{
    memset(store, 0, sizeof *store);
    const int now = personality(0xffffffff);
    store->fixed = now != -1 && (now & ADDR_NO_RANDOMIZE) != 0;
    if (!store->fixed)
        return;
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_ARENA_MAX, 1);
    void *hole = mmap(NULL, HEAP_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    store->hole = hole != MAP_FAILED ? hole : NULL;
}

/* What a .sum file holds: "SIZE CHECKSUM TIME BOOT", TIME that of the file's last change in nanoseconds. */
static void sum_line(const char *sum, const struct stat *info, char *line, size_t bytes)
{
    size_t read;
    char *boot = clab_file_read("/proc/sys/kernel/random/boot_id", 64, &read);
    snprintf(line, bytes, "%s %lld %.36s\n", sum,
             (long long)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec, boot != NULL ? boot : "?");
    free(boot);
}

/* What was not written to since its sum was made, in this very run of the system, is whole: only a crash of
   the system cuts files. All else is read. */
static bool is_whole(const char *path, const char *sum_file, const struct stat *info, const char *kept)
{
    char sum[64] = "", line[192], now[64];
    sscanf(kept, "%31s", sum);
    sscanf(kept + strlen(sum), "%31s", now);
    const size_t length = strlen(sum);
    snprintf(sum + length, sizeof sum - length, " %.31s", now);
    sum_line(sum, info, line, sizeof line);
    if (strcmp(line, kept) == 0 && strtoll(sum, NULL, 10) == (long long)info->st_size) {
        (void)utimensat(AT_FDCWD, sum_file, NULL, 0);
        return true;
    }
    if (!sum_of(path, now) || strcmp(now, sum) != 0)
        return false;
    (void)clab_file_write_quick(sum_file, line, strlen(line));
    return true;
}

static bool is_verified(const char *path)
{
    char sum[4440];
    struct stat info;
    size_t bytes;
    if (stat(path, &info) != 0)
        return false;
    sum_path(path, sum, sizeof sum);
    char *kept = clab_file_read(sum, 4096, &bytes);
    const bool good = kept != NULL && is_whole(path, sum, &info, kept);
    /* Without a sum it may be on its way; one that nobody finished goes. */
    if (kept != NULL ? !good : (long long)time(NULL) - (long long)info.st_mtim.tv_sec > 60)
        remove_kept(path);
    free(kept);
    return good;
}

static bool has_room(const char *dir)
{
    struct statvfs info;
    return statvfs(dir, &info) == 0 && (uint64_t)info.f_bavail * info.f_frsize >= LEAST_FREE_BYTES;
}

/* Where NVRTC's libraries and the C library lie. */
static int add_base(struct dl_phdr_info *info, size_t bytes, void *context)
{
    (void)bytes;
    uint64_t *layout = context;
    if (strstr(info->dlpi_name, "nvrtc") != NULL || strstr(info->dlpi_name, "libc.so") != NULL)
        *layout = mix(*layout, (uint64_t)info->dlpi_addr);
    return 0;
}

void clab_pch_choose(struct clab_pch_store *store, const struct clab_pch_plan *plan,
                     const struct clab_nvrtc *nvrtc, uint64_t way, struct clab_pch *out)
{
    memset(out, 0, sizeof *out);
    if (plan == NULL || plan->key == NULL || plan->key[0] == '\0' || nvrtc->nvrtcGetPCHCreateStatus == NULL)
        return;
    out->kept = store->fixed && !store->refused && plan->kept_dir != NULL && plan->kept_dir[0] != '\0';
    const char *dir = out->kept ? plan->kept_dir : plan->scratch_dir;
    if (dir == NULL || dir[0] == '\0')
        return;
    uint64_t layout = mix(1, way);
    dl_iterate_phdr(add_base, &layout);
    snprintf(out->path, sizeof out->path, "%s/%s-%016" PRIx64 ".pch", dir, plan->key, layout);
    if (access(out->path, F_OK) == 0) {
        if (!out->kept || is_verified(out->path))
            out->use = CLAB_PCH_USE;
    }
    if (out->use == CLAB_PCH_NONE && plan->make && access(out->path, F_OK) != 0 &&
        (!out->kept || make_folder(dir)) && has_room(dir)) {
        snprintf(out->part, sizeof out->part, "%s.%ld.part", out->path, (long)getpid());
        out->use = CLAB_PCH_MAKE;
    }
    /* NVRTC takes its heap when it first needs it: here, at the top of what was set aside. */
    if (out->use != CLAB_PCH_NONE && store->hole != NULL) {
        munmap(store->hole, HEAP_BYTES);
        store->hole = NULL;
    }
}

void clab_pch_made(struct clab_pch_store *store, struct clab_pch *pch, bool good)
{
    (void)store;
    char sum[4440], text[64], line[192];
    struct stat info;
    if (good && !pch->kept)
        good = rename(pch->part, pch->path) == 0;
    else if (good && sum_of(pch->part, text) && link(pch->part, pch->path) == 0) {
        sum_path(pch->path, sum, sizeof sum);
        bool written = stat(pch->path, &info) == 0;
        if (written)
            sum_line(text, &info, line, sizeof line);
        if (!written || clab_file_write_quick(sum, line, strlen(line)) != 0)
            unlink(pch->path);
        char *slash = strrchr(pch->path, '/');
        *slash = '\0';
        make_room(pch->path);
        *slash = '/';
    }
    unlink(pch->part);
}

bool clab_pch_refused(struct clab_pch_store *store, const struct clab_pch *pch, const char *log)
{
    if (pch->use != CLAB_PCH_USE || log == NULL || strstr(log, "using precompiled header file \"") != NULL)
        return false;
    if (strstr(log, "heap allocation address") != NULL)
        store->refused = true;
    else if (pch->kept)
        remove_kept(pch->path);
    else
        unlink(pch->path);
    return true;
}
