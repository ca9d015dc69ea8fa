/* The search for experiment files (design: "EXPERIMENT is a name, looked for in ./kernels, $CLUSTERLAB_PATH
   and the installed tree, or a path"). A name found twice is the first one's. */
#include "lab/find.h"

#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_EXPERIMENTS 512
#define MAX_FOLDERS     64

struct folders {
    char *paths[MAX_FOLDERS];
    size_t count;
};

static void add_folder(struct folders *folders, const char *path)
{
    char real[PATH_MAX];
    if (folders->count == MAX_FOLDERS || realpath(path, real) == NULL)
        return;
    for (size_t i = 0; i < folders->count; i++)
        if (strcmp(folders->paths[i], real) == 0)
            return;
    if ((folders->paths[folders->count] = strdup(real)) != NULL)
        folders->count++;
}

static void find_folders(struct folders *folders)
{
    char path[PATH_MAX], exe[PATH_MAX - 64];
    folders->count = 0;
    add_folder(folders, "kernels");
    const char *listed = getenv("CLUSTERLAB_PATH");
    while (listed != NULL && *listed != '\0') {
        size_t bytes = strcspn(listed, ":");
        snprintf(path, sizeof path, "%.*s", (int)bytes, listed);
        if (bytes > 0 && bytes < sizeof path)
            add_folder(folders, path);
        listed += bytes + (listed[bytes] == ':');
    }
    ssize_t bytes = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (bytes <= 0)
        return;
    exe[bytes] = '\0';
    *strrchr(exe, '/') = '\0';
    snprintf(path, sizeof path, "%s/../share/clusterlab/kernels", exe); /* installed: bin/clusterlab */
    add_folder(folders, path);
    snprintf(path, sizeof path, "%s/../../../../kernels",
             exe); /* built: build/<preset>/host/cli/clusterlab */
    add_folder(folders, path);
}

void clab_experiment_name(const char *path, char *name, size_t bytes)
{
    const char *base = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    size_t length = strlen(base);
    if (length > 4 && strcmp(base + length - 4, ".lua") == 0)
        length -= 4;
    snprintf(name, bytes, "%.*s", (int)length, base);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **clab_experiment_all(void)
{
    struct folders folders;
    size_t n = 0;
    char **all = calloc(MAX_EXPERIMENTS + 1, sizeof *all);
    find_folders(&folders);
    for (size_t f = 0; f < folders.count; f++) {
        DIR *dir = all != NULL ? opendir(folders.paths[f]) : NULL;
        size_t first = n;
        for (struct dirent *entry; dir != NULL && n < MAX_EXPERIMENTS && (entry = readdir(dir)) != NULL;) {
            size_t bytes = strlen(entry->d_name);
            char name[NAME_MAX + 1], other[NAME_MAX + 1];
            bool twin =
                bytes <= 4 || entry->d_name[0] == '.' || strcmp(entry->d_name + bytes - 4, ".lua") != 0;
            clab_experiment_name(entry->d_name, name, sizeof name);
            for (size_t i = 0; i < first && !twin; i++) {
                clab_experiment_name(all[i], other, sizeof other);
                twin = strcmp(name, other) == 0;
            }
            if (!twin && asprintf(&all[n], "%s/%s", folders.paths[f], entry->d_name) > 0)
                n++;
        }
        if (dir != NULL)
            closedir(dir);
        if (n > first)
            qsort(all + first, n - first, sizeof *all, by_text);
        free(folders.paths[f]);
    }
    if (all != NULL)
        all[n] = NULL;
    return all;
}

/* "reduce" where reduce.lua lies in the current folder: a file is named with its ending. */
static bool remedy_ending(const char *name, struct clab_error *error)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s.lua", name);
    if (length < 0 || (size_t)length >= sizeof path || access(path, R_OK) != 0)
        return false;
    clab_error_remedy(error, "%s is there: name it with its ending", path);
    return true;
}

static clab_status unknown(const char *name, char **all, struct clab_error *error)
{
    const char *names[MAX_EXPERIMENTS];
    char text[NAME_MAX + 1];
    struct clab_str known = {0};
    size_t n = 0;
    for (; all[n] != NULL; n++) {
        clab_experiment_name(all[n], text, sizeof text);
        names[n] = strdup(text);
        clab_str_addf(&known, "%s%s", n > 0 ? ", " : "", text);
    }
    const char *near = clab_nearest_name(name, names, n);
    clab_error_set(error, CLAB_EXPERIMENT, "there is no experiment '%s'%s%s%s; %s%s", name,
                   near != NULL ? "; did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?" : "",
                   n > 0 ? "there are: " : "none was found", n > 0 ? known.text : "");
    if (!remedy_ending(name, error))
        clab_error_remedy(
            error, "names are looked for in ./kernels, $CLUSTERLAB_PATH and the installed tree; a path to a "
                   ".lua file works too");
    for (size_t i = 0; i < n; i++)
        free((char *)(uintptr_t)names[i]);
    clab_str_free(&known);
    return CLAB_EXPERIMENT;
}

clab_status clab_experiment_find(const char *name, char **out_path, struct clab_error *error)
{
    size_t bytes = strlen(name);
    char real[PATH_MAX];
    if (strchr(name, '/') != NULL || (bytes > 4 && strcmp(name + bytes - 4, ".lua") == 0)) {
        if (realpath(name, real) == NULL) {
            clab_error_set(error, CLAB_EXPERIMENT, "cannot open experiment file '%s': %s", name,
                           strerror(errno));
            (void)remedy_ending(name, error);
            return CLAB_EXPERIMENT;
        }
        *out_path = strdup(real);
        return *out_path != NULL ? CLAB_OK : clab_error_set(error, CLAB_NO_MEMORY, "out of memory");
    }
    char **all = clab_experiment_all(), other[NAME_MAX + 1];
    if (all == NULL)
        return clab_error_set(error, CLAB_NO_MEMORY, "out of memory");
    *out_path = NULL;
    for (size_t i = 0; all[i] != NULL; i++) {
        clab_experiment_name(all[i], other, sizeof other);
        if (*out_path == NULL && strcmp(other, name) == 0)
            *out_path = strdup(all[i]);
    }
    clab_status status = *out_path != NULL ? CLAB_OK : unknown(name, all, error);
    for (size_t i = 0; all[i] != NULL; i++)
        free(all[i]);
    free(all);
    return status;
}
