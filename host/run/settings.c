#include "run/settings.h"

#include "run/settings_key.h"
#include "run/settings_origins.h"
#include "run/settings_value.h"

#include "base/memory.h"
#include "db/url.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define CONFIG_FILE      "moontide.conf.lua"
#define ENVIRONMENT      "MOONTIDE_"
#define ENVIRONMENT_SIZE 64
#define WORKERS_MAX      1024
#define WHERE_DEFAULT    "default"
#define TABLES_KEY       "schema.tables."
#define AGGREGATES_KEY   "schema.aggregates."

/* A configured table name; they are applied together, after the prefix. */
struct table_name {
    char *key; /* CONSUMERS, or the aggregate type */
    char *value;
    char *snapshots; /* aggregates only, or NULL */
};

struct table_names {
    struct table_name *items;
    size_t count;
};

struct load {
    struct settings *settings;
    const char *where;  /* file, variable or option of the value at hand */
    const char *folder; /* relative paths start here; NULL: as they are */
    bool loose;
    char *prefix;
    char *names_where; /* for messages about names: where they came from */
    struct table_names tables;
    struct table_names aggregates;
};

/* --- names --------------------------------------------------------------- */

static struct table_name *table_name_get(struct table_names *names,
                                         const char *key, size_t len)
{
    struct table_name *name;

    for (size_t i = 0; i < names->count; i++) {
        name = &names->items[i];
        if (strncmp(name->key, key, len) == 0 && name->key[len] == '\0')
            return name;
    }
    names->items = mem_grow(names->items, names->count + 1,
                            sizeof(*names->items));
    name = &names->items[names->count++];
    *name = (struct table_name){.key = mem_copy_text(key, len)};
    return name;
}

static void table_names_free(struct table_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        mem_free(names->items[i].key);
        mem_free(names->items[i].value);
        mem_free(names->items[i].snapshots);
    }
    mem_free(names->items);
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text);
    size_t end_len = strlen(end);

    return len > end_len && strcmp(text + len - end_len, end) == 0;
}

static enum status take_name(struct load *load, const struct table_entry *entry,
                             struct diag *diag)
{
    const char *name;
    char **target;

    if (entry->kind != TABLE_STRING)
        return diag_set(diag, STATUS_CONFIG,
                        "%s: %s must be the name of a table as a string",
                        load->where, entry->key);
    if (strncmp(entry->key, TABLES_KEY, strlen(TABLES_KEY)) == 0) {
        name = entry->key + strlen(TABLES_KEY);
        target = &table_name_get(&load->tables, name, strlen(name))->value;
    } else {
        name = entry->key + strlen(AGGREGATES_KEY);
        if (ends_with(name, ".events"))
            target = &table_name_get(&load->aggregates, name,
                                     strlen(name) - strlen(".events"))
                          ->value;
        else if (ends_with(name, ".snapshots"))
            target = &table_name_get(&load->aggregates, name,
                                     strlen(name) - strlen(".snapshots"))
                          ->snapshots;
        else
            return diag_set(diag, STATUS_CONFIG,
                            "%s: unknown key '%s'; an aggregate type takes "
                            "'events' and 'snapshots'",
                            load->where, entry->key);
    }
    mem_free(*target);
    *target = mem_copy_text(entry->string.data, entry->string.len);
    settings_origins_set(load->settings->origins, entry->key, entry,
                         load->where);
    return STATUS_OK;
}

static enum status apply_names(struct load *load, struct diag *diag)
{
    struct names *names = &load->settings->names;
    enum status status = STATUS_OK;

    if (load->prefix != NULL && load->prefix[0] != '\0')
        status = names_prefix(names, load->prefix, diag);
    for (size_t i = 0; status == STATUS_OK && i < load->tables.count; i++)
        status = names_set(names, load->tables.items[i].key,
                           load->tables.items[i].value, diag);
    for (size_t i = 0; status == STATUS_OK && i < load->aggregates.count; i++) {
        struct table_name *own = &load->aggregates.items[i];

        if (own->value == NULL)
            status = diag_set(diag, STATUS_CONFIG,
                              "schema.aggregates[\"%s\"] names no events "
                              "table; give it one, or remove it",
                              own->key);
        else
            status = names_aggregate(names, own->key, own->value,
                                     own->snapshots, diag);
    }
    if (status == STATUS_OK)
        status = names_check(names, diag);
    if (status != STATUS_OK && load->names_where != NULL)
        return diag_wrap(diag, "%s", load->names_where);
    return status;
}

/* --- one value ----------------------------------------------------------- */

/* Names are applied when all sources are read; an error names the last source
 * that had one. */
static void names_come_from(struct load *load)
{
    if (strcmp(load->where, WHERE_DEFAULT) == 0)
        return;
    mem_free(load->names_where);
    load->names_where = mem_copy_text(load->where, strlen(load->where));
}

static void resolve_database(struct load *load)
{
    struct buffer url = BUFFER_EMPTY;

    if (load->folder == NULL)
        return;
    db_url_resolve(load->settings->database, load->folder, &url);
    mem_free(load->settings->database);
    load->settings->database = mem_copy_text(url.data, url.len);
    buffer_free(&url);
}

static enum status take_value(struct load *load, const struct settings_key *key,
                              const struct table_entry *entry,
                              struct diag *diag)
{
    enum status status = settings_value_set(key, entry, load->loose,
                                            load->where, load->settings, diag);

    if (status != STATUS_OK)
        return status;
    if (key->kind == SETTINGS_PREFIX) {
        mem_free(load->prefix);
        load->prefix = mem_copy_text(entry->string.data, entry->string.len);
        names_come_from(load);
    } else if (key->kind == SETTINGS_DATABASE) {
        resolve_database(load);
    }
    settings_origins_set(load->settings->origins, key->name, entry,
                         load->where);
    return STATUS_OK;
}

static enum status take_entry(void *arg, const struct table_entry *entry,
                              struct diag *diag)
{
    struct load *load = arg;
    const struct settings_key *key = settings_key_find(entry->key);

    if (key != NULL)
        return take_value(load, key, entry, diag);
    if (strncmp(entry->key, TABLES_KEY, strlen(TABLES_KEY)) == 0 ||
        strncmp(entry->key, AGGREGATES_KEY, strlen(AGGREGATES_KEY)) == 0) {
        names_come_from(load);
        if (entry->kind == TABLE_LIST && entry->nitems == 0)
            return STATUS_OK;
        return take_name(load, entry, diag);
    }
    return settings_key_unknown(load->where, entry, diag);
}

static enum status take_text(struct load *load, const struct settings_key *key,
                             const char *text, const char *where,
                             const char *folder, struct diag *diag)
{
    struct table_entry entry = {
        .key = key->name,
        .kind = key->kind == SETTINGS_LIST ? TABLE_LIST : TABLE_STRING,
        .string = text_of(text),
    };

    enum status status;

    load->where = where;
    load->folder = folder;
    load->loose = true;
    status = take_value(load, key, &entry, diag);
    load->where = NULL; /* it lives in the caller */
    return status;
}

/* --- the sources, weakest first ------------------------------------------ */

static enum status take_defaults(struct load *load, struct diag *diag)
{
    struct settings *settings = load->settings;

    for (const struct settings_key *key = settings_keys; key->name != NULL;
         key++) {
        bool terminal;
        enum status status;

        if (key->fallback != NULL) {
            status = take_text(load, key, key->fallback, WHERE_DEFAULT,
                               settings->app_dir, diag);
        } else {
            terminal = isatty(STDERR_FILENO) == 1;
            status = take_text(load, key, terminal ? "text" : "logfmt",
                               terminal ? "default on a terminal"
                                        : "default without a terminal",
                               NULL, diag);
        }
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status take_file(struct load *load, struct diag *diag)
{
    load->where = load->settings->config_path;
    load->folder = load->settings->app_dir;
    load->loose = false;
    return table_file_run(load->settings->config_path,
                          buffer_text(&load->settings->config), take_entry,
                          load, diag);
}

/* MOONTIDE_POLL_MIN_INTERVAL for poll.min_interval */
static void environment_name(const char *key, char out[ENVIRONMENT_SIZE])
{
    size_t len = strlen(ENVIRONMENT);

    memcpy(out, ENVIRONMENT, len);
    for (; *key != '\0' && len + 1 < ENVIRONMENT_SIZE; key++) {
        if (*key == '.')
            out[len++] = '_';
        else if (*key >= 'a' && *key <= 'z')
            out[len++] = (char)(*key - 'a' + 'A');
        else
            out[len++] = *key;
    }
    out[len] = '\0';
}

static const char *environment_value(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

static enum status take_environment(struct load *load, struct diag *diag)
{
    for (const struct settings_key *key = settings_keys; key->name != NULL;
         key++) {
        char name[ENVIRONMENT_SIZE];
        const char *where = name;
        const char *value;
        enum status status;

        if (key->kind == SETTINGS_LIST)
            continue;
        environment_name(key->name, name);
        value = environment_value(name);
        if (value == NULL && key->kind == SETTINGS_DATABASE) {
            where = "DATABASE_URL";
            value = environment_value(where);
        }
        if (value == NULL)
            continue;
        status = take_text(load, key, value, where, NULL, diag);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static const char *where_of(const struct settings *settings, const char *key)
{
    const char *where = settings_origins_where(settings->origins, key);

    return where != NULL ? where : WHERE_DEFAULT;
}

const char *settings_refuse_workers(const struct settings *settings,
                                    int workers)
{
    if (workers > 1 && db_url_single_process(settings->database))
        return "this database lets one process write at a time, so that more "
               "workers would only wait for each other; set workers to 1, or "
               "leave it out";
    return NULL;
}

static enum status check_together(const struct settings *settings,
                                  struct diag *diag)
{
    const char *refused = settings_refuse_workers(settings, settings->workers);

    if (refused != NULL)
        return diag_set(diag, STATUS_CONFIG, "%s: workers = %d: %s",
                        where_of(settings, "workers"), settings->workers,
                        refused);
    if (settings->notify_url[0] != '\0' &&
        strcmp(db_url_dialect(settings->notify_url),
               db_url_dialect(settings->database)) != 0)
        return diag_set(diag, STATUS_CONFIG,
                        "%s: notify_url is another kind of database than "
                        "database; give the same one, reached without the "
                        "pooler",
                        where_of(settings, "notify_url"));
    if (settings->lease_duration_us < 2 * settings->lease_heartbeat_us)
        return diag_set(diag, STATUS_CONFIG,
                        "lease.duration (%s) must be at least twice "
                        "lease.heartbeat (%s)",
                        where_of(settings, "lease.duration"),
                        where_of(settings, "lease.heartbeat"));
    if (settings->poll_max_us < settings->poll_min_us)
        return diag_set(diag, STATUS_CONFIG,
                        "poll.max_interval (%s) must not be shorter than "
                        "poll.min_interval (%s)",
                        where_of(settings, "poll.max_interval"),
                        where_of(settings, "poll.min_interval"));
    return STATUS_OK;
}

static void load_begin(struct load *load, struct settings *settings)
{
    *settings = (struct settings){
        .origins = mem_alloc(sizeof(*settings->origins)),
    };
    names_default(&settings->names);
    *load = (struct load){.settings = settings};
}

/* As many as can work at once, where nobody says how many. */
static enum status default_workers(struct load *load, struct diag *diag)
{
    struct settings *settings = load->settings;
    bool one = db_url_single_process(settings->database);
    long cores = one ? 1 : sysconf(_SC_NPROCESSORS_ONLN);
    char text[16];

    if (strcmp(where_of(settings, "workers"), WHERE_DEFAULT) != 0)
        return STATUS_OK;
    if (cores < 1)
        cores = 1;
    (void)snprintf(text, sizeof(text), "%ld",
                   cores > WORKERS_MAX ? WORKERS_MAX : cores);
    return take_text(load, settings_key_find("workers"), text,
                     one ? "default where one process writes at a time"
                         : "default: the number of cores",
                     NULL, diag);
}

/* Ends a load; on failure the settings are freed. */
static enum status load_end(struct load *load, enum status status,
                            struct diag *diag)
{
    if (status == STATUS_OK)
        status = default_workers(load, diag);
    if (status == STATUS_OK)
        status = apply_names(load, diag);
    if (status == STATUS_OK)
        status = check_together(load->settings, diag);
    if (status != STATUS_OK)
        settings_free(load->settings);
    mem_free(load->prefix);
    mem_free(load->names_where);
    table_names_free(&load->tables);
    table_names_free(&load->aggregates);
    return status;
}

/* --- finding the file ---------------------------------------------------- */

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (slash == NULL)
        return mem_copy_text(".", 1);
    return mem_copy_text(path, slash == path ? 1 : (size_t)(slash - path));
}

static enum status find_file(const struct settings_source *source,
                             struct settings *settings, struct diag *diag)
{
    const char *path = source->config_path;

    if (source->config.data != NULL && source->config.len == 0) {
        settings->app_dir = mem_copy_text(".", 1);
        return STATUS_OK;
    }
    if (path == NULL) {
        path = CONFIG_FILE;
        if (source->in_memory || (access(path, F_OK) != 0 && errno == ENOENT)) {
            settings->app_dir = mem_copy_text(".", 1);
            return STATUS_OK;
        }
    } else if (source->config.data == NULL && access(path, F_OK) != 0) {
        return diag_set(diag, STATUS_CONFIG,
                        "cannot read the configuration %s: %s", path,
                        strerror(errno));
    }
    settings->app_dir = folder_of(path);
    settings->config_path = mem_copy_text(path, strlen(path));
    if (source->config.data != NULL) {
        buffer_append_text(&settings->config, source->config);
        return STATUS_OK;
    }
    return table_file_read(path, &settings->config, diag);
}

enum status settings_load(const struct settings_source *source,
                          struct settings *settings, struct diag *diag)
{
    struct load load;
    enum status status;

    load_begin(&load, settings);
    status = find_file(source, settings, diag);
    if (status == STATUS_OK)
        status = take_defaults(&load, diag);
    if (status == STATUS_OK && settings->config_path != NULL)
        status = take_file(&load, diag);
    if (status == STATUS_OK && !source->in_memory)
        status = take_environment(&load, diag);
    if (status == STATUS_OK && source->database != NULL)
        status = take_text(&load, settings_key_find("database"),
                           source->database, "--database", NULL, diag);
    return load_end(&load, status, diag);
}

enum status settings_from_table(struct lua_State *L, int index,
                                const char *app_dir, struct settings *settings,
                                struct diag *diag)
{
    struct load load;
    enum status status;

    load_begin(&load, settings);
    settings->app_dir = mem_copy_text(app_dir, strlen(app_dir));
    status = take_defaults(&load, diag);
    if (status == STATUS_OK) {
        load.where = "configuration";
        load.folder = settings->app_dir;
        load.loose = false;
        status = table_file_visit(L, index, load.where, take_entry, &load,
                                  diag);
    }
    return load_end(&load, status, diag);
}

void settings_free(struct settings *settings)
{
    for (size_t i = 0; settings->grants != NULL && settings->grants[i] != NULL;
         i++)
        mem_free(settings->grants[i]);
    mem_free(settings->grants);
    mem_free(settings->app_dir);
    mem_free(settings->config_path);
    buffer_free(&settings->config);
    mem_free(settings->database);
    mem_free(settings->scripts);
    mem_free(settings->notify_url);
    names_free(&settings->names);
    settings_origins_free(settings->origins);
    *settings = (struct settings){.database = NULL};
}
