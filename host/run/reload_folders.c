#include "run/reload_folders.h"

#include "base/arena.h"
#include "base/buffer.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

/* Folders are watched so deep, and so many of them. */
#define DEPTH_MAX   16
#define FOLDERS_MAX 1024

struct folders {
    struct arena arena;
    const char **items;
    size_t count;
};

static void add(struct folders *folders, struct text folder)
{
    for (size_t i = 0; i < folders->count; i++)
        if (text_equal(text_of(folders->items[i]), folder))
            return;
    if (folders->count == FOLDERS_MAX)
        return;
    folders->items = arena_grow(&folders->arena, folders->items, folders->count,
                                sizeof(*folders->items));
    folders->items[folders->count++] = arena_string(&folders->arena, folder);
}

static bool is_folder(const struct dirent *entry, const char *path)
{
    struct stat about;

    if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK)
        return entry->d_type == DT_DIR;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static void add_tree(struct folders *folders, const char *folder, int depth)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    struct buffer path = BUFFER_EMPTY;

    add(folders, text_of(folder));
    while (dir != NULL && depth < DEPTH_MAX && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        buffer_clear(&path);
        buffer_printf(&path, "%s/%s", folder, entry->d_name);
        if (is_folder(entry, path.data))
            add_tree(folders, path.data, depth + 1);
    }
    if (dir != NULL)
        closedir(dir);
    buffer_free(&path);
}

/* The folder that a file of the version lies in. */
static void add_folder_of(struct folders *folders, const char *app_dir,
                          const char *file)
{
    const char *slash = strrchr(file, '/');
    struct buffer path = BUFFER_EMPTY;

    if (slash == NULL || *file == '/')
        return;
    buffer_printf(&path, "%s/%.*s", app_dir, (int)(slash - file), file);
    add(folders, buffer_text(&path));
    buffer_free(&path);
}

void reload_folders_watch(struct watch *watch, const struct settings *settings,
                          const struct script_version *version)
{
    struct folders folders = {.count = 0};
    struct buffer scripts = BUFFER_EMPTY;

    add(&folders, text_of(settings->app_dir));
    buffer_printf(&scripts, "%s/%s", settings->app_dir, settings->scripts);
    add_tree(&folders, scripts.data, 0);
    for (size_t i = 0; version != NULL && i < version->nfiles; i++)
        add_folder_of(&folders, settings->app_dir, version->files[i].file);
    watch_folders(watch, folders.items, folders.count);
    buffer_free(&scripts);
    arena_free(&folders.arena);
}

static bool ends_as_script(const char *name)
{
    size_t len = strlen(name);

    return len > 4 && strcmp(name + len - 4, ".lua") == 0;
}

static bool is_of_version(const struct script_version *version,
                          const char *name)
{
    for (size_t i = 0; i < version->nfiles; i++) {
        const char *file = version->files[i].file;
        const char *slash = strrchr(file, '/');

        if (strcmp(slash != NULL ? slash + 1 : file, name) == 0)
            return true;
    }
    return false;
}

bool reload_folders_wanted(const struct settings *settings,
                           const struct script_version *version,
                           const char *folder, const char *name)
{
    /* a folder that is gone, and what may be one that comes */
    if (*name == '\0')
        return true;
    if (*name == '.')
        return false;
    if (ends_as_script(name) || is_of_version(version, name))
        return true;
    return strchr(name, '.') == NULL &&
           (strcmp(folder, settings->app_dir) != 0 ||
            strncmp(settings->scripts, name, strlen(name)) == 0);
}
